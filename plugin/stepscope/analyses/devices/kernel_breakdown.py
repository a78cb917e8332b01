"""Time of each device by type of work: alone, overlapping others, exposed, and idle.

Types are HTA's (`get_gpu_kernel_breakdown`): computing, communication (collectives) and memory
(copies and memory sets). `type_statistics` is of the events, concurrent ones counted each;
`type_overlaps` is of time, each nanosecond counted once, by the types that ran in it.

`temporal_breakdown` is HTA's (`breakdown_analysis.py`), with its "non-compute" split up. Concurrent
work counts as computing, else as communication, else as memory: the latter two are exposed. The
fraction of communication that computing hides is HTA's overlap (`communication_analysis.py`). HTA
measures from a device's first to its last event, the span `device`; `window` is that of the other
analyses, and each step is a span as well.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.device_activity import DeviceActivity, whole_activity
from stepscope.analyses.core.window import window
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

TYPES = ("compute", "communication", "memory")
STATISTICS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("type", "object", "text", "`compute`, `communication` or `memory`."),
    Column("call_count", "int64", "count", "How many kernels, copies or memory sets."),
    Column("total_ns", "int64", "ns", "Sum of their durations, concurrent ones counted each."),
    Column("busy_ns", "int64", "ns", "Time in which any of them ran."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
    Column("min_ns", "int64", "ns", "Shortest duration."),
    Column("max_ns", "int64", "ns", "Longest duration."),
    Column("standard_deviation_ns", "float64", "ns", "Of a sample (HTA); NaN for a single one."),
)
OVERLAPS: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("types", "object", "text", "What ran at once, joined by ` + `; nothing else did."),
    Column("duration_ns", "int64", "ns", "For how long; a device's rows sum to its busy time."),
    Column("busy_share", "float64", "share", "Of the time in which the device did anything."),
)


@public_table(
    "kernel-types",
    STATISTICS,
    "One row per device and type of work (computing, communication, memory): how often it ran and"
    " for how long.",
)
@computed
def type_statistics(trace: Trace) -> pd.DataFrame:
    """Return one row per device and type of work on it, over the whole trace."""
    rows = [row for device in whole_activity(trace) for row in _statistics(trace, device)]
    return rows_to_frame(STATISTICS, rows)


@public_table(
    "kernel-type-overlaps",
    OVERLAPS,
    "One row per device and set of types of work: how long these ran at once and no other.",
    title="Overlaps of kernel types",
)
@computed
def type_overlaps(trace: Trace) -> pd.DataFrame:
    """Return one row a device and set of types that ran at once, longest first."""
    rows = [row for device in whole_activity(trace) for row in _overlaps(device)]
    return rows_to_frame(OVERLAPS, rows)


def times_by_type(device: DeviceActivity) -> dict[str, Intervals]:
    """Return when work of each of `TYPES` ran."""
    memory = intervals.merged(device.copies, device.memory_sets)
    return dict(zip(TYPES, (device.computation, device.communication, memory), strict=True))


def _statistics(trace: Trace, device: DeviceActivity) -> list[dict[str, object]]:
    duration = trace.device_events["duration_ns"].to_numpy()[device.rows]
    kind = _types(trace)[device.rows]
    figures = group_statistics.duration_columns(STATISTICS, duration, kind, len(TYPES))
    busy = {name: intervals.duration_ns(of) for name, of in times_by_type(device).items()}
    return [
        {
            "device": device.device,
            "type": name,
            "busy_ns": busy[name],
            **{figure: values[index] for figure, values in figures.items()},
        }
        for index, name in enumerate(TYPES)
        if figures["call_count"][index]
    ]


def _types(trace: Trace) -> Ints:
    """Return each device event's place in `TYPES`."""
    events = trace.device_events
    is_kernel = events["kind"].to_numpy() == int(Kind.KERNEL)
    of_kernels = events["is_collective"].to_numpy().astype(np.int64)
    return np.where(is_kernel, of_kernels, TYPES.index("memory"))


def _overlaps(device: DeviceActivity) -> list[dict[str, object]]:
    times = times_by_type(device)
    busy_ns = intervals.duration_ns(device.busy)
    rows: list[dict[str, object]] = []
    for size in range(1, len(TYPES) + 1):
        for together in combinations(TYPES, size):
            duration_ns = intervals.duration_ns(_only(times, together))
            if duration_ns:
                row = {"device": device.device, "types": " + ".join(together)}
                rows.append(
                    {**row, "duration_ns": duration_ns, "busy_share": duration_ns / busy_ns}
                )
    return sorted(rows, key=lambda row: -int(str(row["duration_ns"])))


