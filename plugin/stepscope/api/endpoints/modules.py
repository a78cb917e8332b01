"""Endpoints of modules: their table, and the work of one of them."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.call_paths import preorder
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.core.window import window
from stepscope.analyses.host import module_work
from stepscope.analyses.host.module_table import CLASS_SCHEMA, SCHEMA, class_table, module_table
from stepscope.analyses.host.module_tree import ModuleTree, Origin, module_names, module_tree
from stepscope.api.endpoint import TimeRangeQuery, trace_endpoint
from stepscope.api.messages import Column, Response, Table
from stepscope.api.public_tables import RowOrder, cells, shown_table, unit_of
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.model.frames import Schema
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_MODULES = 20_000
MOST_PARTS = 500
NONE = -1
By = Literal["instance", "class"]
ORIGINS: dict[Origin, str] = {
    "nn.Module": "Calls of nn.Module, recorded by torch's Python tracer.",
    "Lightning": "Ranges of Lightning's profiler: [pl][module] and [pl][profile].",
    "record_function": "Ranges of record_function, because no call of an nn.Module was recorded.",
}
NO_MODULES = "No module ran in this time range."
CALLS = {"call_count": "Calls", "operator_count": "Operators"}
NAMES: Mapping[By, Mapping[str, str]] = {
    "instance": {"module": "Module", "class_name": "Class", **CALLS},
    "class": {"class_name": "Class", "module_count": "Instances", **CALLS},
}
"""Labels of columns by key, as all that follow; `{}` is the vendor's term for a device."""
HOST_LABELS = {
    "forward_host_total_ns": "Forward host",
    "forward_host_self_ns": "Forward host self",
    "forward_python_self_ns": "Python self",
    "backward_host_total_ns": "Backward host",
    "backward_host_self_ns": "Backward host self",
}
DEVICE_LABELS = {
    "forward_device_total_ns": "Forward {}",
    "forward_device_self_ns": "Forward {} self",
    "backward_device_total_ns": "Backward {}",
    "backward_device_self_ns": "Backward {} self",
}
REPLAYED_LABELS = {
    "replayed_device_total_ns": "{} in replays",
    "replayed_device_self_ns": "{} in replays, self",
}
RERUN_LABELS = {"rerun_count": "Recomputed", "rerun_host_total_ns": "Recomputed host"}
RERUN_DEVICE_LABELS = {"rerun_device_total_ns": "Recomputed {}"}
HOST_MEMORY_LABELS = {"host_allocated_bytes": "Host allocated", "host_net_bytes": "Host kept"}
DEVICE_MEMORY_LABELS = {"device_allocated_bytes": "{} allocated", "device_net_bytes": "{} kept"}


class ModulesQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """The grouping of modules."""

    by: By = "instance"
    """`instance`: a row per module and calling modules; `class`: a row per class."""


class Modules(Table, frozen=True, kw_only=True):
    """Modules with their costs; by instance, a module precedes the modules that it calls."""

    by: By
    origin: Origin
    origin_meaning: str
    parent: list[int]
    """Row of the calling module, -1 at the top; empty by class."""
    path: list[str]
    """The calling modules and itself, separated by `/`; empty by class."""
    event: list[int]
    """Its first call, as an index in the file; empty by class."""
    start_ns: list[int]
    """Start of that call."""
    end_ns: list[int]
    device_label: str
    """The vendor's term for a device; empty without device work."""
    unassigned_backward_host_ns: int
    """Host time of backward calls of unknown modules."""
    unassigned_backward_device_ns: int
    left_out_count: int
    """Number of modules left out: the last rows."""


class ModuleWorkQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """A module, or the modules of a class."""

    row: int = NONE
    """Row of the module by instance; -1: select by class."""
    class_name: str = ""
    """Class of the modules, without a row."""
    within: bool = True
    """Whether the modules that it calls are included."""


class ModuleWork(Response, frozen=True, kw_only=True):
    """Operators and device work of a module, or of all modules of a class."""

    module_count: int
    """Number of modules."""
    operators: Table
    kernels: Table
    """Kernels, copies and memory sets."""


def modules(trace: Trace, query: ModulesQuery) -> Modules:
    """Return modules by instance, as a tree, or by class: forward and backward, host and device.

    Raises:
        MissingDataError: the trace has no modules.
    """
    whole_origin = module_names(trace).origin
    part = slice_trace(trace, query.start_ns, query.end_ns)
    try:
        frame = module_table(part) if query.by == "instance" else class_table(part)
    except MissingDataError:  # outside of the time range there are some
        return _message(part, query.by, pd.DataFrame(), whole_origin)
    return _message(part, query.by, frame, module_tree(part).origin)


