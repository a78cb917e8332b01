"""Optimizer updates: host time and launched work of each.

torch records `Optimizer.step#<class>.step` around every step (`torch/optim/optimizer.py`). Of
nested steps the outer one counts. A closure (LBFGS, PyTorch Lightning) runs forward and backward
inside; an update starts at the end of the backward pass, on any thread.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.compile_events import REGION
from stepscope.analyses.core.training_detection import BACKWARD
from stepscope.analyses.core.window import window
from stepscope.analyses.host.launched_work import LaunchedWork, launched_work, outermost
from stepscope.base.errors import NotApplicableError
from stepscope.model.arrays import Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

STEP = re.compile(r"^Optimizer\.step#(?P<optimizer>.+?)(?:\.step)?$")
LISTWISE = re.compile(r"^aten::_foreach_|^aten::_fused_")
FUSED = re.compile(r"^aten::_fused_")


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimizerUpdates:
    """Updates in the window, in start order; arrays are parallel to `rows`."""

    rows: Ints
    """Rows of `host_calls`."""
    optimizer: Objects
    """Class, as torch wrote it: `AdamW`."""
    begin_ns: Ints
    """Start of the update: the call's start, or the end of a closure."""
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
    begin = _after_closures(trace, start[rows], end[rows])
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


def _after_closures(trace: Trace, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the end of the last backward operator in each call, else the call's start."""
    calls = trace.host_calls
    backward = np.flatnonzero(name_mask(calls["name"], BACKWARD.search))
    began = calls["start_ns"].to_numpy()[backward]  # in the order they began
    ended = np.maximum.accumulate(np.append(0, calls["end_ns"].to_numpy()[backward]))
    last = np.searchsorted(began, end_ns, side="left")
    inside = last > np.searchsorted(began, start_ns, side="left")
    return np.asarray(np.where(inside, np.clip(ended[last], start_ns, end_ns), start_ns))


def _holds(trace: Trace, rows: Ints, pattern: re.Pattern[str]) -> Mask:
    """Return a mask of the calls that contain an operator of such a name."""
    calls = trace.host_calls
    is_step = np.zeros(len(calls), dtype=bool)
    is_step[rows] = True
    matches = np.flatnonzero(name_mask(calls["name"], pattern.search))
    return np.isin(rows, ancestry.nearest_of(calls["parent"].to_numpy(), matches, is_step))
