"""Tables of idle time by device, by step, by stream, and by source line, from `idle/ledger.py`.

The rows of a device, or of a stream, sum to its idle time in the window. The source line of idle
time after a wait is the wait's, that of queued work the launch's, else that of the main thread at
the time. Each nanosecond of the ledger has one location.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.device_activity import DeviceActivity, device_activity
from stepscope.analyses.core.event_references import call_stack_lines, user_calls
from stepscope.analyses.core.group_statistics import ratio, sums
from stepscope.analyses.core.host_activity import main_thread_stacks
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import outermost_operator, synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import CAUSES, Ledger, idle_ledger, ledger_of
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, rows_to_frame, to_frame
from stepscope.model.trace import Trace, computed

_MEANINGS = " ".join(f"`{cause}`: {meaning}" for cause, (_, meaning) in CAUSES.items())
DEVICE = Column("device", "int64", "id", "The device's number.")
CAUSE = Column("cause", "object", "", f"The cause of the idle time. {_MEANINGS}")
COUNT = Column("count", "int64", "count", "Idle intervals of this cause.")
IDLE = Column("idle_ns", "int64", "ns", "Their total duration.")
LONGEST = Column("longest_ns", "int64", "ns", "The longest of them.")
WINDOW_SHARE = Column("window_share", "float64", "share", "Of the window, so of the mean step.")
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
    Column("step", "object", "text", "The step's name."),
    CAUSE,
    IDLE,
    Column("step_share", "float64", "share", "Of the step's duration."),
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
    names = np.array(steps.names, dtype=object)
    parts = []
    for device, ledger in idle_ledger(trace).items():
        by_step = np.zeros((len(names), len(CAUSES)), dtype=np.int64)
        for index, times in enumerate(ledger.times.values()):
            by_step[:, index] = intervals.covered_ns(times, start, start + duration)
        step, cause = np.nonzero(by_step)
        parts.append((np.full(len(step), device), step, cause, by_step[step, cause]))
    number, step, cause, idle = (np.concatenate(column) for column in zip(*parts, strict=True))
    columns = {
        "device": number,
        "step": names[step],
        "cause": np.array(list(CAUSES), dtype=object)[cause],
        "idle_ns": idle,
        "step_share": ratio(idle, duration[step]),
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
            intervals.clip(busy, span.device_start_ns, span.device_end_ns),
        )


def _rows(trace: Trace, ledger: Ledger) -> Iterator[dict[str, Any]]:
    window_ns = max(1, window(trace).duration_ns)
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


RECORD_STACKS = "torch.profiler.profile(..., with_stack=True)"
NAMES = tuple(CAUSES)
MOVING = frozenset({"dataloader", "alloc", "dispatch", "host-stall"})
"""Causes that are located by the main thread at the time."""
SOURCE_SCHEMA: Schema = (
    DEVICE,
    CAUSE,
    Column("operator", "object", "text", "The outermost operator that waited, or that launched"
           " the next work; None: no operator."),
    Column("annotation", "object", "text", "The main thread's innermost `record_function` range."),
    Column("source_line", "object", "text", "The user's innermost function; None: see `remedy`."),
    Column("remedy", "object", "text", "The line of code that records the source line."),
    Column("gap_count", "int64", "count", "Gaps with such time."),
    IDLE,
    Column("idle_share", "float64", "share", "Of the device's idle time."),
    WINDOW_SHARE,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pieces:
    """Idle time in pieces with one location each; all arrays are parallel."""

    cause: Ints
    gap: Ints
    stretch: Ints
    """A row of `main_thread_stacks`, or -1."""
    owner: Ints
    """The operator, as a `host_calls` row, or -1."""
    idle_ns: Ints


@public_table(
    "idle-by-source-line",
    SOURCE_SCHEMA,
    "One row per device, cause and code location: the operator and the line of code that leave"
    " the device idle. The rows of a device sum to its idle time.",
    title="Idle time by source line",
)
@computed
def idle_by_source_line(trace: Trace) -> pd.DataFrame:
    """Return one row per device, cause, operator, annotation and source line, longest first.

    Raises:
        MissingDataError: no device event was recorded.
    """
    requirements.main_device(trace)
    frames = [_source_rows(trace, device, ledger) for device, ledger in idle_ledger(trace).items()]
    return pd.concat(frames, ignore_index=True)


def _source_rows(trace: Trace, device: int, ledger: Ledger) -> pd.DataFrame:
    pieces = _pieces(trace, ledger)
    places = main_thread_stacks(trace)
    call_names = trace.host_calls["name"].cat
    line, texts = _lines(trace, pieces)
    operator = np.append(call_names.codes.to_numpy(), NONE)[pieces.owner]
    annotation = np.append(places.annotation, NONE)[pieces.stretch]
    keys = np.stack((pieces.cause, operator, annotation, line), axis=1)
    group, first = _groups(keys)
    count = len(first)
    idle_ns = sums(pieces.idle_ns, group, count)
    gaps = pd.unique(group * max(1, len(ledger.gaps)) + pieces.gap) // max(1, len(ledger.gaps))
    order = np.argsort(-idle_ns, kind="stable")
    names = np.array([*call_names.categories, None], dtype=object)
    lines = np.array([*texts, None], dtype=object)[line[first]]
    columns = {
        "device": np.full(count, device),
        "cause": np.array(NAMES, dtype=object)[pieces.cause[first]],
        "operator": names[operator[first]],
        "annotation": names[annotation[first]],
        "source_line": lines,
        "remedy": np.array([_remedy(trace) if text is None else None for text in lines], object),
        "gap_count": np.bincount(gaps, minlength=count),
        "idle_ns": idle_ns,
        "idle_share": idle_ns / max(1, int(idle_ns.sum())),
        "window_share": idle_ns / max(1, window(trace).duration_ns),
    }
    return to_frame(SOURCE_SCHEMA, {name: values[order] for name, values in columns.items()})


def _remedy(trace: Trace) -> str | None:
    has_stacks = len(trace.python_calls) or (trace.host_calls["call_stack"].cat.codes >= 0).any()
    return None if has_stacks else RECORD_STACKS


def _groups(keys: Ints) -> tuple[Ints, Ints]:
    group = np.zeros(len(keys), dtype=np.int64)
    for column in keys.T:
        codes, distinct = pd.factorize(column)
        group, _ = pd.factorize(group * max(1, len(distinct)) + codes)
    count = int(group.max(initial=-1)) + 1
    first = np.full(count, NONE, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]  # what is set last stays
    return group, first


def _pieces(trace: Trace, ledger: Ledger) -> _Pieces:
    times = np.concatenate(list(ledger.times.values()))
    counts = [len(times_of_cause) for times_of_cause in ledger.times.values()]
    cause = np.repeat(np.arange(len(NAMES)), counts)
    gap = np.searchsorted(ledger.gaps[:, 0], times[:, 0], side="right") - 1
    places = main_thread_stacks(trace)
    moves = np.isin(cause, [NAMES.index(name) for name in MOVING])
    moving = np.flatnonzero(moves)
    owner, stretch, idle_ns = places.cut(times[moving, 0], times[moving, 1])
    still = np.flatnonzero(~moves)
    at, operator = _requests(trace, ledger)
    moment = np.where(cause[still] == NAMES.index("tail"), NONE, at[gap[still]])
    fixed = np.where(moment >= 0, places.at(moment), NONE)
    which = np.concatenate((moving[owner], still))
    of_loading = cause[which] == NAMES.index("dataloader")
    return _Pieces(
        cause=cause[which],
        gap=gap[which],
        stretch=np.concatenate((stretch, fixed)),
        owner=np.where(of_loading, NONE, operator[gap[which]]),
        idle_ns=np.concatenate((idle_ns, (times[:, 1] - times[:, 0])[still])),
    )


def _requests(trace: Trace, ledger: Ledger) -> tuple[Ints, Ints]:
    """Return, for each gap, the time and the operator of the host's wait or next launch."""
    syncs, linked = synchronizations(trace), links(trace)
    following = np.append(linked.owner_of_device_event, NONE)[ledger.next_event]
    call = np.append(linked.call_of_device_event, NONE)[ledger.next_event]
    launched_ns = np.append(trace.runtime_calls["start_ns"].to_numpy(), NONE)[call]
    moment = np.where(call >= 0, launched_ns, ledger.gaps[:, 1] - 1)
    emptied = ledger.sync >= 0
    moment = np.where(emptied, np.append(syncs.start_ns, NONE)[ledger.sync], moment)
    waiting = np.append(syncs.owner, NONE)[ledger.sync]
    return moment, np.where(emptied & (waiting >= 0), waiting, outermost_operator(trace, following))


def _lines(trace: Trace, pieces: _Pieces) -> tuple[Ints, list[str]]:
    """Return each piece's source line as an index, or -1, and the lines.

    From Python calls, else from the operator's `Call stack`.
    """
    functions = user_calls(trace)["name"].cat.categories
    function = np.append(main_thread_stacks(trace).function, NONE)[pieces.stretch]
    by_stack, listed = call_stack_lines(trace, pieces.owner)
    line = np.where((function < 0) & (by_stack >= 0), by_stack + len(functions), function)
    codes, distinct = pd.factorize(np.array([*functions, *listed], dtype=object))
    return np.append(codes, NONE)[line], [str(text) for text in distinct]
