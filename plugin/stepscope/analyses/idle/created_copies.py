"""Tensors that the program creates on the CPU and copies to the device right away.

A copy counts if an `aten::to` requests it, and the last operator on its thread in the 200 µs before
created a tensor of the same shape. torch's ExtraCUDACopyPattern goes by order alone, and mistakes a
loader's batches for such tensors.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.synchronizations import outermost_operator
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

MOVE = "aten::to"
FROM_LIST = "aten::lift_fresh"
"""The last but one operator in `torch.tensor([...])`; also in `torch.from_numpy`."""
FROM_LIST_END = "aten::detach_"
"""The last operator in `torch.tensor([...])`, but not in `torch.from_numpy`."""
MAKERS = frozenset(
    f"aten::{name}{like}"
    for name in ("zeros", "ones", "full", "rand", "randn", "randint")
    for like in ("", "_like")
) | {"aten::arange", "aten::linspace", "aten::eye", "aten::randperm", FROM_LIST}
UNTOLD_SHAPE = frozenset({"aten::arange"})
"""No operator inside these has an input of the tensor's shape."""
PASSED_OVER = frozenset(
    {"aten::detach", FROM_LIST_END, "aten::view", "aten::reshape", "aten::unsqueeze", "aten::empty"}
)
"""Operators without work that may lie between creation and copy."""
MOST_BETWEEN_NS = 200_000
MOST_ROWS_BACK = 48
"""Number of preceding host calls to search: creating a tensor takes some ten calls."""
MOST_LIST_BYTES = 64_000
"""Larger tensors are data, not literal lists."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CreatedCopies:
    """Copies of newly created tensors; `maker`, `move` and `is_sure` are parallel to them."""

    copies: HostCopies
    maker: Ints
    """The operator that created the tensor (`host_calls` row)."""
    move: Ints
    """The `aten::to` (`host_calls` row)."""
    is_sure: Mask
    """Whether shapes were recorded and are equal."""


def created_copies(trace: Trace, copies: HostCopies) -> CreatedCopies:
    """Return the copies of tensors that were created right before."""
    calls = trace.host_calls
    move = outermost_operator(trace, copies.owner)
    is_move = np.append(name_mask(calls["name"], MOVE.__eq__), False)[move]
    copies, move = copies.select(is_move), move[is_move]
    shape = _first_shapes(calls["input_dims"]) if len(move) else np.full(1, NONE, dtype=np.int64)
    maker, same = _made_before(trace, move, shape)
    is_created = (maker != NONE) & _is_made_here(trace, copies, maker, move)
    has_shape = shape[move] != NONE
    untold = np.append(name_mask(calls["name"], UNTOLD_SHAPE.__contains__), False)[maker]
    is_created &= same | untold | ~has_shape
    return CreatedCopies(
        copies=copies.select(is_created),
        maker=maker[is_created],
        move=move[is_created],
        is_sure=(same & has_shape)[is_created],
    )


def _made_before(trace: Trace, move: Ints, shape: Ints) -> tuple[Ints, Mask]:
    """Return the operator that created each move's tensor, or -1, and whether shapes agree."""
    calls = trace.host_calls
    thread = calls["thread"].cat.codes.to_numpy()
    name = calls["name"]
    makes = name_mask(name, MAKERS.__contains__)
    passed = name_mask(name, PASSED_OVER.__contains__) | ~calls["is_operator"].to_numpy()
    from_list, ends_list = name_mask(name, FROM_LIST.__eq__), name_mask(name, FROM_LIST_END.__eq__)
    maker = np.full(len(move), NONE, dtype=np.int64)
    same, saw_end = np.zeros(len(move), dtype=bool), np.zeros(len(move), dtype=bool)
    open_ = np.ones(len(move), dtype=bool)
    for back in range(1, MOST_ROWS_BACK):
        at = np.flatnonzero(open_ & (move >= back))
        if not len(at):
            break
        row = move[at] - back
        at, row = at[thread[row] == thread[move[at]]], row[thread[row] == thread[move[at]]]
        top = outermost_operator(trace, row)
        saw_end[at] |= ends_list[top]
        is_new = (maker[at] == NONE) & ~passed[top]
        fits = makes[top] & (~from_list[top] | saw_end[at])
        maker[at[is_new & fits]] = top[is_new & fits]
        is_inside = maker[at] == top
        same[at[is_inside]] |= (shape[row] == shape[move[at]])[is_inside] & (shape[row] != NONE)[
            is_inside
        ]
        open_[at] = (is_new & fits & (row != top)) | (is_inside & (row != top)) | passed[top]
    return maker, same


def _is_made_here(trace: Trace, copies: HostCopies, maker: Ints, move: Ints) -> Mask:
    """Return which tensors were created right before the move, not by data loading, not data."""
    calls = trace.host_calls
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    between = start[move] - end[maker]
    loading = intervals.covered_ns(data_loading(trace).times, start[maker], start[maker] + 1) > 0
    is_list = name_mask(calls["name"], FROM_LIST.__eq__)[maker]
    is_data = is_list & (copies.bytes > MOST_LIST_BYTES)
    return np.asarray((between >= 0) & (between <= MOST_BETWEEN_NS) & ~loading & ~is_data)


def _first_shapes(dims: "pd.Series[str]") -> Ints:
    """Return a number per shape of each row's first input, -1: not recorded; and a last -1."""
    texts = [first_shape(str(text)) for text in dims.cat.categories]
    numbers, _ = pd.factorize(np.array(texts, dtype=object))
    codes = np.append(dims.cat.codes.to_numpy(), NONE)
    return np.asarray(np.append(numbers, NONE)[codes], dtype=np.int64)


def first_shape(text: str) -> str | None:
    """Return the first input's shape of a row of `input_dims` (`[8, 4]`); None: not recorded."""
    try:
        shape = json.loads(text)[0]
    except (ValueError, IndexError, KeyError, TypeError, RecursionError):
        return None
    return json.dumps(shape) if isinstance(shape, list) else None
