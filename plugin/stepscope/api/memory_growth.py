"""Growth of a device's memory over steps, leaks, operators and fragmentation."""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec
import pandas as pd

from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.memory import by_step, fragmentation, growth, operator_memory
from stepscope.analyses.memory.at_peak import Peak
from stepscope.analyses.memory.curve import MemoryCurve, decimated_indices
from stepscope.api.memory_curve import bounds
from stepscope.api.memory_devices import DeviceQuery, select_device
from stepscope.api.messages import Response, Table
from stepscope.api.metrics import finite, whole
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.model.frames import Schema
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_ROWS = 5000
CURVE_PIXELS = 1200
DEVICE_COLUMN_COUNT = 2
"""The first columns of these tables name the device, which is fixed here."""


class GrowthQuery(DeviceQuery, frozen=True, kw_only=True):
    """A device; growth covers the whole trace, whatever the time range."""


class MemoryGrowth(Response, frozen=True, kw_only=True):
    """Growth of a device's memory over the steps."""

    device: str
    step_count: int
    growth_bytes: int | None
    """Growth per step: median slope between all pairs of steps (Theil-Sen)."""
    least_growth_bytes: int | None
    """Lower bound per step, with 95 % confidence."""
    most_growth_bytes: int | None
    total_growth_bytes: int | None
    """Growth from the first step's end to the last step's."""
    confidence: str
    """Confidence in growth: `none`, `low`, `medium` (5 %), `high` (1 %, at least 6 steps)."""
    full_after_step_count: float | None
    """Steps until the device is full at this growth."""
    steps: Table
    leaks: Table


class MemoryFragmentation(Response, frozen=True, kw_only=True):
    """Unused part of the memory that a device's allocator reserved."""

    device: str
    reserved_peak_ns: int
    most_reserved_bytes: int
    unused_bytes: int
    """Unused memory at that time."""
    unused_share: float | None
    most_unused_bytes: int
    """Peak of the unused memory."""
    mean_unused_share: float | None
    """Unused fraction of the reserved memory, over time."""
    end_unused_bytes: int
    time_ns: list[int]
    over_time_bytes: list[int | None]
    """Unused memory at `time_ns`; a level holds until the next."""
    start_ns: int
    end_ns: int
    """End of the requested range, or of the recorded memory and steps."""


def memory_growth(trace: Trace, query: GrowthQuery) -> MemoryGrowth:
    """Return the growth of a device's memory over the steps, and suspected leaks.

    Raises:
        MissingDataError: the trace has no memory events, or no steps.
    """
    index, peak = select_device(trace, query.device)
    table = growth.memory_growth(trace)
    if index >= len(table):
        msg = "the trace has too many devices to compute the growth of this one"
        raise NotApplicableError(msg)
    row = table.to_dict("records")[index]
    return MemoryGrowth(
        device=peak.curve.device.label,
        step_count=int(row["step_count"]),
        growth_bytes=whole(row["growth_bytes"]),
        least_growth_bytes=whole(row["least_growth_bytes"]),
        most_growth_bytes=whole(row["most_growth_bytes"]),
        total_growth_bytes=whole(row["total_growth_bytes"]),
        confidence=row["confidence"],
        full_after_step_count=finite(row["full_after_step_count"]),
        steps=_of_device(peak, (by_step.SCHEMA, by_step.memory_by_step(trace)), STEPS),
        leaks=_of_device(peak, (growth.LEAK_SCHEMA, growth.memory_leaks(trace)), LEAKS),
    )


STEPS = ("Memory by step", "One row per complete step: its allocated, freed and remaining memory.")
LEAKS = (
    "Suspected leaks",
    "One row per operator, module and stack whose allocations remain after at least two steps and"
    " half of them. The last step is ignored: the next step would free its allocations.",
)
OPERATORS = (
    "Memory by operator",
    "One row per operator that allocated or freed memory of the device.",
)


def memory_operators(trace: Trace, query: DeviceQuery) -> Table:
    """Return the allocated and freed memory of a device by operator.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    _, peak = select_device(trace, query.device)
    part = slice_trace(trace, query.start_ns, query.end_ns)
    schema = operator_memory.SCHEMA
    frame = (
        operator_memory.memory_statistics(part)
        if len(part.memory)
        else pd.DataFrame({column.name: pd.Series(dtype=column.dtype) for column in schema})
    )
    table = _of_device(peak, (schema, frame), OPERATORS)
    return msgspec.structs.replace(
        table,
        sort="allocation_bytes",
        empty="No operator allocated or freed memory of this device in this time range.",
    )


def memory_fragmentation(trace: Trace, query: DeviceQuery) -> MemoryFragmentation:
    """Return the unused part of the memory that a device's allocator reserved.

    Raises:
        MissingDataError: the trace has no memory events, or no reserved sizes.
    """
    _, peak = select_device(trace, query.device)
    device = peak.curve.device
    table = fragmentation.memory_fragmentation(trace)
    of_device = table[(table["device_type"] == device.type) & (table["device"] == device.number)]
    if not len(of_device):
        reason = f"the trace has no reserved memory of {device.label}"
        raise MissingDataError(reason)
    row: Mapping[Hashable, Any] = of_device.to_dict("records")[0]
    start_ns, end_ns = bounds(trace, query)
    time_ns, unused = _unused(peak.curve, start_ns, end_ns)
    return MemoryFragmentation(
        device=device.label,
        reserved_peak_ns=int(row["reserved_peak_ns"]),
        most_reserved_bytes=int(row["most_reserved_bytes"]),
        unused_bytes=int(row["unused_bytes"]),
        unused_share=finite(row["unused_share"]),
        most_unused_bytes=int(row["most_unused_bytes"]),
        mean_unused_share=finite(row["mean_unused_share"]),
        end_unused_bytes=int(row["end_unused_bytes"]),
        time_ns=time_ns,
        over_time_bytes=unused,
        start_ns=start_ns,
        end_ns=end_ns,
    )


def _unused(curve: MemoryCurve, start_ns: int, end_ns: int) -> tuple[list[int], list[int | None]]:
    unused = curve.reserved_bytes - curve.allocated_bytes
    indices = decimated_indices(curve.time_ns, [unused], start_ns, end_ns, CURVE_PIXELS)
    values = [whole(value) for value in unused[indices].tolist()]
    return curve.time_ns[indices].tolist(), values


def _of_device(peak: Peak, content: tuple[Schema, pd.DataFrame], texts: tuple[str, str]) -> Table:
    """Return a device's rows of a table, without the columns that name the device."""
    schema, frame = content
    device = peak.curve.device
    is_of_device = (frame["device_type"] == device.type) & (frame["device"] == device.number)
    title, meaning = texts
    table = PublicTable(
        title=title, meaning=meaning, schema=schema[DEVICE_COLUMN_COUNT:], build=lambda _: frame
    )
    return shown_table(table, frame[is_of_device.to_numpy()], RowOrder(limit=MOST_ROWS))
