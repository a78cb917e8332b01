"""Time of each device by activity: computing, communication, memory, idle.

As HTA's temporal breakdown (`breakdown_analysis.py`), with its "non-compute" split up. Where
several go on at once, computing has the nanosecond, then communication, then memory: what is left
to the latter two is exposed. The share of communication that computing hid is HTA's overlap
(`communication_analysis.py`). HTA measures from a device's first to its last event: that is the
span `device`; `window` is what the other figures here rest on, and each step is a span as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.core.device_activity import DeviceActivity, whole_activity
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_breakdown import times_by_type
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals
from stepscope.model.frames import Column, Schema
from stepscope.model.intervals import Intervals
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("span", "object", "text", "`window`, `device` (its first to last event) or a step."),
    Column("start_ns", "int64", "ns", "Where the span begins."),
    Column("duration_ns", "int64", "ns", "How long it is: the sum of the next four."),
    Column("compute_ns", "int64", "ns", "A kernel ran that is no collective."),
    Column("exposed_communication_ns", "int64", "ns", "A collective ran, and nothing computed."),
    Column(
        "exposed_memory_ns", "int64", "ns", "Memory was copied or set, and nothing else went on."
    ),
    Column("idle_ns", "int64", "ns", "Nothing ran."),
    Column("communication_ns", "int64", "ns", "A collective ran, hidden or not."),
    Column("memory_ns", "int64", "ns", "Memory was copied or set, hidden or not."),
    Column("compute_share", "float64", "share", "Of the span; NaN where that has no length."),
    Column("exposed_communication_share", "float64", "share", "Of the span."),
    Column("exposed_memory_share", "float64", "share", "Of the span."),
    Column("idle_share", "float64", "share", "Of the span."),
    Column(
        "overlap_share",
        "float64",
        "share",
        "Of communication: the part in which something computed (HTA); NaN: no communication.",
    ),
)
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
    spans = [_Span("window", of_window.start_ns, of_window.device_end_ns)]
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
