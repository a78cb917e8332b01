"""The module (`torch.nn.Module`) in whose call each operator ran.

That is the innermost `nn.Module` call of Python around it. An operator of the backward pass,
and the engine's call around it, belongs to the module of its forward operator: see
`forward_backward`.
"""

import numpy as np

from stepscope import call_tree
from stepscope.analyses.forward_backward import forward_backward
from stepscope.analyses.links import spans
from stepscope.analyses.operator_groups import Labels
from stepscope.errors import MissingDataError
from stepscope.frames.naming import named
from stepscope.trace import Trace

NONE = -1
PREFIX = "nn.Module: "
"""How torch's Python tracer names the call of a module (`torch/csrc/profiler/collection.cpp`)."""


def modules(trace: Trace) -> Labels:
    """Return the module of each call, as the profiler numbers it: `Linear_0`.

    Raises:
        MissingDataError: no module's call was recorded.
    """
    python, calls = trace.python_calls, trace.host_calls
    rows = np.flatnonzero(named(python["name"], lambda name: name.startswith(PREFIX)))
    if not len(rows):
        reason = "the modules' calls were not recorded"
        raise MissingDataError(reason, "profile(with_stack=True, with_modules=True)")
    code = python["name"].cat.codes.to_numpy().astype(np.int64)
    thread, start_ns, end_ns = spans(python)
    around = call_tree.enclosing((thread[rows], start_ns[rows], end_ns[rows]), spans(calls))
    found = np.append(code[rows], NONE)[around]
    links = forward_backward(trace)
    forward = np.append(links.forward, NONE)[links.node]
    wrapped = np.flatnonzero(links.wrapper != NONE)
    forward[links.wrapper[wrapped]] = links.forward[wrapped]
    of_forward = np.append(found, NONE)[forward]
    found = np.where((links.node != NONE) | (forward != NONE), of_forward, found)
    names = (str(name) for name in python["name"].cat.categories)
    return Labels(codes=found, texts=tuple(name.removeprefix(PREFIX) for name in names))
