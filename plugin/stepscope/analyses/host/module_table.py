"""Tables of module costs, by path and by class."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import is_outermost, preorder
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.host.host_call_tree import host_flame, host_tree
from stepscope.analyses.host.module_tree import ModuleTree, module_tree
from stepscope.analyses.memory.owners import calls_around, modules_around
from stepscope.analyses.operators.replayed_operators import replayed_operators
from stepscope.dialects import MEMORY_DEVICES
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

SHOWN_NAMES = 64
"""Innermost modules of a path that are shown."""
HOST_CODES = [code for code, name in MEMORY_DEVICES.items() if name in {"CPU", "MKLDNN", "IDEEP"}]
"""Device types of host memory, as in torch's `key_averages()`."""
PATH: Schema = (
    Column("path", "object", "text", "The modules that called it and itself, parted by `/`."),
    Column("parent", "int64", "id", "The row of the module that called it, -1 at the top."),
    Column("depth", "int64", "count", "How many modules it is called within."),
    Column("module", "object", "text", "The instance: `Linear_3` as torch numbers it."),
)
CLASS_NAME = Column("class_name", "object", "text", "Its class, without the package.")
ORIGIN = Column(
    "origin",
    "object",
    "text",
    "What tells of modules: `nn.Module` (torch's Python tracer), `Lightning` or `record_function`.",
)
COSTS: Schema = (
    Column("call_count", "int64", "count", "Calls in forward passes."),
    Column("operator_count", "int64", "count", "Operators that it called directly."),
    Column("forward_host_self_ns", "int64", "ns", "Host time of forward calls, without nested"
           " modules."),
    Column("forward_host_total_ns", "int64", "ns", "Host time of forward calls, with nested"
           " modules."),
    Column("forward_python_self_ns", "int64", "ns", "Host time of forward calls outside of"
           " operators and nested modules: the host self time of torch-tb-profiler."),
    Column("forward_device_self_ns", "int64", "ns", "Device work launched by forward calls,"
           " summed, without nested modules."),
    Column("forward_device_total_ns", "int64", "ns", "Device work launched by forward calls,"
           " summed, with nested modules."),
    Column("replayed_device_self_ns", "int64", "ns", "Device work of replays of a graph that was"
           " captured in its calls, or has the kernels of its eager calls, without nested modules."
           " It is not part of the other columns, but where a call of the module replays."),
    Column("replayed_device_total_ns", "int64", "ns", "The same with nested modules."),
    Column("backward_host_self_ns", "int64", "ns", "Host time of the backward functions of its"
           " operators, without nested modules."),
    Column("backward_host_total_ns", "int64", "ns", "Host time of the backward functions of its"
           " operators, with nested modules."),
    Column("backward_device_self_ns", "int64", "ns", "Device work launched by its backward"
           " functions, summed, without nested modules."),
    Column("backward_device_total_ns", "int64", "ns", "Device work launched by its backward"
           " functions, summed, with nested modules."),
    Column("rerun_count", "int64", "count", "Forward calls repeated in a backward pass"
           " (activation checkpointing)."),
    Column("rerun_host_total_ns", "int64", "ns", "Host time of repeated forward calls, with"
           " nested modules."),
    Column("rerun_device_total_ns", "int64", "ns", "Device work launched by repeated forward"
           " calls, summed."),
)  # fmt: skip
MEMORY: Schema = (
    Column("host_allocated_bytes", "float64", "bytes", "Host memory allocated in forward calls,"
           " with nested modules; NaN: not recorded."),
    Column("host_net_bytes", "float64", "bytes", "Host memory allocated less freed in forward"
           " calls."),
    Column("device_allocated_bytes", "float64", "bytes", "Device memory allocated in forward"
           " calls, with nested modules."),
    Column("device_net_bytes", "float64", "bytes", "Device memory allocated less freed in"
           " forward calls."),
)  # fmt: skip
SCHEMA: Schema = (*PATH, CLASS_NAME, ORIGIN, *COSTS, *MEMORY)
CLASS_SCHEMA: Schema = (
    CLASS_NAME,
    ORIGIN,
    Column("module_count", "int64", "count", "Distinct instances."),
    *COSTS,
    *MEMORY,
)
"""Totals count a module nested in another of its class once."""
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleCosts:
    """The tables' columns of numbers, one value per module path."""

    exclusive: Columns
    """Columns of a module's own calls, operators and time."""
    total: Columns
    """Columns that include nested modules."""


