"""Tables of the critical path: its segments, sums per step, and its hotspots."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.idle.critical_path import (
    CPU,
    DATA_LOADING,
    NAMES,
    SYNC_WAIT,
    CriticalPath,
    critical_path,
)
from stepscope.analyses.idle.critical_path_edges import EDGES, path_edges
from stepscope.analyses.idle.host_waits import host_waits
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import plain_values, public_table, texts_at, to_frame
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorTree:
    """Operators, then runtime calls; all arrays are parallel."""

    event: Ints
    thread: Ints
    """Codes of the frames' `thread`."""
    start_ns: Ints
    end_ns: Ints
    parent: Ints
    """Row of the calling operator, or -1."""
    operator_count: int
    """Number of operators, the first rows."""


@computed
def operator_tree(trace: Trace) -> OperatorTree:
    """Return operators and runtime calls with their calling operators."""
    host, calls = trace.host_calls, trace.runtime_calls
    is_operator = host["is_operator"].to_numpy()
    rows = np.flatnonzero(is_operator)
    tree_row = np.full(len(host) + 1, NONE, dtype=np.int64)  # the last is for "none"
    tree_row[rows] = np.arange(len(rows))
    caller = host["parent"].to_numpy()
    parent = nearest_of(caller, caller[rows], is_operator)
    names = "event", "start_ns", "end_ns"
    event, start, end = (
        np.concatenate((host[name].to_numpy()[rows], calls[name].to_numpy())) for name in names
    )
    threads = host["thread"].cat.codes.to_numpy()[rows], calls["thread"].cat.codes.to_numpy()
    return OperatorTree(
        event=event,
        thread=np.concatenate(threads).astype(np.int64),
        start_ns=start,
        end_ns=end,
        parent=np.concatenate((tree_row[parent], tree_row[links(trace).owner_of_call])),
        operator_count=len(rows),
    )


def self_covered_ns(tree: OperatorTree, covered: Ints, rows: Ints) -> Ints:
    """Return the part of each row's covered time that no row called by it covers.

    `covered` has all rows, and is 0 outside `rows`. Where calls cross one another the result is at
    least 0.
    """
    left = covered.copy()
    child = rows[tree.parent[rows] >= 0]
    np.subtract.at(left, tree.parent[child], covered[child])
    return np.maximum(left, 0)


BOUND_BY = Column(
    "bound_by",
    "object",
    "",
    "`cpu`, `data_loading`, `compute`, `communication`, `copy`, `memory_set`; `launch`: from the "
    "launching call's start to the work's; `kernel_gap`: from one device activity to the next; "
    "`sync_wait`: from its end to the waiting call's return. Includes HTA's `bound_by`.",
)
EDGE_MEANINGS = ", ".join(f"`{name}` ({meaning})" for name, meaning in EDGES.items())
SEGMENT_SCHEMA: Schema = (
    Column("step", "object", "text", "The step's name, or `whole recording`."),
    Column("start_ns", "int64", "ns", "Start of the segment, from the trace's first event."),
    Column("duration_ns", "int64", "ns", "Its duration; segments sum to the step's duration."),
    BOUND_BY,
    Column("is_running", "bool", "", "False where the next activity waits to begin."),
    Column("event", "int64", "id", "The event that runs, or waits to begin; -1: not recorded."),
    Column("name", "object", "text", "Its name; on the host, the outermost call's."),
    Column("operator", "object", "text", "The innermost operator that launched it; None: unknown."),
    Column("thread", "object", "text", "The host thread, as `pid/tid`; None on a device."),
    Column("device", "int64", "id", "The device's number; -1 on the host."),
    Column("stream", "int64", "id", "The stream on that device; -1 on the host."),
    Column("is_inferred", "bool", "", "A wait between streams that is inferred from times."),
    Column("edge", "object", "", f"What the activity had to wait for: {EDGE_MEANINGS}; None:"
           " nothing known."),
    Column("awaited_event", "int64", "id", "The event it had to wait for; -1: none."),
)  # fmt: skip
SUMMARY_SCHEMA: Schema = (
    Column("step", "object", "text", "The step's name; None: all steps together."),
    BOUND_BY,
    Column("segment_count", "int64", "count", "Segments of the path."),
    Column("total_ns", "int64", "ns", "Their durations; a step's rows sum to the step."),
    Column("step_share", "float64", "share", "Of the step's duration."),
)
HOTSPOT_SCHEMA: Schema = (
    Column("name", "object", "text", "Operator, runtime call or device work; None: between calls."),
    BOUND_BY,
    Column("count", "int64", "count", "Number of them on the path."),
    Column("path_ns", "int64", "ns", "Time on the path; for host calls, without callees'."),
    Column("path_share", "float64", "share", "Of the paths of all steps."),
)


