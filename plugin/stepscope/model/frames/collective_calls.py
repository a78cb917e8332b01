"""Calls of collectives on the host, and the kernels that each call launched.

torch wraps a call as `c10d::allreduce_` > `record_param_comms` > `nccl:all_reduce` > the launch;
old versions lack the second, custom kernels have an operator only. A kernel belongs to the
innermost of each around its launch.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.dialects import GRAPH_LAUNCH_NAME
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.collective_names import ANNOTATION, CALL_NAME, FUNCTION, HOST_BACKENDS
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans


class CollectiveCalls(NamedTuple):
    """Rows of `host_calls`, -1 if missing; one entry per collective."""

    params: Ints
    """`record_param_comms`."""
    annotation: Ints
    """`nccl:all_reduce` and similar."""
    function: Ints
    """The innermost operator of a collective, `c10d::allreduce_`."""

    @property
    def call(self) -> Ints:
        """The row that represents the call: parameters, else annotation, else operator."""
        outer = np.where(self.params >= 0, self.params, self.annotation)
        return np.where(outer >= 0, outer, self.function)

    def at(self, selection: Ints | Mask) -> "CollectiveCalls":
        """Return the selected entries; -1 selects an entry without calls."""
        indices = np.flatnonzero(selection) if selection.dtype == bool else selection
        return CollectiveCalls(*(np.append(rows, NONE)[indices] for rows in self))


def has_any(host_calls: pd.DataFrame) -> bool:
    """Check whether any call is one of a collective."""
    return any(len(rows) for rows in _candidates(host_calls))


def around(host_calls: pd.DataFrame, inner: pd.DataFrame) -> CollectiveCalls:
    """Return the calls around each row of a host frame."""
    candidates = _candidates(host_calls)
    return CollectiveCalls(*(_enclosing(host_calls, rows, inner) for rows in candidates))


def all_calls(host_calls: pd.DataFrame) -> CollectiveCalls:
    """Return every call by its innermost part: annotations, and parameters without one."""
    params, annotations, _ = _candidates(host_calls)
    inner = around(host_calls, host_calls.iloc[annotations])
    bare = np.setdiff1d(params, inner.params)
    outer = around(host_calls, host_calls.iloc[bare])
    annotation = np.concatenate((annotations, np.full(len(bare), NONE)))
    function = np.concatenate((inner.function, outer.function))
    return CollectiveCalls(np.concatenate((inner.params, bare)), annotation, function)


def is_on_host(host_calls: pd.DataFrame, calls: CollectiveCalls) -> Mask:
    """Return a mask of the annotations that cover the transfer itself: those of gloo and MPI."""
    is_host = name_mask(host_calls["name"], _is_host_annotation)
    return np.append(is_host, False)[calls.annotation]


def launches(kernels: pd.DataFrame, runtime_calls: pd.DataFrame) -> Ints:
    """Return the row of `runtime_calls` that launched each kernel; -1 if unknown or a graph."""
    numbers = kernels["correlation"].to_numpy()
    rows = np.flatnonzero(runtime_calls["correlation"].isin(numbers[numbers >= 0]).to_numpy())
    rows = rows[~name_mask(runtime_calls["name"].iloc[rows], GRAPH_LAUNCH_NAME.search)]
    keys = pd.Index(runtime_calls["correlation"].to_numpy()[rows])
    is_first = ~keys.duplicated()
    index = keys[is_first].get_indexer(pd.Index(numbers))
    return np.asarray(np.append(rows[is_first], NONE)[index])


def _is_host_annotation(name: str) -> bool:
    match = ANNOTATION.match(name)
    return match is not None and match[1].lower() in HOST_BACKENDS


def _candidates(host_calls: pd.DataFrame) -> tuple[Ints, Ints, Ints]:
    names, is_operator = host_calls["name"], host_calls["is_operator"].to_numpy()
    return (
        np.flatnonzero(name_mask(names, CALL_NAME.__eq__)),
        np.flatnonzero(name_mask(names, ANNOTATION.match)),
        np.flatnonzero(name_mask(names, FUNCTION.search) & is_operator),
    )


def _enclosing(host_calls: pd.DataFrame, outer: Ints, inner: pd.DataFrame) -> Ints:
    index = call_tree.enclosing(spans(host_calls.iloc[outer]), spans(inner))
    return np.append(outer, NONE)[index]
