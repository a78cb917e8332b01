"""Labels by which operator tables group calls: name, node, shapes and module.

`autograd::engine::evaluate_function: MmBackward0` runs `MmBackward0` and then accumulates its
results. Grouped by node, both are one call of the node's name, as long as the wrapper.

A call's module is the innermost `nn.Module` call of Python around it. An operator of the backward
pass, and the engine's call around it, has the module of its forward operator (`forward_backward`).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_callers
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import without_number
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class Labels:
    """A text for each call, or none."""

    codes: Ints
    """Index into `texts` for each call; -1 for none."""
    texts: tuple[str, ...]

    def at(self, codes: Ints) -> Objects:
        """Return the texts of codes, None for -1."""
        return np.array([*self.texts, None], dtype=object)[codes]


def names(trace: Trace) -> Labels:
    """Return each call's name; all steps are `ProfilerStep*`."""
    named = trace.host_calls["name"].cat
    texts = [without_number(str(name)) for name in named.categories]
    return distinct(named.codes.to_numpy(), [*texts, ""])  # code -1: an event without a name


def shapes(trace: Trace) -> Labels:
    """Return the shapes of each call's inputs as JSON."""
    dims = trace.host_calls["input_dims"].cat
    return Labels(codes=dims.codes.to_numpy().astype(np.int64), texts=tuple(dims.categories))


def distinct(codes: NDArray[np.integer], texts: list[str]) -> Labels:
    """Return labels with equal texts merged; code -1 is the last text."""
    index, unique = pd.factorize(np.array(texts, dtype=object))
    return Labels(codes=index.astype(np.int64)[codes], texts=tuple(unique))


def are_wrapped(trace: Trace) -> Mask:
    """Return a mask of nodes that a wrapper calls, whose time is part of the wrapper's."""
    return np.asarray(forward_backward(trace).wrapper != NONE)


def node_names(trace: Trace) -> Labels:
    """Return each call's name; for a wrapper, the name of its node."""
    labels = names(trace)
    texts = [text.removeprefix(WRAPPER) for text in labels.texts]
    return distinct(labels.codes, [*texts, ""])


MODULE_PREFIX = "nn.Module: "
"""Prefix of modules' calls by torch's Python tracer (`torch/csrc/profiler/collection.cpp`)."""


def modules(trace: Trace) -> Labels:
    """Return the module of each call, as the profiler numbers it: `Linear_0`.

    Raises:
        MissingDataError: no module's call was recorded.
    """
    name = trace.python_calls["name"]
    is_module = name_mask(name, lambda name: name.startswith(MODULE_PREFIX))
    if not is_module.any():
        reason = "the modules' calls were not recorded"
        raise MissingDataError(reason, "profile(with_stack=True, with_modules=True)")
    callers = python_callers(trace)
    around = ancestry.nearest(callers.nesting.parent, is_module)
    code = np.where(around != NONE, name.cat.codes.to_numpy()[around], NONE)
    module = np.append(code, NONE)[callers.caller].astype(np.int64)
    links = forward_backward(trace)
    forward = np.append(links.forward, NONE)[links.node]
    wrapped = np.flatnonzero(links.wrapper != NONE)
    forward[links.wrapper[wrapped]] = links.forward[wrapped]
    of_forward = np.append(module, NONE)[forward]
    module = np.where((links.node != NONE) | (forward != NONE), of_forward, module)
    names = (str(text) for text in name.cat.categories)
    return Labels(codes=module, texts=tuple(text.removeprefix(MODULE_PREFIX) for text in names))