@public_table(
    "critical-path",
    SEGMENT_SCHEMA,
    "One row per segment of each step's critical path: the activity that the step waits for at"
    " every moment, from its start to its end.",
)
@computed
def critical_path_segments(trace: Trace) -> pd.DataFrame:
    """Return one row per segment, by time.

    Raises:
        MissingDataError: the trace has no activity for a path.
    """
    path = _path(trace)
    host, device = host_waits(trace), trace.device_events
    on_device = path.device_event >= 0
    activity = np.append(host.activity, NONE)[path.stretch]
    began = np.append(host.activities.event, NONE)[activity]
    waited = np.append(_events(trace, host.call), NONE)[path.stretch]
    began = np.where(path.bound == SYNC_WAIT, waited, began)
    event = np.append(device["event"].to_numpy(), NONE)[path.device_event]
    event = np.where(on_device, event, began)
    thread = np.append(host.activities.thread, NONE)[activity]
    names = trace.source.threads[1]
    steps = np.array(step_breakdown(trace).names, dtype=object)
    columns: dict[str, NDArray[Any]] = {
        "step": steps[path.step],
        "start_ns": path.start_ns,
        "duration_ns": path.duration_ns,
        "bound_by": np.array(NAMES, dtype=object)[path.bound],
        "is_running": path.is_running,
        "event": event,
        "name": _texts(trace, event),
        "operator": _operators(trace, path.device_event),
        "thread": np.array([*names, None], dtype=object)[np.where(on_device, NONE, thread)],
        "device": np.append(device["device"].to_numpy(), NONE)[path.device_event],
        "stream": np.append(device["stream"].to_numpy(), NONE)[path.device_event],
        "is_inferred": path.is_inferred,
        "edge": np.array([*EDGES, None], dtype=object)[path_edges(trace).kind],
        "awaited_event": path_edges(trace).awaited,
    }
    return to_frame(SEGMENT_SCHEMA, columns)


@public_table(
    "critical-path-summary",
    SUMMARY_SCHEMA,
    "One row per step and kind of bound, and the same for all steps together: how much of the"
    " step its critical path spent so.",
)
@computed
def critical_path_summary(trace: Trace) -> pd.DataFrame:
    """Return one row per step and bound, and the same for all steps together, in `NAMES`' order.

    Raises:
        MissingDataError: the trace has no activity for a path.
    """
    path, steps = _path(trace), step_breakdown(trace)
    count, kinds = len(steps.names), len(NAMES)
    cell = path.step * kinds + path.bound
    by_step = sums(path.duration_ns, cell, count * kinds).reshape(count, kinds)
    total = np.concatenate((by_step, by_step.sum(axis=0)[None]))
    counted = np.bincount(cell, minlength=count * kinds).reshape(count, kinds)
    segments = np.concatenate((counted, counted.sum(axis=0)[None]))
    duration = np.maximum(total.sum(axis=1), 1)
    names = np.array([*steps.names, None], dtype=object)
    return to_frame(
        SUMMARY_SCHEMA,
        {
            "step": np.repeat(names, kinds),
            "bound_by": np.tile(np.array(NAMES, dtype=object), count + 1),
            "segment_count": segments.ravel(),
            "total_ns": total.ravel(),
            "step_share": (total / duration[:, None]).ravel(),
        },
    )


