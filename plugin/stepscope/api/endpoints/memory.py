"""Endpoints of the memory of devices, and of memory files in the folders of runs."""

from stepscope.api import memory_files
from stepscope.api.endpoint import Endpoint, catalog_endpoint, trace_endpoint
from stepscope.api.memory_allocations import allocations
from stepscope.api.memory_curve import over_time
from stepscope.api.memory_growth import memory_fragmentation, memory_growth, memory_operators
from stepscope.api.memory_holders import holders

# All of them receive the whole trace: a part of it does not contain the earlier allocations.
ENDPOINTS: tuple[Endpoint, ...] = (
    trace_endpoint("memory/curve", over_time, is_whole=True),
    trace_endpoint("memory/holders", holders, is_whole=True),
    trace_endpoint("memory/allocations", allocations, is_whole=True),
    trace_endpoint("memory/operators", memory_operators, is_whole=True),
    trace_endpoint("memory/growth", memory_growth, is_whole=True),
    trace_endpoint("memory/fragmentation", memory_fragmentation, is_whole=True),
    catalog_endpoint("runs/<run>/memory-files", memory_files.files),
    catalog_endpoint("runs/<run>/memory-files/<file>", memory_files.report, lane="long"),
)
