"""The module (`torch.nn.Module`) in whose call each operator ran.

That is the innermost `nn.Module` call of Python around it. An operator of the backward pass,
and the engine's call around it, belongs to the module of its forward operator: see
`forward_backward`.
"""

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_callers
from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.operators.grouping import Labels
from stepscope.base.errors import MissingDataError
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

NONE = -1
PREFIX = "nn.Module: "
"""How torch's Python tracer names the call of a module (`torch/csrc/profiler/collection.cpp`)."""


def modules(trace: Trace) -> Labels:
    """Return the module of each call, as the profiler numbers it: `Linear_0`.

    Raises:
        MissingDataError: no module's call was recorded.
    """
    name = trace.python_calls["name"]
    is_module = name_mask(name, lambda name: name.startswith(PREFIX))
    if not is_module.any():
        reason = "the modules' calls were not recorded"
        raise MissingDataError(reason, "profile(with_stack=True, with_modules=True)")
    callers = python_callers(trace)
    around = ancestry.nearest(callers.nesting.parent, is_module)
    code = np.where(around != NONE, name.cat.codes.to_numpy()[around], NONE)
    found = np.append(code, NONE)[callers.caller].astype(np.int64)
    links = forward_backward(trace)
    forward = np.append(links.forward, NONE)[links.node]
    wrapped = np.flatnonzero(links.wrapper != NONE)
    forward[links.wrapper[wrapped]] = links.forward[wrapped]
    of_forward = np.append(found, NONE)[forward]
    found = np.where((links.node != NONE) | (forward != NONE), of_forward, found)
    names = (str(text) for text in name.cat.categories)
    return Labels(codes=found, texts=tuple(text.removeprefix(PREFIX) for text in names))
