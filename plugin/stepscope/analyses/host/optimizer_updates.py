"""Optimizer updates and gradient norms: host time and launched work of each.

torch records `Optimizer.step#<class>.step` around every step (`torch/optim/optimizer.py`). Of
nested steps the outer one counts. A closure (LBFGS, PyTorch Lightning) runs forward and backward
inside; an update starts after the end of the backward pass, on any thread, with the first operator
that changes a tensor (hooks before it may log or clip).

`torch.nn.utils.clip_grad_norm_` with `foreach=False`, and hand-written loops, compute the norm of
one gradient after the other, and multiply one after the other. Norms of the model run before the
end of the backward pass, those of an optimizer in its step.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.compile_events import REGION
from stepscope.analyses.core.links import calls_around_runtime_calls, links
from stepscope.analyses.core.training_detection import BACKWARD
from stepscope.analyses.core.window import window
from stepscope.base.errors import NotApplicableError
from stepscope.dialects import LAUNCH_NAME
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchedWork:
    """Launches and their device events.

    A graph's launch has many events; a launch whose device event is missing has none. An event
    linked only by a flow is its own launch.
    """

    callers: Ints
    """Host call that made each launch, as a row of `host_calls`."""
    start_ns: Ints
    """Start of each launch; for a flow, of its operator."""
    events: Ints
    """Rows of `device_events`, in order."""
    launch_of_event: Ints
    """Index of each event's launch."""

    def select(self, mask: Mask) -> "LaunchedWork":
        """Return the launches of a mask, and their events."""
        with_event = mask[self.launch_of_event]
        index = np.cumsum(mask) - 1
        return LaunchedWork(
            callers=self.callers[mask],
            start_ns=self.start_ns[mask],
            events=self.events[with_event],
            launch_of_event=index[self.launch_of_event[with_event]],
        )


def outermost(trace: Trace, mask: Mask) -> Ints:
    """Return the masked host calls that lie in no other masked call, as rows."""
    rows = np.flatnonzero(mask)
    parent = trace.host_calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(parent, parent[rows], mask) == NONE])


def launched_work(trace: Trace, rows: Ints) -> LaunchedWork:
    """Return the work launched by these rows of `host_calls`, of which none lies in another."""
    linked, calls, host = links(trace), trace.runtime_calls, trace.host_calls
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    is_launch = name_mask(calls["name"], LAUNCH_NAME.search)
    is_launch[call[call != NONE]] = True
    by_flow = (call == NONE) & (owner != NONE)
    around = np.concatenate((calls_around_runtime_calls(trace)[is_launch], owner[by_flow]))
    launch = np.append(np.cumsum(is_launch) - 1, NONE)[call]
    launch[by_flow] = is_launch.sum() + np.arange(by_flow.sum())
    is_caller = np.zeros(len(host), dtype=bool)
    is_caller[rows] = True
    work = LaunchedWork(
        callers=ancestry.nearest_of(host["parent"].to_numpy(), around, is_caller),
        start_ns=np.concatenate(
            (calls["start_ns"].to_numpy()[is_launch], host["start_ns"].to_numpy()[owner[by_flow]])
        ),
        events=np.flatnonzero(launch != NONE),
        launch_of_event=launch[launch != NONE],
    )
    return work.select(work.callers != NONE)


