"""Copies and memory sets: number, bytes, bandwidth and exposed time.

The rate of a copy is the recorded one (`memory bandwidth (GB/s)`, which kineto computes from
nanoseconds), else its bytes over its duration: in traces of whole microseconds that is off by
half for short ones. The rate of several is all their bytes over all their time.

Exposed is the time in which `step_breakdown` has Memcpy, or Memset: within the steps, a device
copies and nothing computes or communicates. Where several copies run side by side, the one that
began first has that time, so that all rows sum to the steps' totals.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.collective_bandwidth import bytes_per_second
from stepscope.analyses.core.event_references import lines_of_device_events
from stepscope.analyses.core.links import links
from stepscope.analyses.steps.step_breakdown import exclusive_times
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.copies import moved_bytes
from stepscope.model.table import plain_values, public_table, to_frame
from stepscope.model.trace import Trace, computed

RECORDED_RATE = "memory bandwidth (GB/s)"
MOST_GIGABYTES = 1e9
"""A second: what says more is damage, no rate."""
MEMORIES = re.compile(r"\(([\w ]{1,40})->([\w ]{1,40})\)")
"""`Memcpy HtoD (Pageable -> Device)`: CUPTI's, roctracer's and PTI's kinds of memory."""
WHAT: Schema = (
    Column("name", "object", "text", "The name as the profiler wrote it."),
    Column("direction", "object", "text", "`HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH` or `other`."),
    Column("from_memory", "object", "text", "Where it copied from, in the vendor's word:"
           " `pageable`, `pinned`, `device`, `host` (pageable or pinned, ROCm does not say), …;"
           " None: not recorded."),
    Column("to_memory", "object", "text", "Where it copied to, likewise."),
)  # fmt: skip
WHO: Schema = (
    Column("operator", "object", "text", "The innermost operator that asked for it; None: none."),
    Column("source_line", "object", "text", "The user's own line that led to it; None: no stacks."),
)
FIGURES: Schema = (
    Column("call_count", "int64", "count", "How often it ran."),
    Column("total_bytes", "float64", "bytes", "Sum of their bytes; NaN: none says."),
    Column("no_bytes_count", "int64", "count", "Those that do not say how many bytes."),
    Column("total_ns", "int64", "ns", "Sum of their durations."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("p95_ns", "float64", "ns", "95th percentile of durations."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("bytes_per_second", "float64", "bytes/s", "All bytes over all time: the mean rate,"
           " weighted by duration; NaN: not recorded."),
    Column("mean_bytes_per_second", "float64", "bytes/s", "Mean of each one's own rate (HTA's"
           " memory bandwidth): small ones pull it down."),
    Column("exposed_ns", "int64", "ns", "Within the steps, while nothing computed or"
           " communicated; sums to `step_breakdown`'s."),
    Column("streams", "object", "text", "The streams it ran on."),
    Column("devices", "object", "text", "The devices it ran on."),
)  # fmt: skip
COPIES: Schema = (*WHAT, *FIGURES)
COPIES_BY_OWNER: Schema = (*WHAT, *WHO, *FIGURES)
MEMORY_SETS: Schema = (WHAT[0], *WHO, *FIGURES)


@public_table(
    "copies",
    COPIES,
    "One row per kind of copy between memories: how many bytes, how fast, and how much of its"
    " time nothing hid.",
)
@computed
def copies(trace: Trace) -> pd.DataFrame:
    """Return one row a name of copies: a direction and two kinds of memory. Most time first."""
    return _table(trace, Kind.COPY, COPIES)


@public_table(
    "copies-by-owner",
    COPIES_BY_OWNER,
    "One row per kind of copy, the operator that asked for it, and the line of the user's own"
    " code that led there.",
)
@computed
def copies_by_owner(trace: Trace) -> pd.DataFrame:
    """Return one row per name of copies, requesting operator and source line."""
    return _table(trace, Kind.COPY, COPIES_BY_OWNER)


@public_table(
    "memory-sets",
    MEMORY_SETS,
    "One row per kind of memory set (filling with a value), the operator that asked for it, and"
    " the line of the user's own code that led there.",
)
@computed
def memory_sets(trace: Trace) -> pd.DataFrame:
    """Return one row per name of memory sets, requesting operator and source line."""
    return _table(trace, Kind.MEMORY_SET, MEMORY_SETS)


def exposed_ns(trace: Trace, rows: Ints, category: str) -> Ints:
    """Return how much of a category's time in the steps each of its device events has.

    `rows` are all of them, in the order they began; of several at once the first has the time.
    """
    events = trace.device_events
    start, end = events["start_ns"].to_numpy()[rows], events["end_ns"].to_numpy()[rows]
    taken_until = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1]
    begin = np.maximum(start, taken_until)
    return intervals.covered_ns(exclusive_times(trace)[category], begin, np.maximum(begin, end))


def transfer_rates(trace: Trace, rows: Ints, size: Floats) -> Floats:
    """Return the bytes per second of device events with so many bytes; NaN where not known."""
    events = trace.device_events
    recorded = trace.source.number(RECORDED_RATE, events["event"].to_numpy()[rows])
    is_rate = (recorded > 0) & (recorded < MOST_GIGABYTES)
    reckoned = bytes_per_second(size, events["duration_ns"].to_numpy()[rows].astype(np.float64))
    rate = np.where(is_rate, np.where(is_rate, recorded, 0) * 1e9, reckoned)
    return np.where(size > 0, rate, np.nan)


def _table(trace: Trace, kind: Kind, schema: Schema) -> pd.DataFrame:
    rows = np.flatnonzero(trace.device_events["kind"].to_numpy() == int(kind))
    per_event = _identified(trace, rows, kind, [column.name for column in schema])
    by = [column.name for column in (*WHAT, *WHO) if column.name in per_event]
    group, first = statistics.group_rows(per_event, by)
    columns = {name: plain_values(per_event[name].iloc[first]) for name in by}
    columns |= _figures(trace, rows, kind, group)
    return to_frame(schema, columns, "-total_ns", *by)


def _identified(trace: Trace, rows: Ints, kind: Kind, columns: Sequence[str]) -> pd.DataFrame:
    """Return the identifying columns of each event, and its owner where requested."""
    name = trace.device_events["name"].array[rows].remove_unused_categories()
    per_event: dict[str, Any] = {"name": name}
    if kind == Kind.COPY:
        per_event["direction"] = trace.copies["direction"].array
        per_event["from_memory"], per_event["to_memory"] = _memories(name)
    if "operator" in columns:
        names = trace.host_calls["name"].cat
        owner = links(trace).owner_of_device_event[rows]
        codes = np.append(names.codes.to_numpy(), -1)[owner]
        per_event["operator"] = pd.Categorical.from_codes(codes, categories=names.categories)
        per_event["source_line"] = lines_of_device_events(trace, rows)
    return pd.DataFrame(per_event)


def _memories(names: pd.Categorical) -> tuple[pd.Categorical, pd.Categorical]:
    """Return from and to which memory each copy went, by its name."""
    matches = [MEMORIES.search(str(name)) for name in names.categories]
    return tuple(  # type: ignore[return-value]
        _translated(names, [match[side].strip().lower() if match else None for match in matches])
        for side in (1, 2)
    )


def _translated(names: pd.Categorical, words: Sequence[str | None]) -> pd.Categorical:
    codes, distinct = pd.factorize(np.array([*words, None], dtype=object))
    return pd.Categorical.from_codes(
        codes[names.codes], categories=pd.Index(distinct, dtype=object)
    )


def _figures(trace: Trace, rows: Ints, kind: Kind, group: Ints) -> dict[str, NDArray[Any]]:
    events, count = trace.device_events, int(group.max()) + 1 if len(group) else 0
    duration = events["duration_ns"].to_numpy()[rows]
    category = "memcpy" if kind == Kind.COPY else "memset"
    return {
        **statistics.duration_columns(FIGURES, duration, group, count),
        "exposed_ns": statistics.sums(exposed_ns(trace, rows, category), group, count),
        "streams": statistics.distinct_numbers(events["stream"].to_numpy()[rows], group, count),
        "devices": statistics.distinct_numbers(events["device"].to_numpy()[rows], group, count),
        **_speed(trace, rows, group, count),
    }


def _speed(trace: Trace, rows: Ints, group: Ints, count: int) -> dict[str, NDArray[Any]]:
    size = moved_bytes(trace.source, trace.device_events["event"].to_numpy()[rows])
    says = ~np.isnan(size)
    total = np.bincount(group[says], weights=size[says], minlength=count)
    recorded_count = np.bincount(group[says], minlength=count)
    rate = transfer_rates(trace, rows, size)
    timed = ~np.isnan(rate)
    # all bytes over all time is the harmonic mean of the rates, weighted by bytes
    seconds = np.bincount(group[timed], weights=(size / rate)[timed], minlength=count)
    moved = np.bincount(group[timed], weights=size[timed], minlength=count)
    return {
        "total_bytes": np.where(recorded_count > 0, total, np.nan),
        "no_bytes_count": np.bincount(group[~says], minlength=count),
        "bytes_per_second": statistics.ratio(moved, seconds),
        "mean_bytes_per_second": statistics.nan_mean(rate, group, count),
    }
