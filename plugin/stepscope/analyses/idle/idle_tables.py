"""Tables of idle time by device, by step, and by stream, from `analyses/idle/ledger.py`.

The rows of a device, or of a stream, sum to its idle time in the window.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.device_activity import DeviceActivity, device_activity
from stepscope.analyses.core.group_statistics import ratio
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import CAUSES, Ledger, idle_ledger, ledger_of
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, rows_to_frame, to_frame
from stepscope.model.trace import Trace, computed

_MEANINGS = " ".join(f"`{cause}`: {meaning}" for cause, (_, meaning) in CAUSES.items())
DEVICE = Column("device", "int64", "id", "The device's number.")
CAUSE = Column("cause", "object", "", f"The cause of the idle time. {_MEANINGS}")
COUNT = Column("count", "int64", "count", "Idle intervals of this cause.")
IDLE = Column("idle_ns", "int64", "ns", "Their total duration.")
LONGEST = Column("longest_ns", "int64", "ns", "The longest of them.")
WINDOW_SHARE = Column("window_share", "float64", "share", "Of the window, the device's part.")
SCHEMA: Schema = (
    DEVICE,
    CAUSE,
    COUNT,
    IDLE,
    LONGEST,
    Column("idle_share", "float64", "share", "Of the device's idle time."),
    WINDOW_SHARE,
)
MOST_STREAMS = 256
STEP_SCHEMA: Schema = (
    DEVICE,
    Column("step", "object", "text", "The step's name; None: between steps, and after the last."),
    CAUSE,
    IDLE,
    Column("step_share", "float64", "share", "Of the step's duration; NaN: outside steps."),
)
STREAM_SCHEMA: Schema = (
    DEVICE,
    Column("stream", "int64", "id", "The stream on that device; -1: not recorded."),
    CAUSE,
    COUNT,
    IDLE,
    LONGEST,
    Column("device_idle_ns", "int64", "ns", "The part in which the whole device is idle."),
    WINDOW_SHARE,
)


@public_table(
    "idle",
    SCHEMA,
    "One row per device and cause: its idle time in the window. The rows of a device sum to its"
    " idle time.",
    title="Idle time",
)
@computed
def idle_by_cause(trace: Trace) -> pd.DataFrame:
    """Return one row per device and cause, the longest first on each device.

    Raises:
        MissingDataError: no device event was recorded.
    """
    requirements.main_device(trace)
    rows: list[dict[str, Any]] = []
    for device, ledger in idle_ledger(trace).items():
        idle_ns = max(1, sum(ledger.idle_ns.values()))
        rows += [
            {"device": device, **row, "idle_share": row["idle_ns"] / idle_ns}
            for row in _rows(trace, ledger)
        ]
    return rows_to_frame(SCHEMA, rows, "device", "-idle_ns")


@public_table(
    "idle-by-step",
    STEP_SCHEMA,
    "One row per device, step and cause. The rows of a device sum to its idle time.",
    title="Idle time by step",
)
@computed
def idle_by_step(trace: Trace) -> pd.DataFrame:
    """Return one row per device, step and cause with idle time, by time.

    Raises:
        MissingDataError: no device event was recorded.
    """
    requirements.main_device(trace)
    steps = step_breakdown(trace)
    start, duration = steps.start_ns, steps.duration_ns
    names = np.array([*steps.names, None], dtype=object)
    parts = []
    for device, ledger in idle_ledger(trace).items():
        by_step = np.zeros((len(names), len(CAUSES)), dtype=np.int64)
        for index, times in enumerate(ledger.times.values()):
            by_step[:-1, index] = intervals.covered_ns(times, start, start + duration)
            by_step[-1, index] = intervals.duration_ns(times) - by_step[:-1, index].sum()
        step, cause = np.nonzero(by_step)
        parts.append((np.full(len(step), device), step, cause, by_step[step, cause]))
    number, step, cause, idle = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = {
        "device": number,
        "step": names[step],
        "cause": np.array(list(CAUSES), dtype=object)[cause],
        "idle_ns": idle,
        "step_share": ratio(idle, np.append(duration, 0)[step]),
    }
    return to_frame(STEP_SCHEMA, columns)


@public_table(
    "idle-by-stream",
    STREAM_SCHEMA,
    "One row per stream and cause. The rows of a stream sum to its idle time in the window.",
    title="Idle time by stream",
)
@computed
def idle_by_stream(trace: Trace) -> pd.DataFrame:
    """Return one row per stream and cause with idle time, the longest first on each stream.

    A stream is idle between its events; while other streams work, it may be `queued` behind them.
    Of a device with more than `MOST_STREAMS`, those with fewest events are left out.

    Raises:
        MissingDataError: no device event was recorded.
    """
    requirements.main_device(trace)
    rows: list[dict[str, Any]] = []
    for activity in device_activity(trace):
        gaps = idle_ledger(trace)[activity.device].gaps
        for stream, stream_rows, busy in _streams(trace, activity):
            ledger = ledger_of(trace, activity.device, stream_rows, busy)
            for row in _rows(trace, ledger):
                both = intervals.intersection(ledger.times[row["cause"]], gaps)
                identity = {"device": activity.device, "stream": stream}
                rows.append({**identity, **row, "device_idle_ns": intervals.duration_ns(both)})
    return rows_to_frame(STREAM_SCHEMA, rows, "device", "stream", "-idle_ns")


def _streams(
    trace: Trace, activity: DeviceActivity
) -> Iterator[tuple[int, Ints, intervals.Intervals]]:
    events, span = trace.device_events, window(trace)
    stream = events["stream"].to_numpy()[activity.rows]
    order = np.argsort(stream, kind="stable")
    bounds = np.flatnonzero(np.diff(stream[order])) + 1
    parts = sorted(np.split(order, bounds), key=len, reverse=True)
    for members in parts[:MOST_STREAMS]:
        rows = activity.rows[members]
        busy = frame_times.times(events, rows)
        yield (
            int(stream[members[0]]),
            rows,
            intervals.clip(busy, span.start_ns, span.device_end_ns),
        )


def _rows(trace: Trace, ledger: Ledger) -> Iterator[dict[str, Any]]:
    window_ns = max(1, window(trace).device_duration_ns)
    for cause, times in ledger.times.items():
        idle_ns = intervals.duration_ns(times)
        if not idle_ns:
            continue
        yield {
            "cause": cause,
            "count": len(times),
            "idle_ns": idle_ns,
            "longest_ns": int((times[:, 1] - times[:, 0]).max()),
            "window_share": idle_ns / window_ns,
        }
