"""Operators and device work of modules, by name and by pass.

Every call belongs to at most one module and pass, as the costs in `module_tree` do, so the rows of
a module sum to its self times in operators.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.links import links
from stepscope.analyses.host.host_call_tree import host_flame, host_tree
from stepscope.analyses.host.module_tree import module_names, module_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.trace import Trace, computed

PASSES = ("forward", "backward", "forward again")
FORWARD, BACKWARD, AGAIN = range(len(PASSES))
PASS = Column(
    "phase",
    "object",
    "text",
    "`forward`, `backward`, or `forward again`: run again in a backward pass (checkpointing).",
)
OPERATOR_SCHEMA: Schema = (
    Column("name", "object", "text", "The operator's name."),
    PASS,
    Column("call_count", "int64", "count", "Its calls, those within operators too."),
    Column("host_self_ns", "int64", "ns", "Host time in it and in its own runtime calls, without"
           " operators within."),
    Column("device_self_ns", "int64", "ns", "Device work that it launched itself, summed."),
)  # fmt: skip
KERNEL_SCHEMA: Schema = (
    Column("name", "object", "text", "The kernel's, copy's or memory set's name."),
    PASS,
    Column("call_count", "int64", "count", "How often it ran."),
    Column("total_ns", "int64", "ns", "Sum of its durations."),
    Column("mean_ns", "float64", "ns", "Mean duration."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Owners:
    """Module and pass of each row of `host_tree`."""

    module: Ints
    """Node of `module_tree`, or -1."""
    pass_index: Ints
    """Index into `PASSES`."""


@computed
def _owners(trace: Trace) -> _Owners:
    modules, node = module_tree(trace), host_flame(trace).paths.node
    of_forward = modules.module_of_node[node]
    is_forward = of_forward != NONE
    again = np.where(modules.is_rerun[node], AGAIN, FORWARD)
    return _Owners(
        module=np.where(is_forward, of_forward, modules.backward_module),
        pass_index=np.where(is_forward, again, BACKWARD),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstCalls:
    """First call of each module, in the forward pass if it has one there."""

    event: Ints
    """Index of the event in the file; -1: none."""
    start_ns: Ints
    end_ns: Ints


@computed
def first_calls(trace: Trace) -> FirstCalls:
    """Return the first call of every module.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    modules, tree = module_tree(trace), host_tree(trace)
    names = module_names(trace).of_call
    is_module = np.array([name in names for name in tree.names], dtype=bool)
    owners = _owners(trace)
    rows = np.flatnonzero(is_module[tree.name] & (owners.module != NONE))
    rows = rows[np.lexsort((tree.start_ns[rows], owners.pass_index[rows], owners.module[rows]))]
    module, first_row = np.unique(owners.module[rows], return_index=True)
    first = np.full(len(modules), NONE, dtype=np.int64)
    first[module] = rows[first_row]
    frames = trace.python_calls, trace.host_calls, trace.runtime_calls
    event = np.concatenate([*(frame["event"].to_numpy() for frame in frames), [NONE]])
    start_ns = np.append(tree.start_ns, 0)[first]
    return FirstCalls(
        event=event[first],
        start_ns=start_ns,
        end_ns=start_ns + np.append(tree.duration_ns, 0)[first],
    )


def operators_of(trace: Trace, nodes: Ints) -> pd.DataFrame:
    """Return the operators that ran for these modules, in `OPERATOR_SCHEMA` columns.

    Longest on the device first, then on the host.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    owners, tree = _owners(trace), host_tree(trace)
    rows = np.arange(len(tree))
    is_host = (rows >= tree.host_offset) & (rows < tree.runtime_offset)
    is_called = tree.is_operator & is_host
    operator = ancestry.nearest(tree.nesting.parent, is_called)
    is_selected = _is_of(trace, nodes)[owners.module] & (operator != NONE) & tree.is_operator
    rows_selected = np.flatnonzero(is_selected)
    table = pd.DataFrame(
        {
            "name": tree.name[operator[rows_selected]],
            "phase": owners.pass_index[operator[rows_selected]],
            "call_count": is_called[rows_selected].astype(np.int64),
            "host_self_ns": tree.self_ns[rows_selected],
            "device_self_ns": tree.device_ns[rows_selected],
        }
    )
    summed = table.groupby(["name", "phase"], sort=True, as_index=False).sum()
    by = ["device_self_ns", "host_self_ns"]
    return _named(summed, tree.names, by, OPERATOR_SCHEMA)


def kernels_of(trace: Trace, nodes: Ints) -> pd.DataFrame:
    """Return the device work that these modules launched, in `KERNEL_SCHEMA` columns.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    owners, tree, linked = _owners(trace), host_tree(trace), links(trace)
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    row = np.where(
        call >= 0,
        call + tree.runtime_offset,
        np.where(owner >= 0, owner + tree.host_offset, NONE),
    )
    rows = np.flatnonzero(_is_of(trace, nodes)[np.append(owners.module, NONE)[row]])
    events = trace.device_events
    name = events["name"].cat
    table = pd.DataFrame(
        {
            "name": name.codes.to_numpy()[rows].astype(np.int64),
            "phase": owners.pass_index[row[rows]],
            "call_count": np.ones(len(rows), dtype=np.int64),
            "total_ns": events["duration_ns"].to_numpy()[rows],
        }
    )
    summed = table.groupby(["name", "phase"], sort=True, as_index=False).sum()
    summed["mean_ns"] = summed["total_ns"] / summed["call_count"]
    names = tuple(str(text) for text in name.categories)
    return _named(summed, names, ["total_ns"], KERNEL_SCHEMA)


def _is_of(trace: Trace, nodes: Ints) -> Mask:
    """Return a mask of these modules; the last entry is for no module."""
    is_of = np.zeros(len(module_tree(trace)) + 1, dtype=bool)
    is_of[nodes] = True
    return is_of


def _named(
    table: pd.DataFrame, names: tuple[str, ...], by: list[str], schema: Schema
) -> pd.DataFrame:
    table = table.sort_values(by, ascending=False, kind="stable").reset_index(drop=True)
    texts, passes = np.array([*names, ""], dtype=object), np.array(PASSES, dtype=object)
    named = table.assign(
        name=pd.Series(texts[table["name"].to_numpy(dtype=np.int64)], dtype=object),
        phase=pd.Series(passes[table["phase"].to_numpy(dtype=np.int64)], dtype=object),
    )
    return named.astype({column.name: column.dtype for column in schema})
