"""The autograd engine's calls around its nodes, folded into them.

`autograd::engine::evaluate_function: MmBackward0` runs `MmBackward0` and then adds up what comes
out of it. As two rows of a table they look like two costs; folded, they are one call of the node's
name, which takes as long as the wrapper.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.operators.grouping import Labels, distinct, names
from stepscope.model.trace import Trace

NONE = -1


def are_wrapped(trace: Trace) -> NDArray[np.bool_]:
    """Tell which calls are nodes that a wrapper calls: their time is the wrapper's, too."""
    return np.asarray(forward_backward(trace).wrapper != NONE)


def unwrapped_names(trace: Trace) -> Labels:
    """Return each call's name, of a wrapper the name of what it runs."""
    labels = names(trace)
    texts = [text.removeprefix(WRAPPER) for text in labels.texts]
    return distinct(labels.codes, [*texts, ""])
