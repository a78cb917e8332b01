"""Exposed cost of fetching batches, and the code that takes the time."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry, event_references, frame_times
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.frame_times import ALL, times
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import EventReference
from stepscope.base.formatting import share
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

WORTH_NAMING = 0.05
"""Least fraction of a call for its costliest part to be named."""
TORCH_ITERATOR = "enumerate("
"""Prefix of torch's calls; a framework names the same fetch once more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataStalls:
    """The calls for the next batch, and their exposed time."""

    rows: Ints
    """The outermost calls in the window, as `host_calls` rows."""
    total_ns: int
    median_ns: float
    """Of a whole call; NaN without calls."""
    exposed: Intervals
    """Times without a busy device; without a device, all times."""
    iterators: tuple[str, ...]
    """The iterator classes, most calls first."""
    has_device: bool
    """Whether a device computes. Without one, loading and computing share the cores."""
    is_device_missing: bool
    """Whether the machine has a device whose work was not recorded."""

    @property
    def computes_on_host(self) -> bool:
        """Whether operators compute on the cores that workers would load on."""
        return not self.has_device and not self.is_device_missing

    @property
    def exposed_ns(self) -> int:
        """Duration of `exposed`."""
        return intervals.duration_ns(self.exposed)

    @property
    def batch_ns(self) -> float:
        """Mean duration of a call; NaN without calls."""
        return self.total_ns / len(self.rows) if len(self.rows) else float("nan")


def data_stalls(trace: Trace, containing: str = "") -> DataStalls:
    """Return the cost of the calls whose name contains a text.

    Raises:
        MissingDataError: the trace has no host activity.
        NotApplicableError: it has no call for a batch.
    """
    loading = data_loading(trace)
    if not len(trace.host_calls):
        msg = "no host activity was recorded"
        raise MissingDataError(msg, "profile(activities=[ProfilerActivity.CPU, ...])")
    if not loading.call_count:
        msg = "no batch was fetched from a DataLoader"
        raise NotApplicableError(msg)
    span = window(trace)
    calls = trace.host_calls.iloc[loading.rows]
    names = calls["name"].astype(str)
    inside = (calls["end_ns"] > span.start_ns) & (calls["start_ns"] < span.end_ns)
    selected = (names.str.contains(containing, regex=False) & inside).to_numpy()
    rows = _outermost(trace, loading.rows, loading.rows[selected])
    times = frame_times.times(trace.host_calls, rows)
    times = intervals.clip(times, span.start_ns, span.end_ns)
    has_device = bool(len(trace.device_events))
    lasting = trace.host_calls["duration_ns"].to_numpy()[rows]
    return DataStalls(
        rows=rows,
        total_ns=intervals.duration_ns(times),
        median_ns=float(np.median(lasting)) if len(rows) else float("nan"),
        exposed=intervals.difference(times, all_busy(trace)),
        has_device=has_device,
        is_device_missing=not has_device and _is_device_used(trace),
        iterators=_iterators(names[selected].tolist()),
    )


def _is_device_used(trace: Trace) -> bool:
    is_on_host = recorded_settings(trace).model.is_on_host
    return bool(trace.metadata.get("deviceProperties")) if is_on_host is None else not is_on_host


def _outermost(trace: Trace, loading: Ints, rows: Ints) -> Ints:
    """Return the outermost calls around some: a framework's call contains torch's."""
    parent = trace.host_calls["parent"].to_numpy()
    is_loading = np.zeros(len(parent), dtype=bool)
    is_loading[loading] = True
    above = ancestry.nearest(parent, is_loading)[parent]
    above[parent == NONE] = NONE
    is_outer = is_loading & (above == NONE)
    return np.unique(ancestry.nearest_of(parent, rows, is_outer))


def _iterators(names: list[str]) -> tuple[str, ...]:
    torch_names = [name for name in names if name.startswith(TORCH_ITERATOR)]
    return tuple(name for name, _ in Counter(map(_iterator, torch_names or names)).most_common())


def _iterator(name: str) -> str:
    return name.partition("#")[2].removesuffix(".__next__") or name


