"""Python functions that called each operator, innermost first.

From `Call stack` where the file has it (torch 1.8 to 1.10), else from the Python functions around
the call. An operator of the backward pass has the stack of its forward operator, as in torch's
`key_averages(group_by_stack_n=…)` (`_set_backward_stacktraces`), but of the one that made the node
(`forward_backward`).
"""

import numpy as np
import pandas as pd

from stepscope.analyses.core.call_paths import python_callers, python_paths
from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.operators.grouping import Labels, distinct
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace, computed

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
