"""Norms of single tensors between the backward pass and the optimizer's step: gradient clipping.

`torch.nn.utils.clip_grad_norm_` with `foreach=False`, and hand-written loops, compute the norm of
one gradient after the other, and multiply one after the other. Norms of the model run before the
end of the backward pass, those of an optimizer in its step.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.training_detection import BACKWARD
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

NORM = re.compile(r"^aten::(?:linalg_vector_)?norm$")
SCALING = re.compile(r"^aten::mul_$")
LISTWISE = re.compile(r"^aten::_foreach_")
END_OF_TIME = np.iinfo(np.int64).max


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
        name_mask(calls["name"], LISTWISE.match) | name_mask(calls["name"], NORM.match) | is_step
    )
    above = calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(above, above[rows], is_other) == NONE])
