"""Which collectives a training asks for in the forward pass: those of activations, no gradients."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import asked_ns
from stepscope.analyses.core.training_detection import BACKWARD
from stepscope.model.frames.name_masks import named
from stepscope.model.trace import Trace, computed


@computed
def is_in_forward(trace: Trace) -> NDArray[np.float64]:
    """Return, for each row of `collectives`, 1 where its step's backward pass had not begun.

    0 where it had; NaN where the step has none, or there is no step.
    """
    calls, steps, asked = trace.host_calls, trace.steps, asked_ns(trace)
    backward = np.sort(calls["start_ns"].to_numpy()[named(calls["name"], BACKWARD.search)])
    found = np.full(len(asked), np.nan)
    if not len(backward) or not len(steps):
        return found
    start, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    place = np.searchsorted(start, asked, side="right") - 1
    first = np.append(backward, np.iinfo(np.int64).max)[np.searchsorted(backward, start[place])]
    is_known = (place >= 0) & (asked < end[place]) & (first < end[place])
    found[is_known] = (asked < first)[is_known]
    return found
