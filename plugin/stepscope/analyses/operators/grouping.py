"""Labels by which operator tables group calls: name, node, shapes, module and stack.

`autograd::engine::evaluate_function: MmBackward0` runs `MmBackward0` and then accumulates its
results. Grouped by node, both are one call of the node's name, as long as the wrapper.

A call's module is the innermost `nn.Module` call of Python around it; its stack is its `Call stack`
(torch 1.8 to 1.10), else the Python functions around it. An operator of the backward pass, and the
engine's call around it, has those of the forward operator that made the node (`forward_backward`);
torch's `key_averages(group_by_stack_n=…)` takes the first with the node's number instead.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_callers, python_paths
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints, Mask, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import without_number
from stepscope.model.trace import Trace, computed


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


SEPARATOR = ";"
MOST_FRAMES = 256
"""Longest stack, of innermost frames: Python itself stops at 1,000."""
TOP_FRAMES = 5
"""Frames of a shortened stack, as in torch's documentation."""
HIDDEN_FRAMES = (
    # what torch leaves out (torch/autograd/profiler_util.py, _filter_stack_entry)
    ("autograd/__init__", "_make_grads"),
    ("autograd/__init__", "backward"),
    ("torch/tensor", "backward"),
    ("_internal/common_utils", "prof_callable"),
    ("_internal/common_utils", "prof_func_call"),
    ("_internal/common_utils", "prof_meth_call"),
)


def stacks(trace: Trace) -> Labels:
    """Return each call's whole stack as one text.

    Raises:
        MissingDataError: no stacks were recorded.
    """
    return _shortened(trace, MOST_FRAMES)


def stack_tops(trace: Trace) -> Labels:
    """Return the innermost five frames of each call's stack as one text.

    Raises:
        MissingDataError: no stacks were recorded.
    """
    return _shortened(trace, TOP_FRAMES)


def _shortened(trace: Trace, most: int) -> Labels:
    stacks_recorded = _stacks(trace)
    if stacks_recorded is None:
        reason = "the Python functions around operators were not recorded"
        raise MissingDataError(reason, "profile(with_stack=True)")
    texts = [SEPARATOR.join(stack[:most]) for stack in stacks_recorded[1]]
    labels = distinct(stacks_recorded[0], [*texts, ""])
    nothing = labels.texts.index("")
    return Labels(codes=np.where(labels.codes == nothing, NONE, labels.codes), texts=labels.texts)


@computed
def _stacks(trace: Trace) -> tuple[Ints, list[list[str]]] | None:
    """Return each call's index into the stacks (-1: none), and those, innermost frame first."""
    written = trace.host_calls["call_stack"].cat
    codes = written.codes.to_numpy().astype(np.int64)
    frames = [_frames_of(str(text)) for text in written.categories]
    if not any(frames):  # nothing is written, or empty text
        if not len(trace.python_calls):
            return None
        codes, frames = _stacks_around(trace)
    links = forward_backward(trace)
    forward = np.append(links.forward, NONE)[links.node]
    of_forward = np.append(codes, NONE)[forward]
    return np.where(links.node != NONE, of_forward, codes), frames


def _frames_of(text: str) -> list[str]:
    frames = (frame.strip() for frame in text.split(SEPARATOR))
    return [frame for frame in frames if frame and is_shown(frame)]


def is_shown(frame: str) -> bool:
    """Return whether torch shows this function in stacks."""
    return not any(file in frame and function in frame for file, function in HIDDEN_FRAMES)


def _stacks_around(trace: Trace) -> tuple[Ints, list[list[str]]]:
    """Return each call's index into the distinct stacks around it, and those."""
    names = [*map(str, trace.python_calls["name"].cat.categories), ""]
    paths = python_paths(trace)
    node = np.append(paths.node, NONE)[python_callers(trace).caller]
    codes, used = pd.factorize(node)
    shown = [is_shown(name) for name in names]
    parent, name = paths.parent.tolist(), paths.name.tolist()
    frames: list[list[str]] = []
    for last in used.tolist():
        at, stack = last, list[str]()
        while at != NONE and len(stack) < MOST_FRAMES:
            if shown[name[at]]:
                stack.append(names[name[at]])
            at = parent[at]
        frames.append(stack)
    return codes.astype(np.int64), frames
