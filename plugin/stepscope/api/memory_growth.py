"""Whether a device's memory grows from step to step, what stays behind, and what lies unused."""

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
from stepscope.api.messages import Table
from stepscope.api.metrics import finite, whole
from stepscope.api.public_tables import RowOrder, shown_table
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.frames import Schema
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_ROWS = 5000
CURVE_PIXELS = 1200
DEVICE_COLUMN_COUNT = 2
"""The first columns of these tables say which device: here it is one."""


class GrowthQuery(DeviceQuery, frozen=True, kw_only=True):
    """Of which device; all of the recording is looked at, whatever the time."""


class MemoryGrowth(msgspec.Struct, frozen=True):
    """How a device's memory grows over the steps."""

    schema: int
    device: str
    step_count: int
    growth_bytes: int | None
    """A step: the median of the slopes between all pairs of steps (Theil-Sen)."""
    least_growth_bytes: int | None
    """A step, with 95 % confidence."""
    most_growth_bytes: int | None
    total_growth_bytes: int | None
    """From the first step's end to the last's."""
    confidence: str
    """That it grows: `none`, `low`, `medium` (5 %), `high` (1 %, at least 6 steps)."""
    full_after_step_count: float | None
    """Steps until the device is full, were it to go on."""
    steps: Table
    leaks: Table


class MemoryFragmentation(msgspec.Struct, frozen=True):
    """How much of what a device's allocator reserved lay unused."""

    schema: int
    device: str
    reserved_peak_ns: int
    most_reserved_bytes: int
    unused_bytes: int
    """Of it, not allocated then."""
    unused_share: float | None
    most_unused_bytes: int
    """The most that was ever unused."""
    mean_unused_share: float | None
    """Unused of reserved, both over time."""
    end_unused_bytes: int
    time_ns: list[int]
    over_time_bytes: list[int | None]
    """Reserved and not allocated, at the times beside it; it holds until the next."""
    start_ns: int
    end_ns: int
    """The time of those: what was asked for, else all."""


def memory_growth(trace: Trace, query: GrowthQuery) -> MemoryGrowth:
    """Return how one device's memory grows.

    Raises:
        MissingDataError: the trace has no memory events, or no steps.
    """
    place, peak = select_device(trace, query.device)
    table = growth.memory_growth(trace)
    if place >= len(table):
        msg = "there are too many devices to follow this one over the steps"
        raise NotApplicableError(msg)
    row = table.to_dict("records")[place]
    full = float(row["full_after_step_count"])
    return MemoryGrowth(
        schema=SCHEMA_VERSION,
        device=peak.curve.device.label,
        step_count=int(row["step_count"]),
        **{
            name: whole(float(row[name]))
            for name in (
                "growth_bytes",
                "least_growth_bytes",
                "most_growth_bytes",
                "total_growth_bytes",
            )
        },
        confidence=row["confidence"],
        full_after_step_count=finite(full),
        steps=_own(peak, (by_step.SCHEMA, by_step.memory_by_step(trace)), STEPS),
        leaks=_own(peak, (growth.LEAK_SCHEMA, growth.memory_leaks(trace)), LEAKS),
    )


STEPS = ("Memory by step", "One row a complete step: what it allocated, freed and left behind.")
LEAKS = (
    "Suspected leaks",
    "One row an operator, module and stack whose allocations stay behind in at least two steps and"
    " in half of them; the last step is not looked at, since what it leaves is freed in the next.",
)
OPERATORS = (
    "Memory by operator",
    "One row an operator that allocated or freed memory of the device.",
)


def memory_operators(trace: Trace, query: DeviceQuery) -> Table:
    """Return what each operator allocated and freed in a time.

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
    table = _own(peak, (schema, frame), OPERATORS)
    return msgspec.structs.replace(
        table,
        sort="allocation_bytes",
        empty="No operator allocated or freed memory of this device in that time.",
    )


def memory_fragmentation(trace: Trace, query: DeviceQuery) -> MemoryFragmentation:
    """Return how much of one device's reserved memory lay unused.

    Raises:
        MissingDataError: the trace has no memory events, or does not tell what was reserved.
    """
    _, peak = select_device(trace, query.device)
    device = peak.curve.device
    table = fragmentation.memory_fragmentation(trace)
    own = table[(table["device_type"] == device.type) & (table["device"] == device.number)]
    if not len(own):
        reason = f"the allocator of {device.label} does not say what it reserved"
        raise MissingDataError(reason)
    row: Mapping[Hashable, Any] = own.to_dict("records")[0]
    start_ns, end_ns = bounds(trace, query)
    time_ns, unused = _unused(peak.curve, start_ns, end_ns)
    return MemoryFragmentation(
        schema=SCHEMA_VERSION,
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
    places = decimated_indices(curve.time_ns, [unused], start_ns, end_ns, CURVE_PIXELS)
    values = [whole(value) for value in unused[places].tolist()]
    return curve.time_ns[places].tolist(), values


def _own(peak: Peak, found: tuple[Schema, pd.DataFrame], words: tuple[str, str]) -> Table:
    """Return a device's rows of a table, without the columns that say which device it is."""
    schema, frame = found
    device = peak.curve.device
    is_own = (frame["device_type"] == device.type) & (frame["device"] == device.number)
    title, meaning = words
    table = PublicTable(
        title=title, meaning=meaning, schema=schema[DEVICE_COLUMN_COUNT:], build=lambda _: frame
    )
    return shown_table(table, frame[is_own.to_numpy()], RowOrder(limit=MOST_ROWS))
