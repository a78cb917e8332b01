"""Report of `stepscope memory`: sentences and their tables; and out-of-memory errors.

torch records `[OutOfMemory]` with the requested size and the allocator's totals
(`torch/csrc/profiler/collection.h`, `ExtraFields<EventType::OutOfMemory>`). The allocator has then
already returned unused segments to the device and tried again (`CUDACachingAllocator.cpp`).
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import enclosing_operator
from stepscope.analyses.memory import at_peak as memory_at_peak
from stepscope.analyses.memory import fragmentation as memory_fragmentation
from stepscope.analyses.memory import growth as memory_growth
from stepscope.analyses.memory import holders as memory_holders
from stepscope.analyses.memory.allocations import SCHEMA as ALLOCATION_SCHEMA
from stepscope.analyses.memory.allocations import memory_allocations
from stepscope.analyses.memory.at_peak import memory_peak_table
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.memory_devices import REMEDY
from stepscope.base import formatting
from stepscope.base.errors import MissingDataError
from stepscope.dialects import MEMORY_DEVICES
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import THREAD, Column, Schema
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

NAME = "[OutOfMemory]"
CAUSES = {
    "fragmented": "So much was reserved and unused, but in pieces that were too small.",
    "full": "Not so much was reserved and unused, and the device had no more to give.",
    "unknown": "The totals, or the requested bytes, were not recorded.",
}
SCHEMA: Schema = (
    Column("event", "int64", "id", "The event's place in the file."),
    Column("time_ns", "int64", "ns", "When, from the trace's first event."),
    THREAD,
    Column("device_type", "object", "text", "`CUDA`, `HIP`, … (c10::DeviceType)."),
    Column("device", "int64", "id", "The allocator's number of the device."),
    Column("asked_bytes", "int64", "bytes", "Requested bytes; -1: not recorded."),
    Column("allocated_bytes", "float64", "bytes", "Allocated then (torch); NaN: not known."),
    Column("reserved_bytes", "float64", "bytes", "Reserved then (torch); NaN: not known."),
    Column("unused_bytes", "float64", "bytes", "Reserved then and not allocated."),
    Column(
        "cause",
        "object",
        "text",
        " ".join(f"`{name}`: {meaning}" for name, meaning in CAUSES.items()),
    ),
    Column("operator", "object", "text", "The innermost operator around it; None: none ran."),
)


@public_table(
    "memory-ooms",
    SCHEMA,
    "One row per out-of-memory error: requested and unused memory.",
    title="Out of memory",
)
@computed
def memory_ooms(trace: Trace) -> pd.DataFrame:
    """Return one row per out-of-memory error, in `SCHEMA` columns, by time.

    Raises:
        MissingDataError: no memory was recorded, so that nobody can tell.
    """
    source, rows = trace.source, _rows(trace)
    if not len(rows) and not len(trace.memory):
        reason = "no memory was recorded"
        raise MissingDataError(reason, REMEDY)
    requested = source.whole("Bytes", rows)
    allocated, reserved = (
        source.number(f"Total {what}", rows) for what in ("Allocated", "Reserved")
    )
    unused = reserved - allocated
    types = [
        MEMORY_DEVICES.get(code, f"type {code}")
        for code in source.whole("Device Type", rows).tolist()
    ]
    is_unknown = np.isnan(unused) | (requested < 0)
    cause = np.select([is_unknown, unused >= requested], ["unknown", "fragmented"], "full")
    time_ns = source.columns.start_ns[rows]
    moments = pd.DataFrame({"thread": source.thread(rows), "start_ns": time_ns, "end_ns": time_ns})
    names = trace.host_calls["name"].cat
    code = np.append(names.codes.to_numpy(), NONE)[enclosing_operator(trace, moments)]
    operator = np.array([*names.categories, None], dtype=object)[code]
    return pd.DataFrame(
        {
            "event": rows,
            "time_ns": time_ns,
            "thread": moments["thread"],
            "device_type": pd.Series(types, dtype=object),
            "device": source.whole("Device Id", rows),
            "asked_bytes": requested,
            "allocated_bytes": allocated,
            "reserved_bytes": reserved,
            "unused_bytes": unused,
            "cause": pd.Series(cause.astype(object), dtype=object),
            "operator": pd.Series(operator, dtype=object),
        }
    )


def _rows(trace: Trace) -> Ints:
    columns = trace.columns
    code = columns.strings.index(NAME) if NAME in columns.strings else NONE - 1
    rows = np.flatnonzero((columns.name == code) & (columns.start_ns != NO_TIME))
    return rows[np.argsort(columns.start_ns[rows], kind="stable")]


What = Literal["trace", "timeline", "snapshot"]
NO_TOTALS = (
    "PyTorch before 1.10 recorded neither total memory nor addresses: this shows the change since"
    " the start of the trace, without the origin of allocations."
)
CPU_ONLY = "CPU memory counts only allocations made while the profiler ran."


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryTable:
    """One table of a report."""

    name: str
    title: str
    schema: Schema
    rows: pd.DataFrame
    """In the columns of `schema`."""
    left_out: int = 0
    """Number of rows left out."""
    missing: str = ""
    """Reason why there are no rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryReport:
    """Memory report of one file."""

    what: What
    summary: tuple[str, ...]
    """Sentences."""
    tables: tuple[MemoryTable, ...]