@public_table(
    "critical-path-hotspots",
    HOTSPOT_SCHEMA,
    "One row per name and bound: the operators, calls and device work on the critical paths of"
    " all steps, the longest first.",
    title="Critical path hot spots",
)
@computed
def critical_path_hotspots(trace: Trace) -> pd.DataFrame:
    """Return the activities on the path by name and bound, the longest first.

    Raises:
        MissingDataError: the trace has no activity for a path.
    """
    path = _path(trace)
    contributions = [_device_parts(trace, path), _waiting_calls(trace, path)]
    contributions += [_host_parts(trace, path, bound) for bound in (CPU, DATA_LOADING)]
    name, bound, time_ns = (np.concatenate(part) for part in zip(*contributions, strict=True))
    key = (name + 1) * len(NAMES) + bound
    group, distinct = pd.factorize(key, sort=True)
    total = sums(time_ns, group, len(distinct))
    codes, kinds = np.divmod(distinct, len(NAMES))
    strings = np.array([None, *trace.source.text(codes[codes > 0] - 1)], dtype=object)
    index = np.where(codes > 0, np.cumsum(codes > 0), 0)
    table = to_frame(
        HOTSPOT_SCHEMA,
        {
            "name": strings[index],
            "bound_by": np.array(NAMES, dtype=object)[kinds],
            "count": np.bincount(group, minlength=len(distinct)),
            "path_ns": total,
            "path_share": total / max(1, int(path.duration_ns.sum())),
        },
    )
    order = np.argsort(-total, kind="stable")
    return table.iloc[order].reset_index(drop=True)


Parts = tuple[Ints, Ints, Ints]
"""Parallel arrays: a name's code or -1, the bound, and the time on the path."""


def _device_parts(trace: Trace, path: CriticalPath) -> Parts:
    rows = np.flatnonzero(path.device_event >= 0)
    event = trace.device_events["event"].to_numpy()[path.device_event[rows]]
    code = trace.columns.name[event].astype(np.int64)
    return code, path.bound[rows].astype(np.int64), path.duration_ns[rows]


def _waiting_calls(trace: Trace, path: CriticalPath) -> Parts:
    rows = np.flatnonzero(path.bound == SYNC_WAIT)
    event = _events(trace, host_waits(trace).call[path.stretch[rows]])
    code = np.where(event >= 0, trace.columns.name[event], NONE).astype(np.int64)
    return code, path.bound[rows].astype(np.int64), path.duration_ns[rows]


def _host_parts(trace: Trace, path: CriticalPath, bound: int) -> Parts:
    """Return the host's time on the path by innermost call; the rest is unnamed."""
    tree, host = operator_tree(trace), host_waits(trace)
    selected = np.flatnonzero(path.bound == bound)
    if not len(selected):
        return selected, selected, selected
    # waits to begin take no call's time, and make fewer and longer spans to search
    located = selected[path.stretch[selected] >= 0]
    thread = host.thread[path.stretch[located]]
    covered = np.zeros(len(tree.event), dtype=np.int64)
    touched = [np.zeros(0, dtype=np.int64)]
    for number in pd.unique(thread):
        rows_here = located[thread == number]
        times = intervals.union(path.start_ns[rows_here], path.end_ns[rows_here])
        rows = np.flatnonzero(tree.thread == number)
        covered[rows] = intervals.covered_ns(times, tree.start_ns[rows], tree.end_ns[rows])
        touched.append(rows[covered[rows] > 0])
    calls = np.concatenate(touched)
    self_ns = self_covered_ns(tree, covered, calls)[calls]
    rest = max(0, int(path.duration_ns[selected].sum()) - int(self_ns.sum()))
    calls, self_ns = calls[self_ns > 0], self_ns[self_ns > 0]
    code = np.append(trace.columns.name[tree.event[calls]].astype(np.int64), NONE)
    time_ns = np.append(self_ns, rest)
    is_positive = time_ns > 0
    return (
        code[is_positive],
        np.full(int(is_positive.sum()), bound, dtype=np.int64),
        time_ns[is_positive],
    )


def _path(trace: Trace) -> CriticalPath:
    path = critical_path(trace)
    if not len(path.step):
        msg = "the trace has no activity for a critical path"
        raise MissingDataError(msg, "profile(activities=[ProfilerActivity.CPU], ...)")
    return path


def _events(trace: Trace, calls: Ints) -> Ints:
    return np.append(trace.runtime_calls["event"].to_numpy(), NONE)[calls]


def _texts(trace: Trace, events: Ints) -> NDArray[Any]:
    """Return the events' names, None for -1."""
    codes = np.where(events >= 0, trace.columns.name[events], NONE)
    names = trace.source.text(codes.astype(np.int32))
    return plain_values(names)


def _operators(trace: Trace, rows: Ints) -> NDArray[Any]:
    owner = np.append(links(trace).owner_of_device_event, NONE)[rows]
    return texts_at(trace.host_calls["name"], owner)
