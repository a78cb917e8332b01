"""Cost of copies to a device, the code that requests them, and tensors created on the CPU for them.

A copied tensor was created for the copy if an `aten::to` requests it, and the last operator on its
thread in the 200 µs before created a tensor of the same shape. torch's ExtraCUDACopyPattern goes by
order alone, and mistakes a loader's batches for such tensors.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import event_references
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import outermost_operator, synchronizations
from stepscope.analyses.devices.host_copies import HostCopies
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.idle.sync_cost import sync_cost
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class CopyCost:
    """Times of one device; `exposed` is busy time, the others are disjoint idle time."""

    exposed: Intervals
    """Some of the copies run, and no kernel."""
    late: Intervals
    """The device is idle because the host is late, in the copies' calls."""
    behind: Intervals
    """The device is idle right after the host's waits for these copies."""

    @property
    def idle(self) -> Intervals:
        """Idle time due to the copies."""
        return intervals.merged(self.late, self.behind)


def copy_cost(trace: Trace, device: DeviceActivity, copies: HostCopies) -> CopyCost:
    """Return the cost of some copies to a device."""
    late = idle_ledger(trace)[device.device].host_late
    return CopyCost(
        exposed=intervals.difference(copies.on_device, device.kernels),
        late=intervals.intersection(copies.on_host, late),
        behind=sync_cost(trace, "h2d", _waits_for(trace, copies)).idle,
    )


def _waits_for(trace: Trace, copies: HostCopies) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which `synchronizations` come from operators that requested one of the copies."""
    asker = links(trace).owner_of_call[synchronizations(trace).calls]
    return np.asarray(np.isin(asker, copies.owner[copies.owner >= 0]))


OUTSIDE = "outside any operator"


@dataclass(frozen=True, kw_only=True)
class CopySite:
    """Copies of one size that one operator requested."""

    operator: str
    line: str
    """The user's source line of the first copy, or ""."""
    bytes: float
    """Size of each copy."""
    count: int
    device_ns: int
    """Total time of the copies."""
    host_ns: int
    """Total time of the host's calls."""


def copy_sites(trace: Trace, copies: HostCopies, most: int = 10) -> tuple[CopySite, ...]:
    """Return the operators that requested copies, the costliest in host and device time first."""
    owner = outermost_operator(trace, copies.owner)
    names = trace.host_calls["name"].cat
    keys = np.stack((np.append(names.codes.to_numpy(), -1)[owner], copies.bytes), axis=1)
    distinct, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    device_ns = sums(copies.end_ns - copies.start_ns, group, len(distinct))
    host_ns = sums(copies.call_end_ns - copies.call_start_ns, group, len(distinct))
    number = np.bincount(group, minlength=len(distinct))
    order = np.lexsort((first, -(device_ns + host_ns)))[:most]
    return tuple(
        CopySite(
            operator=str(names.categories[int(distinct[at, 0])])
            if distinct[at, 0] >= 0
            else OUTSIDE,
            line=event_references.line_of_host_call(trace, int(owner[first[at]])),
            bytes=float(distinct[at, 1]),
            count=int(number[at]),
            device_ns=int(device_ns[at]),
            host_ns=int(host_ns[at]),
        )
        for at in order.tolist()
    )


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