def _only(times: dict[str, Intervals], together: tuple[str, ...]) -> Intervals:
    """Return when all of these ran and none of the others."""
    common = times[together[0]]
    for name in together[1:]:
        common = intervals.intersection(common, times[name])
    others = intervals.merged(*(of for name, of in times.items() if name not in together))
    return intervals.difference(common, others)


SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("span", "object", "text", "`window`, `device` (its first to last event) or a step."),
    Column("start_ns", "int64", "ns", "Where the span begins."),
    Column("duration_ns", "int64", "ns", "How long it is: the sum of the next four."),
    Column("compute_ns", "int64", "ns", "A kernel ran that is no collective."),
    Column("exposed_communication_ns", "int64", "ns", "A collective ran, and nothing computed."),
    Column("exposed_memory_ns", "int64", "ns", "Memory was copied or set, and nothing else went"
           " on."),
    Column("idle_ns", "int64", "ns", "Nothing ran."),
    Column("communication_ns", "int64", "ns", "A collective ran, hidden or not."),
    Column("memory_ns", "int64", "ns", "Memory was copied or set, hidden or not."),
    Column("compute_share", "float64", "share", "Of the span; NaN where that has no length."),
    Column("exposed_communication_share", "float64", "share", "Of the span."),
    Column("exposed_memory_share", "float64", "share", "Of the span."),
    Column("idle_share", "float64", "share", "Of the span."),
    Column("overlap_share", "float64", "share", "Of communication: the part in which something"
           " computed (HTA); NaN: no communication."),
)  # fmt: skip
PARTS = ("compute", "exposed_communication", "exposed_memory", "idle")
"""They sum to the span."""


class _Span(NamedTuple):
    name: str
    start_ns: int
    end_ns: int


@public_table(
    "temporal-breakdown",
    SCHEMA,
    "One row per device and span of time (the window, the device's own first to last event, each"
    " step): how long it computed, communicated, moved memory, and was idle.",
)
@computed
def temporal_breakdown(trace: Trace) -> pd.DataFrame:
    """Return one row a device and span: the window, the device's own extent, and every step."""
    steps = _steps(trace)
    rows = [row for device in whole_activity(trace) for row in _rows(trace, device, steps)]
    return rows_to_frame(SCHEMA, rows)


def _steps(trace: Trace) -> list[_Span]:
    steps = step_breakdown(trace)
    if not steps.step_count:
        return []
    ends = (steps.start_ns + steps.duration_ns).tolist()
    return [_Span(*of) for of in zip(steps.names, steps.start_ns.tolist(), ends, strict=True)]


def _rows(trace: Trace, device: DeviceActivity, steps: list[_Span]) -> Iterator[dict[str, object]]:
    of_window, busy = window(trace), device.busy
    extent = (int(busy[0, 0]), int(busy[-1, 1])) if len(busy) else (0, 0)
    spans = [_Span("window", of_window.device_start_ns, of_window.device_end_ns)]
    spans += [_Span("device", *extent), *steps]
    times = _times(device)
    start, end = (np.array(borders) for borders in zip(*(span[1:] for span in spans), strict=True))
    covered = {part: intervals.covered_ns(of, start, end) for part, of in times.items()}
    for index, span in enumerate(spans):
        lengths = {part: int(length[index]) for part, length in covered.items()}
        yield _row(device.device, span, lengths)


def _times(device: DeviceActivity) -> dict[str, Intervals]:
    times = times_by_type(device)
    compute, communication, memory = times.values()
    return {
        **times,
        "exposed_communication": intervals.difference(communication, compute),
        "exposed_memory": intervals.difference(memory, device.kernels),
        "busy": device.busy,
    }


def _row(device: int, span: _Span, lengths: dict[str, int]) -> dict[str, object]:
    duration_ns = span.end_ns - span.start_ns
    lengths = {**lengths, "idle": duration_ns - lengths["busy"]}
    communication = lengths["communication"]
    return {
        "device": device,
        "span": span.name,
        "start_ns": span.start_ns,
        "duration_ns": duration_ns,
        **{f"{part}_ns": lengths[part] for part in (*PARTS, "communication", "memory")},
        **{f"{part}_share": _share(lengths[part], duration_ns) for part in PARTS},
        "overlap_share": 1 - _share(lengths["exposed_communication"], communication),
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