@public_table(
    "modules",
    SCHEMA,
    "One row per nn.Module by the modules that called it: its forward and backward pass.",
)
@computed
def module_table(trace: Trace) -> pd.DataFrame:
    """Return one row per module path, each followed by the modules that it calls, in call order.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    tree, costs = module_tree(trace), _costs(trace)
    position = preorder(tree.parent, tree.depth)
    order = np.argsort(position)
    names = np.array([module.name for module in tree.modules], dtype=object)
    columns: Columns = {
        "path": _paths(tree),
        "parent": np.append(position, NONE)[tree.parent],
        "depth": tree.depth,
        "module": names,
        "class_name": np.array([module.class_name for module in tree.modules], dtype=object),
        "origin": np.full(len(tree), tree.origin, dtype=object),
        **costs.exclusive,
        **costs.total,
    }
    return to_frame(SCHEMA, {name: values[order] for name, values in columns.items()})


@public_table(
    "modules-by-class",
    CLASS_SCHEMA,
    "One row per class of nn.Modules: what all its instances cost together.",
)
@computed
def class_table(trace: Trace) -> pd.DataFrame:
    """Return one row per module class, longest on the device first, then on the host.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    tree, costs = module_tree(trace), _costs(trace)
    group, classes = pd.factorize(
        np.array([module.class_name for module in tree.modules], dtype=object)
    )
    outermost = is_outermost(group, tree.parent, tree.depth)
    sums: Columns = {}
    for columns, mask in (
        (costs.exclusive, np.ones(len(tree), dtype=bool)),
        (costs.total, outermost),
    ):
        for name, values in columns.items():
            sums[name] = np.zeros(len(classes), dtype=values.dtype)
            np.add.at(sums[name], group[mask], values[mask])
    instances = pd.DataFrame({"group": group, "name": [module.name for module in tree.modules]})
    sums["module_count"] = np.bincount(instances.drop_duplicates()["group"], minlength=len(classes))
    sums["class_name"] = np.asarray(classes, dtype=object)
    sums["origin"] = np.full(len(classes), tree.origin, dtype=object)
    order = ("-forward_device_total_ns", "-forward_host_total_ns", "class_name")
    return to_frame(CLASS_SCHEMA, sums, *order)


def _paths(tree: ModuleTree) -> NDArray[Any]:
    paths: list[str] = []
    for module, parent, depth in zip(tree.modules, tree.parent, tree.depth, strict=True):
        above = paths[parent] if parent != NONE else ""
        if depth >= SHOWN_NAMES:
            above = above.partition("/")[2]
        paths.append(f"{above}/{module.name}" if above else module.name)
    return np.array(paths, dtype=object)


@computed
def _costs(trace: Trace) -> ModuleCosts:
    tree = module_tree(trace)
    replayed_ns = _replayed_ns(trace, tree)
    self_columns: Columns = {
        "call_count": tree.call_count,
        "operator_count": tree.operator_count,
        "forward_host_self_ns": tree.forward.host_ns,
        "forward_python_self_ns": tree.outside_operators_ns,
        "forward_device_self_ns": tree.forward.device_ns,
        "replayed_device_self_ns": replayed_ns,
        "backward_host_self_ns": tree.backward.host_ns,
        "backward_device_self_ns": tree.backward.device_ns,
        "rerun_count": tree.rerun_count,
    }
    totalled: Columns = {
        "forward_host_total_ns": tree.forward.host_ns,
        "forward_device_total_ns": tree.forward.device_ns,
        "replayed_device_total_ns": replayed_ns,
        "backward_host_total_ns": tree.backward.host_ns,
        "backward_device_total_ns": tree.backward.device_ns,
        "rerun_host_total_ns": tree.rerun.host_ns,
        "rerun_device_total_ns": tree.rerun.device_ns,
        **_memory_bytes(trace, tree),
    }
    totals = ancestry.with_descendants(tree.parent, *totalled.values())
    total: Columns = dict(zip(totalled, totals, strict=True))
    if not len(trace.memory):
        total |= {column.name: np.full(len(tree), np.nan) for column in MEMORY}
    return ModuleCosts(exclusive=self_columns, total=total)


def _replayed_ns(trace: Trace, tree: ModuleTree) -> Ints:
    """Return the device time of replays of graphs, by the module of the matching recording.

    An instance that several modules call has several nodes: its time is left out.
    """
    replayed = replayed_operators(trace)
    count = Counter(module.name for module in tree.modules)
    nodes = {module.name: node for node, module in enumerate(tree.modules)}
    of_call = np.array(
        [nodes[name] if count[name] == 1 else NONE for name in replayed.module], dtype=np.int64
    )
    module = np.append(of_call, NONE)[replayed.call_of_device_event]
    return sums_where(trace.device_events["duration_ns"].to_numpy(), module, len(tree))


def _memory_bytes(trace: Trace, tree: ModuleTree) -> Columns:
    """Return the memory allocated in each module's forward calls, without nested modules."""
    memory = trace.memory
    if tree.origin == "nn.Module":
        row = modules_around(trace)
    else:
        row = np.where(
            (call := calls_around(trace)) >= 0, call + host_tree(trace).host_offset, NONE
        )
    node = np.append(host_flame(trace).paths.node, NONE)[row]
    of_flame = np.append(np.where(tree.is_rerun, NONE, tree.module_of_node), NONE)
    module = of_flame[node]
    size = memory["bytes"].to_numpy()
    on_host = memory["device_type_code"].isin(HOST_CODES).to_numpy()
    columns: Columns = {}
    for side, is_on_side in (("host", on_host), ("device", ~on_host)):
        for kind, counts in (("allocated", size > 0), ("net", size != 0)):
            mask = is_on_side & counts
            columns[f"{side}_{kind}_bytes"] = sums_where(size, module, len(tree), mask)
    return columns
