"""Whether some steps were given inputs of other shapes than the rest."""

from collections.abc import Collection

import numpy as np

from stepscope.analyses.core.batch_size import FIRST_DIMENSION
from stepscope.model.frames.name_masks import named
from stepscope.model.trace import Trace


def inputs_differ(trace: Trace, numbers: Collection[int]) -> bool:
    """Tell whether layers have shapes in these steps (by number) that no other step has.

    Layers are those that tell the batch: convolutions, embeddings, linear layers. False where no
    shapes were recorded.
    """
    calls, steps = trace.host_calls, trace.steps
    dims = calls["input_dims"].cat.codes.to_numpy()
    rows = np.flatnonzero(named(calls["name"], FIRST_DIMENSION.__contains__) & (dims >= 0))
    begin, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    start = calls["start_ns"].to_numpy()[rows]
    step = np.searchsorted(begin, start, side="right") - 1
    inside = (step >= 0) & (start < np.append(end, 0)[step])
    is_asked = np.isin(steps["number"].to_numpy(), list(numbers))[step[inside]]
    shapes = dims[rows][inside]
    return bool(np.setdiff1d(shapes[is_asked], shapes[~is_asked]).size)
