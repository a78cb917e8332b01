"""The autograd engine's calls around its nodes, folded into them.

`autograd::engine::evaluate_function: MmBackward0` runs `MmBackward0` and then adds up what comes
out of it. As two rows of a table they look like two costs; folded, the wrapper counts as the node.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses import ancestry
from stepscope.analyses.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.operator_groups import Labels, distinct, names
from stepscope.trace import Trace

NONE = -1


def counted_as(trace: Trace, counted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row that each call is counted as, nodes as their wrappers.

    `counted` is the row that each is counted as otherwise (`operator_costs`).
    """
    wrapper = forward_backward(trace).wrapper
    into = np.where(wrapper != NONE, wrapper, counted)
    return ancestry.nearest(into, into == np.arange(len(into)))


def unwrapped_names(trace: Trace) -> Labels:
    """Return each call's name, of a wrapper the name of what it runs."""
    labels = names(trace)
    texts = [text.removeprefix(WRAPPER) for text in labels.texts]
    return distinct(labels.codes, [*texts, ""])