STEP = re.compile(r"^Optimizer\.step#(?P<optimizer>.+?)(?:\.step)?$")
LISTWISE = re.compile(r"^aten::_foreach_|^aten::_fused_")
FUSED = re.compile(r"^aten::_fused_")
CHANGE = re.compile(
    r"^aten::(_fused_|_foreach_(?!norm)|(add|sub|mul|div|lerp|addcmul|addcdiv|copy|pow|sqrt)_$)"
)
"""Operators that change tensors in place, with those on lists; computing a norm changes nothing."""
END_OF_TIME = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimizerUpdates:
    """Updates in the window, in start order; arrays are parallel to `rows`."""

    rows: Ints
    """Rows of `host_calls`."""
    optimizer: Objects
    """Class, as torch wrote it: `AdamW`."""
    begin_ns: Ints
    """Start of the update: the call's start, or its first operator after a closure."""
    end_ns: Ints
    is_listwise: Mask
    """Whether it called `_foreach_` or `_fused_` operators, which take all parameters at once."""
    is_fused: Mask
    is_compiled: Mask
    """Whether it called code compiled by torch.compile, which fuses updates."""
    work: LaunchedWork
    """Work launched by the updates, without closures."""

    def of(self, optimizer: str) -> Ints:
        """Return the indices of one optimizer's updates."""
        return np.flatnonzero(self.optimizer == optimizer)


@computed
def optimizer_updates(trace: Trace) -> OptimizerUpdates:
    """Return every update of an optimizer.

    Raises:
        NotApplicableError: no optimizer's step was recorded.
    """
    calls, span = trace.host_calls, window(trace)
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    rows = outermost(trace, name_mask(calls["name"], STEP.match))
    rows = rows[(start[rows] >= span.start_ns) & (end[rows] <= span.end_ns)]
    if not len(rows):
        reason = "no optimizer's step was recorded"
        raise NotApplicableError(reason)
    begin = update_starts(trace)[rows]
    work = launched_work(trace, rows)
    begin_of = np.zeros(len(calls), dtype=np.int64)
    begin_of[rows] = begin
    codes = calls["name"].cat.codes.to_numpy()[rows]
    texts = np.array([_class_of(str(name)) for name in calls["name"].cat.categories], dtype=object)
    return OptimizerUpdates(
        rows=rows,
        optimizer=texts[codes],
        begin_ns=begin,
        end_ns=end[rows],
        is_listwise=_holds(trace, rows, LISTWISE),
        is_fused=_holds(trace, rows, FUSED),
        is_compiled=_holds(trace, rows, REGION),
        work=work.select(work.start_ns >= begin_of[work.callers]),
    )


def _class_of(name: str) -> str:
    match = STEP.match(name)
    return match["optimizer"] if match else ""


@computed
def update_starts(trace: Trace) -> Ints:
    """Return when the update begins in each optimizer's call; one per row of host calls.

    After a closure: the first operator after its backward pass that changes tensors. Other calls:
    their start.
    """
    calls = trace.host_calls
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    rows = outermost(trace, name_mask(calls["name"], STEP.match))
    result = start.copy()
    result[rows] = _first_changes(trace, rows, _after_closures(trace, start[rows], end[rows]))
    return result