def _message(part: Trace, by: By, frame: pd.DataFrame, origin: Origin) -> Modules:
    rows = frame.head(MOST_MODULES)
    columns = _columns(part, by, frame)
    is_tree = by == "instance" and len(frame) > 0
    first = _first_calls(part) if is_tree else _NONE
    unassigned = module_tree(part).unassigned_backward_ns if len(frame) else (0, 0)
    return Modules(
        columns=columns,
        row_count=len(rows),
        values={
            column.key: cells(rows[column.key], column.unit) for column in columns if len(rows)
        },
        sort="" if by == "instance" else _sort_key(part),
        total_ns=window(part).duration_ns,
        empty=NO_MODULES,
        all_row_count=len(frame),
        by=by,
        origin=origin,
        origin_meaning=ORIGINS[origin],
        parent=rows["parent"].tolist() if is_tree else [],
        path=rows["path"].tolist() if is_tree else [],
        event=first.event[: len(rows)].tolist(),
        start_ns=first.start_ns[: len(rows)].tolist(),
        end_ns=first.end_ns[: len(rows)].tolist(),
        device_label=part.dialect.device if len(part.device_events) else "",
        unassigned_backward_host_ns=unassigned[0],
        unassigned_backward_device_ns=unassigned[1],
        left_out_count=len(frame) - len(rows),
    )


_EMPTY = np.zeros(0, dtype=np.int64)
_NONE = module_work.FirstCalls(event=_EMPTY, start_ns=_EMPTY, end_ns=_EMPTY)


def _first_calls(part: Trace) -> module_work.FirstCalls:
    """Return the modules' first calls in the order of the rows."""
    tree, first = module_tree(part), module_work.first_calls(part)
    order = np.argsort(preorder(tree.parent, tree.depth))
    return module_work.FirstCalls(
        event=first.event[order], start_ns=first.start_ns[order], end_ns=first.end_ns[order]
    )


def _sort_key(part: Trace) -> str:
    return "forward_device_total_ns" if len(part.device_events) else "forward_host_total_ns"


def _columns(part: Trace, by: By, frame: pd.DataFrame) -> tuple[Column, ...]:
    device = part.dialect.device if len(part.device_events) else ""
    labels = {**NAMES[by], **HOST_LABELS, **(_with_device(DEVICE_LABELS, device))}
    if _has_any(frame, "replayed_device_total_ns"):
        labels |= _with_device(REPLAYED_LABELS, device)
    if len(frame) and (frame["rerun_count"] > 0).any():
        labels |= RERUN_LABELS | _with_device(RERUN_DEVICE_LABELS, device)
    if len(part.memory):
        labels |= HOST_MEMORY_LABELS | _with_device(DEVICE_MEMORY_LABELS, device)
    hidden = {"forward_python_self_ns"} | ({"class_name"} if by == "instance" else set())
    if device:
        hidden |= {"forward_host_self_ns", "backward_host_self_ns", *HOST_MEMORY_LABELS}
    hidden |= {key for key in labels if key.startswith("backward_") and not _has_any(frame, key)}
    schema = {column.name: column for column in (*SCHEMA, *CLASS_SCHEMA)}
    return tuple(
        Column(key, label, unit_of(schema[key]), schema[key].meaning, hidden=key in hidden)
        for key, label in labels.items()
    )


def _with_device(labels: Mapping[str, str], device: str) -> dict[str, str]:
    """Return the labels with the vendor's term for a device; none without a device."""
    return {key: label.format(device) for key, label in labels.items()} if device else {}


def _has_any(frame: pd.DataFrame, key: str) -> bool:
    return len(frame) > 0 and bool((frame[key] != 0).any())


def work(part: Trace, query: ModuleWorkQuery) -> ModuleWork:
    """Return the operators and the device work of a module.

    Raises:
        MissingDataError: the trace has no modules.
        UnknownNameError: the module does not exist.
    """
    nodes = _nodes(module_tree(part), query)
    operators = module_work.operators_of(part, nodes)
    kernels = module_work.kernels_of(part, nodes)
    return ModuleWork(
        module_count=len(nodes),
        operators=_table("Operators", module_work.OPERATOR_SCHEMA, operators),
        kernels=_table("Device work", module_work.KERNEL_SCHEMA, kernels),
    )


def _table(title: str, schema: Schema, frame: pd.DataFrame) -> Table:
    public = PublicTable(title=title, meaning="", schema=schema, build=lambda _: frame)
    return shown_table(public, frame, RowOrder(limit=MOST_PARTS))


def _nodes(tree: ModuleTree, query: ModuleWorkQuery) -> NDArray[np.int64]:
    """Return the nodes of the requested modules, with descendants where requested."""
    if query.row != NONE:
        position = preorder(tree.parent, tree.depth)
        selected = np.asarray(position == query.row)
    else:
        selected = np.array([module.class_name == query.class_name for module in tree.modules])
    if not selected.any():
        msg = "the module does not run in this time range"
        raise UnknownNameError(msg)
    if query.within:
        for depth in range(int(tree.depth.max()) + 1):
            rows = np.flatnonzero((tree.depth == depth) & (tree.parent != NONE))
            selected[rows] |= selected[tree.parent[rows]]
    return np.flatnonzero(selected)


ENDPOINTS = (
    trace_endpoint("modules", modules, is_whole=True),
    trace_endpoint("modules/work", work),
)