def slowest_calls(trace: Trace, stalls: DataStalls, count: int = 10) -> tuple[EventReference, ...]:
    """Return the slowest calls, each with its costliest operator or function."""
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[stalls.rows]
    rows = stalls.rows[np.argsort(-duration_ns, kind="stable")[:count]]
    return tuple(
        event_references.host_call(trace, int(row), detail=_heaviest_inside(trace, int(row)))
        for row in rows
    )


def _heaviest_inside(trace: Trace, row: int) -> str:
    """Describe the costliest part of a call: a user function, or an operator directly inside."""
    call = trace.host_calls.iloc[row]
    name, spent_ns = event_references.costliest_frame_during(
        trace, str(call["thread"]), int(call["start_ns"]), int(call["end_ns"])
    )
    start = trace.host_calls["start_ns"]
    until = int(start.searchsorted(int(call["end_ns"]), side="left"))
    following = trace.host_calls.iloc[row + 1 : until]
    children = following[(following["parent"] == row).to_numpy()]
    inside = children.groupby("name", observed=True)["duration_ns"].sum()
    if not inside.empty and int(inside.max()) > spent_ns:  # a child without a name is in no group
        name, spent_ns = str(inside.idxmax()), int(inside.max())
    spent = spent_ns / max(1, int(call["duration_ns"]))
    return f"{share(spent)} of it in {name}" if spent >= WORTH_NAMING else ""


WAITING = re.compile(
    r"^<built-in (?:method (?:poll of select|acquire of _thread)|function (?:select|Wait\w+)>)"
)
"""Python's waits for a pipe (Unix, Windows) or, with pinned memory, for a lock."""


def worker_wait_share(trace: Trace, rows: Ints) -> float | None:
    """Return the fraction of some calls (`host_calls` rows) in waits; None without stacks."""
    loading = spans(trace.host_calls.iloc[rows])
    calls = trace.python_calls
    is_inside = call_tree.enclosing(loading, spans(calls)) >= 0
    if not is_inside.any():
        return None
    waits = calls[is_inside & name_mask(calls["name"], WAITING.search)]
    return intervals.duration_ns(times(waits, ALL)) / max(1, int((loading[2] - loading[1]).sum()))


@dataclass(frozen=True, kw_only=True)
class LoadingCost:
    """A function or an operator, in all calls for a batch together."""

    name: str
    """As the profiler wrote it: `data.py(8): __getitem__`, `aten::stack`."""
    time_ns: int
    """Inside the calls for a batch, including callees."""
    is_function: bool
    """Whether it is a Python function of the user; else an operator."""


def loading_costs(trace: Trace, rows: Ints, most: int = 10) -> tuple[LoadingCost, ...]:
    """Return the costliest user functions and direct operators in some disjoint `host_calls` rows.

    Times include callees.
    """
    calls = trace.host_calls
    loading = spans(calls.iloc[rows])
    frames = event_references.user_calls(trace)
    in_loading = call_tree.enclosing(loading, spans(frames)) >= 0
    totals = _costs(frames[in_loading], is_function=True)
    is_loading = np.zeros(len(calls) + 1, dtype=bool)  # the last is of row -1
    is_loading[rows] = True
    directly = is_loading[calls["parent"].to_numpy()] & calls["is_operator"].to_numpy()
    totals += _costs(calls[directly], is_function=False)
    whole_ns = int((loading[2] - loading[1]).sum())
    costs = [
        LoadingCost(name=name, time_ns=min(time_ns, whole_ns), is_function=is_function)
        for name, time_ns, is_function in totals
    ]
    return tuple(sorted(costs, key=lambda cost: (-cost.time_ns, cost.name))[:most])


def _costs(calls: pd.DataFrame, *, is_function: bool) -> list[tuple[str, int, bool]]:
    names = calls["name"].cat
    has_name = names.codes.to_numpy() >= 0
    lasting_ns = (calls["end_ns"] - calls["start_ns"]).to_numpy()[has_name]
    total_ns = sums(lasting_ns, names.codes.to_numpy()[has_name], len(names.categories))
    spent = np.flatnonzero(total_ns).tolist()
    return [(str(names.categories[code]), int(total_ns[code]), is_function) for code in spent]
