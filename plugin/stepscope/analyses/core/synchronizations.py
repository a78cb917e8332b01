"""Host calls that block until the device has finished work, by cause."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links, rows_of_keys
from stepscope.analyses.core.window import window
from stepscope.model import call_tree
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.copies import DIRECTIONS
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

Cause = Literal["item", "dynamic", "d2h", "h2d", "operator", "explicit"]
CAUSES: tuple[Cause, ...] = ("item", "dynamic", "d2h", "h2d", "operator", "explicit")
ITEM = frozenset({"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"})
DYNAMIC = frozenset(
    {
        "aten::nonzero",
        "aten::masked_select",
        "aten::unique",
        "aten::unique2",
        "aten::_unique",
        "aten::_unique2",
        "aten::unique_dim",
        "aten::unique_consecutive",
        "aten::repeat_interleave",
        "aten::index",
        "aten::index_put",
        "aten::index_put_",
        "aten::_index_put_impl_",
        "aten::argwhere",
        "aten::bincount",
        "aten::one_hot",
    }
)
"""Operators whose output shape depends on values, so that the host must wait for them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Synchronizations:
    """Blocking calls in the window, in the order they began; all arrays are parallel."""

    calls: Ints
    """Rows of `runtime_calls`."""
    start_ns: Ints
    end_ns: Ints
    cause: NDArray[np.int8]
    """Index into `CAUSES`."""
    owner: Ints
    """The outermost operator around the call (`host_calls` row), or -1."""

    def of(self, cause: Cause) -> Mask:
        """Return a mask of the calls with this cause."""
        return np.asarray(self.cause == CAUSES.index(cause))


@computed
def synchronizations(trace: Trace) -> Synchronizations:
    """Return the blocking calls in the window, with cause and operator."""
    calls = trace.runtime_calls
    span = window(trace)
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    # without steps the window ends with the device, and a host that waits for it returns later
    inside = (start >= span.start_ns) & ((end <= span.end_ns) | (not span.has_steps))
    rows = _outermost_waits(trace, np.flatnonzero(is_blocking(trace) & inside))
    owner = links(trace).owner_of_call[rows]
    return Synchronizations(
        calls=rows,
        start_ns=start[rows],
        end_ns=end[rows],
        cause=_causes(trace, rows, owner),
        owner=outermost_operator(trace, owner),
    )


def is_blocking(trace: Trace) -> Mask:
    """Return which runtime calls block: by name, and copies that are synchronous or pageable."""
    names, dialect = trace.runtime_calls["name"], trace.dialect
    waits = name_mask(names, dialect.blocking_call.search)
    if dialect.staged_copy_call is None:
        return waits
    copies = trace.copies
    is_pageable = (copies["direction"] == "DtoH").to_numpy() & copies["is_pageable"].to_numpy()
    correlations = copies["correlation"].to_numpy()[is_pageable]
    of_pageable = np.isin(trace.runtime_calls["correlation"].to_numpy(), correlations)
    return waits | (name_mask(names, dialect.staged_copy_call.search) & of_pageable)


def _outermost_waits(trace: Trace, rows: Ints) -> Ints:
    """Return the rows without waits inside another wait: one layer's call of the next layer."""
    calls = trace.runtime_calls.iloc[rows]
    thread = calls["thread"].cat.codes.to_numpy()
    nesting = call_tree.nest(thread, calls["start_ns"].to_numpy(), calls["duration_ns"].to_numpy())
    return rows[nesting.parent < 0]


def _causes(trace: Trace, rows: Ints, owner: Ints) -> NDArray[np.int8]:
    cause = np.full(len(rows), CAUSES.index("operator"), dtype=np.int8)
    cause[owner < 0] = CAUSES.index("explicit")
    direction = _copy_directions(trace)
    of_owner = np.append(direction, -1)[owner]
    cause[of_owner == DIRECTIONS.index("HtoD")] = CAUSES.index("h2d")
    cause[of_owner == DIRECTIONS.index("DtoH")] = CAUSES.index("d2h")
    cause[ancestor_named(trace, owner, ITEM) >= 0] = CAUSES.index("item")
    # some of these call `aten::item` for their result's size
    cause[ancestor_named(trace, owner, DYNAMIC) >= 0] = CAUSES.index("dynamic")
    return cause


def _copy_directions(trace: Trace) -> Ints:
    """Return, for each host call, the direction of a copy that it launched directly, or -1."""
    directions = np.full(len(trace.host_calls), -1, dtype=np.int64)
    copies = trace.copies
    direction = copies["direction"].cat.codes.to_numpy().astype(np.int64)
    rows = rows_of_keys(copies["event"].to_numpy(), trace.device_events["event"].to_numpy())
    owner = links(trace).owner_of_device_event[rows]
    has_owner = owner >= 0
    directions[owner[has_owner]] = direction[has_owner]
    return directions


def ancestor_named(trace: Trace, rows: Ints, names: frozenset[str]) -> Ints:
    """Return, for each `host_calls` row (or -1), its nearest ancestor or itself with a name."""
    calls = trace.host_calls
    is_named = name_mask(calls["name"], names.__contains__)
    is_end = np.append(is_named, True)  # -1 ends the climb
    parent = np.append(calls["parent"].to_numpy(), -1)
    ancestor = rows.copy()
    while not is_end[ancestor].all():
        ancestor = np.where(is_end[ancestor], ancestor, parent[ancestor])
    return ancestor


def outermost_named(trace: Trace, rows: Ints, names: frozenset[str]) -> Ints:
    """Return, for each `host_calls` row with a name, the outermost of the calls so named around it.

    Calls between them have such names as well: `aten::item` calls `aten::_local_scalar_dense`.
    """
    calls = trace.host_calls
    is_named = np.append(name_mask(calls["name"], names.__contains__), False)
    parent = np.append(calls["parent"].to_numpy(), -1)
    outermost = rows.copy()
    while is_named[parent[outermost]].any():
        outermost = np.where(is_named[parent[outermost]], parent[outermost], outermost)
    return outermost


def outermost_operator(trace: Trace, rows: Ints) -> Ints:
    """Return, for each `host_calls` row (or -1), the outermost operator around it."""
    calls = trace.host_calls
    parent = np.append(calls["parent"].to_numpy(), -1)
    is_operator = np.append(calls["is_operator"].to_numpy(), False)
    operator = rows.copy()
    while True:
        above = parent[operator]
        climbs = is_operator[above]
        if not climbs.any():
            return operator
        operator = np.where(climbs, above, operator)