def first_rows(
    name: str, title: str, content: tuple[Schema, pd.DataFrame], most_rows: int
) -> MemoryTable:
    """Return a table of the first, most important rows."""
    schema, frame = content
    rows = frame.head(most_rows).reset_index(drop=True)
    columns = [column.name for column in schema]
    left_out = len(frame) - len(rows)
    return MemoryTable(name=name, title=title, schema=schema, rows=rows[columns], left_out=left_out)


def report_of_trace(trace: Trace, *, most_rows: int) -> MemoryReport:
    """Return a trace's report: peak, holders, growth, fragmentation, and live memory.

    Raises:
        MissingDataError: no memory was recorded in it.
    """
    peaks = memory_peak_table(trace)
    schemas = memory_at_peak.SCHEMA, memory_holders.SCHEMA
    makers: tuple[tuple[str, str, Schema, Callable[[], pd.DataFrame]], ...] = (
        ("peak", "Peak of each device", schemas[0], lambda: peaks),
        ("holders", "Memory at the peak, by operator", schemas[1], lambda: _by(trace, "operator")),
        ("modules", "Memory at the peak, by module", schemas[1], lambda: _by(trace, "module")),
        ("stacks", "Memory at the peak, by stack", schemas[1], lambda: _by(trace, "stack")),
        ("growth", "Growth", memory_growth.SCHEMA, lambda: memory_growth.memory_growth(trace)),
        (
            "leaks",
            "Suspected leaks",
            memory_growth.LEAK_SCHEMA,
            lambda: memory_growth.memory_leaks(trace),
        ),
        (
            "fragmentation",
            "Reserved and unused",
            memory_fragmentation.SCHEMA,
            lambda: memory_fragmentation.memory_fragmentation(trace),
        ),
        ("ooms", "Out of memory", SCHEMA, lambda: memory_ooms(trace)),
        ("held", "Largest that is still held", ALLOCATION_SCHEMA, lambda: _live(trace)),
    )
    tables = tuple(_table(*maker, most_rows) for maker in makers)
    return MemoryReport(what="trace", summary=_summary(trace, peaks), tables=tables)


def _table(
    name: str, title: str, schema: Schema, make: Callable[[], pd.DataFrame], most_rows: int
) -> MemoryTable:
    try:
        return first_rows(name, title, (schema, make()), most_rows)
    except MissingDataError as missing:
        empty = rows_to_frame(schema, ())
        why = f"{missing.reason}; record: {missing.remedy}" if missing.remedy else missing.reason
        return MemoryTable(name=name, title=title, schema=schema, rows=empty, missing=why)


def _by(trace: Trace, by: memory_holders.By) -> pd.DataFrame:
    holders = memory_holders.memory_holders(trace, by)
    if by != "operator" and holders["holder"].isna().all():
        reason = "no Python calls were recorded"
        raise MissingDataError(reason, "torch.profiler.profile(..., with_stack=True)")
    return holders.sort_values("held_bytes", ascending=False, kind="stable")


def _live(trace: Trace) -> pd.DataFrame:
    allocations = memory_allocations(trace)
    live = allocations[(allocations["state"] == "held").to_numpy()]
    return live.sort_values("bytes", ascending=False, kind="stable")


def _summary(trace: Trace, peaks: pd.DataFrame) -> tuple[str, ...]:
    sentences = [
        _of_peak(row, curve.device.label)
        for row, curve in zip(peaks.to_dict("records"), memory_curves(trace), strict=True)
    ]
    if not any(curve.has_totals for curve in memory_curves(trace)):
        sentences.append(NO_TOTALS)
    elif (peaks["device_type"] == "CPU").any():
        sentences.append(CPU_ONLY)
    return tuple(sentences)


def _of_peak(row: Mapping[Hashable, Any], label: str) -> str:
    when = f"{formatting.duration(row['peak_ns'])} after the trace's first event"
    if pd.isna(row["allocated_bytes"]):
        size = formatting.size(row["change_bytes"])
        return f"{label} held {size} more than at the beginning, {when}."
    explained = formatting.size(row["recorded_bytes"] + row["earlier_bytes"])
    size = formatting.size(row["allocated_bytes"])
    reserved = row["reserved_bytes"]
    of_reserved = "" if pd.isna(reserved) else f" of {formatting.size(reserved)} reserved"
    return f"{label} held at most {size}{of_reserved}, {when}; the trace records {explained}."
