"""The memory of a recording's devices, and the memory files beside it."""

from stepscope.api import memory_files
from stepscope.api.endpoint import CatalogEndpoint, Endpoint, RunQuery, TraceEndpoint
from stepscope.api.memory_allocations import AllocationsQuery, MemoryAllocations, allocations
from stepscope.api.memory_curve import CurveQuery, MemoryOverTime, over_time
from stepscope.api.memory_devices import DeviceQuery
from stepscope.api.memory_growth import (
    GrowthQuery,
    MemoryFragmentation,
    MemoryGrowth,
    memory_fragmentation,
    memory_growth,
    memory_operators,
)
from stepscope.api.memory_holders import HoldersQuery, MemoryHolders, holders
from stepscope.api.messages import Table

# A part of a recording does not tell what was held at its beginning: all of them are asked of the
# whole, and mind the time themselves.
ENDPOINTS: tuple[Endpoint, ...] = (
    TraceEndpoint(
        path="memory/curve",
        meaning="A device's memory over time: what was allocated and what was reserved.",
        query=CurveQuery,
        response=MemoryOverTime,
        handler=over_time,
        is_whole=True,
    ),
    TraceEndpoint(
        path="memory/holders",
        meaning="Who held a device's memory when it held most, or at another moment.",
        query=HoldersQuery,
        response=MemoryHolders,
        handler=holders,
        is_whole=True,
    ),
    TraceEndpoint(
        path="memory/allocations",
        meaning="A device's allocations: the largest in a time, or the first by another column.",
        query=AllocationsQuery,
        response=MemoryAllocations,
        handler=allocations,
        is_whole=True,
    ),
    TraceEndpoint(
        path="memory/operators",
        meaning="What each operator allocated and freed on a device.",
        query=DeviceQuery,
        response=Table,
        handler=memory_operators,
        is_whole=True,
    ),
    TraceEndpoint(
        path="memory/growth",
        meaning="Whether a device's memory grows over the steps, and what stays behind.",
        query=GrowthQuery,
        response=MemoryGrowth,
        handler=memory_growth,
        is_whole=True,
    ),
    TraceEndpoint(
        path="memory/fragmentation",
        meaning="How much of what a device's allocator reserved lay unused.",
        query=DeviceQuery,
        response=MemoryFragmentation,
        handler=memory_fragmentation,
        is_whole=True,
    ),
    CatalogEndpoint(
        path="runs/<run>/memory-files",
        meaning="Memory snapshots and timelines beside a run's recordings.",
        query=RunQuery,
        response=memory_files.MemoryFiles,
        handler=memory_files.files,
    ),
    CatalogEndpoint(
        path="runs/<run>/memory-files/<file>",
        meaning="What a memory snapshot or timeline beside a run tells.",
        query=memory_files.FileQuery,
        response=memory_files.MemoryFileReport,
        handler=memory_files.report,
    ),
)
