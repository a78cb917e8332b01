"""Convolutions whose bias the following batch norm removes.

In training, a batch norm subtracts each channel's mean, and with it any bias. It is the
convolution's next sibling, except for the operator that counts batches (`num_batches_tracked`).
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.links import links
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.product_shapes import argument
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

CONVOLUTION = re.compile(r"^aten::(?:conv(?:_transpose)?[123]d|convolution)$")
NORM = "aten::batch_norm"
BETWEEN = re.compile(r"^aten::(?:add_?|empty\w*|zeros\w*|zero_|fill_|detach_?|to|_to_copy|copy_)$")
"""Operators that may run between the two: the count of batches, and allocations."""
BIAS = 2
TRAINING = 5
"""Indices of arguments (aten/src/ATen/native/native_functions.yaml)."""
ADDS = re.compile(r"^aten::add_?$")
SUMS = re.compile(r"^aten::sum$")
BACKWARD = re.compile(r"^(?:\w*Conv\w*Backward\d*)$")


@dataclass(frozen=True, kw_only=True, eq=False)
class BiasedConvolutions:
    """Convolutions before batch norms, as rows of `host_calls`."""

    followed: Ints
    """Convolutions with a batch norm as the next operator."""
    biased: Ints
    """Those of them that have a bias."""


@computed
def biased_convolutions(trace: Trace) -> BiasedConvolutions:
    """Return the convolutions of training that a batch norm follows."""
    calls = trace.host_calls
    norms = np.flatnonzero(name_mask(calls["name"], NORM.__eq__))
    norms = norms[_trains(trace, norms)]
    before = _before(trace, norms)
    is_convolution = np.append(name_mask(calls["name"], CONVOLUTION.search), False)
    convolutions = np.unique(before[is_convolution[before]])
    codes = calls["input_types"].cat.codes.to_numpy()[convolutions]
    given = [_has_argument(str(text), BIAS) for text in calls["input_types"].cat.categories]
    return BiasedConvolutions(
        followed=convolutions, biased=convolutions[np.array([*given, False])[codes]]
    )


def _trains(trace: Trace, norms: Ints) -> Mask:
    """Return a mask of norms in training mode; where not recorded, the mode of the program."""
    inputs = trace.host_calls["concrete_inputs"].cat
    modes = [argument(str(text), TRAINING) for text in inputs.categories]
    default = str(is_training(trace))
    is_training_mode = np.array(
        [*((mode or default) == "True" for mode in modes), default == "True"]
    )
    return np.asarray(is_training_mode[inputs.codes.to_numpy()[norms]])


def _before(trace: Trace, norms: Ints) -> Ints:
    """Return the sibling operator before each norm, skipping `BETWEEN`; -1 for none."""
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    passed_over = name_mask(calls["name"], BETWEEN.search) | ~calls["is_operator"].to_numpy()
    rows = np.flatnonzero(np.isin(parent, parent[norms]) & ~passed_over)
    thread = calls["thread"].cat.codes.to_numpy()
    order = rows[np.lexsort((rows, parent[rows], thread[rows]))]
    same = (parent[order][1:] == parent[order][:-1]) & (thread[order][1:] == thread[order][:-1])
    before = np.full(len(calls), NONE, dtype=np.int64)
    before[order[1:]] = np.where(same, order[:-1], NONE)
    return np.asarray(before[norms])


def bias_kernels(trace: Trace, rows: Ints) -> Ints:
    """Return the `device_events` that add these calls' biases or sum their gradients."""
    calls, owner = trace.host_calls, links(trace).owner_of_device_event
    parent = calls["parent"].to_numpy()
    is_selected = np.zeros(len(calls), dtype=bool)
    is_selected[rows] = True
    adds = np.append(name_mask(calls["name"], ADDS.search), False)[owner]
    adds[adds] = nearest_of(parent, owner[adds], is_selected) != NONE
    sequence = calls["sequence_number"].to_numpy()
    is_of_selected = np.isin(sequence, sequence[rows][sequence[rows] >= 0])
    is_backward = name_mask(calls["name"], BACKWARD.search) & is_of_selected
    sums = np.append(name_mask(calls["name"], SUMS.search), False)[owner]
    sums[sums] = nearest_of(parent, owner[sums], is_backward) != NONE
    return np.flatnonzero(adds | sums)


def _has_argument(input_types: str, index: int) -> bool:
    return argument(input_types, index) not in ("", "None")