def _after_closures(trace: Trace, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the end of the last backward operator in each call, else the call's start."""
    calls = trace.host_calls
    backward = np.flatnonzero(name_mask(calls["name"], BACKWARD.search))
    began = calls["start_ns"].to_numpy()[backward]  # in the order they began
    ended = np.maximum.accumulate(np.append(0, calls["end_ns"].to_numpy()[backward]))
    last = np.searchsorted(began, end_ns, side="left")
    inside = last > np.searchsorted(began, start_ns, side="left")
    return np.asarray(np.where(inside, np.clip(ended[last], start_ns, end_ns), start_ns))


def _first_changes(trace: Trace, rows: Ints, begin_ns: Ints) -> Ints:
    """Return the start of the first operator after each closure that changes tensors.

    Without a closure, or such an operator, the given time.
    """
    calls = trace.host_calls
    start = calls["start_ns"].to_numpy()
    closed = np.flatnonzero(begin_ns > start[rows])
    update = {int(rows[index]): index for index in closed.tolist()}
    children = np.flatnonzero(
        np.isin(calls["parent"].to_numpy(), rows[closed]) & name_mask(calls["name"], CHANGE.search)
    )
    first = begin_ns.copy()
    index = np.array(
        [update[row] for row in calls["parent"].to_numpy()[children].tolist()], dtype=np.int64
    )
    is_after = start[children] >= begin_ns[index]
    first[index[is_after]] = END_OF_TIME
    np.minimum.at(first, index[is_after], start[children[is_after]])
    return first


def _holds(trace: Trace, rows: Ints, pattern: re.Pattern[str]) -> Mask:
    """Return a mask of the calls that contain an operator of such a name."""
    calls = trace.host_calls
    is_step = np.zeros(len(calls), dtype=bool)
    is_step[rows] = True
    matches = np.flatnonzero(name_mask(calls["name"], pattern.search))
    return np.isin(rows, ancestry.nearest_of(calls["parent"].to_numpy(), matches, is_step))


NORM = re.compile(r"^aten::(?:linalg_vector_)?norm$")
SCALING = re.compile(r"^aten::mul_$")
FOREACH = re.compile(r"^aten::_foreach_")


@dataclass(frozen=True, kw_only=True, eq=False)
class GradientNorms:
    """Gradients clipped one by one in the window."""

    rows: Ints
    """Rows of `host_calls` with norms of single tensors."""
    times: Intervals
    """From the first norm after each backward pass to the last norm or scaling before the step."""


@computed
def gradient_norms(trace: Trace) -> GradientNorms:
    """Return the norms of single tensors between each backward pass and the next step.

    Raises:
        NotApplicableError: no optimizer's step was recorded.
    """
    start, end = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    steps_ns = start[optimizer_updates(trace).rows]
    behind_ns = np.maximum(_behind_ns(trace, steps_ns), window(trace).start_ns)
    norms, step = _between(trace, NORM, behind_ns, steps_ns)
    first = np.full(len(steps_ns), END_OF_TIME)
    np.minimum.at(first, step, start[norms])
    scalings, of_scaling = _between(trace, SCALING, first, steps_ns)
    last = np.zeros(len(steps_ns), dtype=np.int64)
    np.maximum.at(last, step, end[norms])
    np.maximum.at(last, of_scaling, end[scalings])
    clips = last > 0
    return GradientNorms(rows=norms, times=intervals.union(first[clips], last[clips]))


def _between(
    trace: Trace, pattern: re.Pattern[str], from_ns: Ints, steps_ns: Ints
) -> tuple[Ints, Ints]:
    """Return calls on one tensor that start in `[from_ns, steps_ns)` of a step, and that step."""
    rows = _single(trace, pattern)
    start = trace.host_calls["start_ns"].to_numpy()[rows]
    step = np.searchsorted(steps_ns, start, side="right")
    inside = start >= np.append(from_ns, END_OF_TIME)[step]
    return rows[inside], step[inside]


def _behind_ns(trace: Trace, steps_ns: Ints) -> Ints:
    """Return the end of the backward pass before each step, or the last step's start.

    The later of the two; without a recorded backward pass before it, the maximum time.
    """
    calls = trace.host_calls
    backward = np.flatnonzero(name_mask(calls["name"], BACKWARD.search))  # in the order they began
    ended = np.maximum.accumulate(calls["end_ns"].to_numpy()[backward])
    last = np.searchsorted(calls["start_ns"].to_numpy()[backward], steps_ns, side="left") - 1
    backward_end = np.append(ended, END_OF_TIME)[last]
    return np.asarray(np.maximum(backward_end, np.append(0, steps_ns[:-1])))


def _single(trace: Trace, pattern: re.Pattern[str]) -> Ints:
    """Return the rows of calls of such a name that take one tensor and are in no step."""
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], pattern.match))
    is_step = np.zeros(len(calls), dtype=bool)
    is_step[optimizer_updates(trace).rows] = True
    is_other = (
        name_mask(calls["name"], FOREACH.match) | name_mask(calls["name"], NORM.match) | is_step
    )
    above = calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(above, above[rows], is_other) == NONE])
