"""The modules of a recording, and what ran for one of them."""

from typing import Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.call_paths import preorder
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.core.window import window
from stepscope.analyses.host import module_work
from stepscope.analyses.host.module_table import class_table, module_table
from stepscope.analyses.host.module_tree import ModuleTree, Origin, module_names, module_tree
from stepscope.api.endpoint import Endpoint, TimeRangeQuery, TraceEndpoint
from stepscope.api.messages import Column, Table
from stepscope.api.public_tables import RowOrder, cells, shown_table
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.frames import Schema
from stepscope.model.table import Table as PublicTable
from stepscope.model.trace import Trace

MOST_MODULES = 20_000
MOST_PARTS = 500
NONE = -1
By = Literal["instance", "class"]
ORIGINS: dict[Origin, str] = {
    "nn.Module": "Calls of nn.Module, as torch's Python tracer recorded them.",
    "Lightning": "Ranges that Lightning's profiler named, [pl][module] and [pl][profile].",
    "record_function": "Ranges named with record_function: no call of an nn.Module was recorded.",
}
NOTHING_THEN = "No module ran in this part of the recording."


class ModulesQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """What a row stands for."""

    by: By = "instance"
    """`instance`: a module by the modules that called it; `class`: all instances of a class."""


class Modules(Table, frozen=True, kw_only=True):
    """Modules and what they cost; by instance each is followed by those that it calls."""

    by: By
    origin: Origin
    origin_meaning: str
    parent: list[int]
    """The row of the module that called it, -1 at the top; empty by class."""
    path: list[str]
    """The modules that called it and itself, parted by `/`; empty by class."""
    event: list[int]
    """Its first call, by the event's place in the file; empty by class."""
    start_ns: list[int]
    """When that began."""
    end_ns: list[int]
    device_label: str
    """What this vendor calls a device; empty where nothing ran on one."""
    unassigned_backward_host_ns: int
    """Host time of backward calls whose module is not known."""
    unassigned_backward_device_ns: int
    left_out_count: int
    """So many modules, the deepest and last, are not among the rows."""


class ModuleWorkQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """Of which modules."""

    row: int = NONE
    """A module by instance, by its row; -1: by its class."""
    class_name: str = ""
    """All modules of that class, where no row is given."""
    within: bool = True
    """Whether the modules that it calls count, too."""


class ModuleWork(msgspec.Struct, frozen=True):
    """What ran for a module, or for all modules of a class."""

    schema: int
    module_count: int
    """So many modules these are."""
    operators: Table
    kernels: Table
    """Kernels, copies and memory sets."""


def modules(trace: Trace, query: ModulesQuery) -> Modules:
    """Return the modules.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    whole_origin = module_names(trace).origin
    part = slice_trace(trace, query.start_ns, query.end_ns)
    try:
        frame = module_table(part) if query.by == "instance" else class_table(part)
    except MissingDataError:  # there are some, but at other times
        return _answer(part, query.by, pd.DataFrame(), whole_origin)
    return _answer(part, query.by, frame, module_tree(part).origin)


def _answer(part: Trace, by: By, frame: pd.DataFrame, origin: Origin) -> Modules:
    rows = frame.head(MOST_MODULES)
    columns = _columns(part, by, frame)
    is_tree = by == "instance" and len(frame) > 0
    first = _first_calls(part) if is_tree else _NONE
    unassigned = module_tree(part).unassigned_backward_ns if len(frame) else (0, 0)
    return Modules(
        schema=SCHEMA_VERSION,
        columns=columns,
        row_count=len(rows),
        values={each.key: cells(rows[each.key], each.unit) for each in columns if len(rows)},
        sort="" if by == "instance" else _usual_sort(part),
        groups=(),
        group="",
        total_ns=window(part).device_duration_ns,
        empty=NOTHING_THEN,
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
    """Return the first calls in the order of the table's rows."""
    tree, first = module_tree(part), module_work.first_calls(part)
    order = np.argsort(preorder(tree.parent, tree.depth))
    return module_work.FirstCalls(
        event=first.event[order], start_ns=first.start_ns[order], end_ns=first.end_ns[order]
    )


def _usual_sort(part: Trace) -> str:
    return "forward_device_total_ns" if len(part.device_events) else "forward_host_total_ns"


def _columns(part: Trace, by: By, frame: pd.DataFrame) -> tuple[Column, ...]:
    has_device = bool(len(part.device_events))
    has_memory = bool(len(part.memory))
    columns = [*_names(by), *_host_columns(has_device=has_device)]
    if has_device:
        columns += _device_columns(part.dialect.device)
    columns = [_unless_none(column, frame) for column in columns]
    if len(frame) and (frame["rerun_count"] > 0).any():
        columns += _rerun_columns(part.dialect.device if has_device else "")
    if has_memory:
        columns += _memory_columns(part.dialect.device if has_device else "")
    return tuple(columns)


def _unless_none(column: Column, frame: pd.DataFrame) -> Column:
    """Return a column of the backward pass, off until asked for where there was none."""
    if not column.key.startswith("backward_") or (len(frame) and (frame[column.key] != 0).any()):
        return column
    return msgspec.structs.replace(column, hidden=True)


def _names(by: By) -> list[Column]:
    calls = Column("call_count", "Calls", "count", "Calls in forward passes.")
    operators = Column(
        "operator_count", "Operators", "count", "Operators it called itself, not those within."
    )
    if by == "class":
        count = Column("module_count", "Instances", "count", "Distinct instances.")
        name = Column("class_name", "Class", "text", "The class, without its package.")
        return [name, count, calls, operators]
    return [
        Column("module", "Module", "text", "The instance, as the profiler numbers it."),
        Column("class_name", "Class", "text", "Its class, without the package.", hidden=True),
        calls,
        operators,
    ]


def _host_columns(*, has_device: bool) -> list[Column]:
    return [
        Column(
            "forward_host_total_ns",
            "Forward host",
            "ns",
            "Host time of forward calls, with modules within.",
        ),
        Column(
            "forward_host_self_ns",
            "Forward host self",
            "ns",
            "The same without modules within.",
            hidden=has_device,
        ),
        Column(
            "forward_python_self_ns",
            "Python self",
            "ns",
            "The part of the self time in no operator: torch-tb-profiler's host self time.",
            hidden=True,
        ),
        Column(
            "backward_host_total_ns",
            "Backward host",
            "ns",
            "Host time in which autograd ran the backward functions of its operators, and of those"
            " of modules within.",
        ),
        Column(
            "backward_host_self_ns",
            "Backward host self",
            "ns",
            "The same without modules within.",
            hidden=has_device,
        ),
    ]


def _device_columns(device: str) -> list[Column]:
    return [
        Column(
            "forward_device_total_ns",
            f"Forward {device}",
            "ns",
            f"Work on the {device} launched by forward calls, with modules within, summed.",
        ),
        Column(
            "forward_device_self_ns",
            f"Forward {device} self",
            "ns",
            "The same without modules within.",
        ),
        Column(
            "backward_device_total_ns",
            f"Backward {device}",
            "ns",
            f"Work on the {device} launched by its backward functions, with modules within.",
        ),
        Column(
            "backward_device_self_ns",
            f"Backward {device} self",
            "ns",
            "The same without modules within.",
        ),
    ]


def _rerun_columns(device: str) -> list[Column]:
    again = "Forward calls run again in a backward pass, since activations were not kept"
    columns = [
        Column("rerun_count", "Run again", "count", f"{again}."),
        Column("rerun_host_total_ns", "Run again host", "ns", f"{again}: their host time."),
    ]
    if device:
        help_text = f"{again}: work on the {device} that they launched."
        columns.append(Column("rerun_device_total_ns", f"Run again {device}", "ns", help_text))
    return columns


def _memory_columns(device: str) -> list[Column]:
    net = "The same less what was given back in them."
    columns = [
        Column(
            "host_allocated_bytes",
            "Host allocated",
            "bytes",
            "Host memory allocated in forward calls, with modules within.",
            hidden=bool(device),
        ),
        Column("host_net_bytes", "Host kept", "bytes", net, hidden=bool(device)),
    ]
    if device:
        help_text = f"{device} memory allocated in forward calls, with modules within."
        columns += [
            Column("device_allocated_bytes", f"{device} allocated", "bytes", help_text),
            Column("device_net_bytes", f"{device} kept", "bytes", net),
        ]
    return columns


def work(part: Trace, query: ModuleWorkQuery) -> ModuleWork:
    """Return what ran for a module.

    Raises:
        MissingDataError: the recording holds no modules.
        UnknownNameError: there is no such module.
    """
    nodes = _nodes(module_tree(part), query)
    operators = module_work.operators_of(part, nodes)
    kernels = module_work.kernels_of(part, nodes)
    return ModuleWork(
        schema=SCHEMA_VERSION,
        module_count=len(nodes),
        operators=_table("Operators", module_work.OPERATOR_SCHEMA, operators),
        kernels=_table("Device work", module_work.KERNEL_SCHEMA, kernels),
    )


def _table(title: str, schema: Schema, frame: pd.DataFrame) -> Table:
    public = PublicTable(title=title, meaning="", schema=schema, build=lambda _: frame)
    return shown_table(public, frame, RowOrder(limit=MOST_PARTS))


def _nodes(tree: ModuleTree, query: ModuleWorkQuery) -> NDArray[np.int64]:
    """Return the nodes that are asked about, and where wanted all below them."""
    if query.row != NONE:
        place = preorder(tree.parent, tree.depth)
        chosen = np.asarray(place == query.row)
    else:
        chosen = np.array([module.class_name == query.class_name for module in tree.modules])
    if not chosen.any():
        msg = "this part of the recording holds no such module"
        raise UnknownNameError(msg)
    if query.within:
        for depth in range(int(tree.depth.max()) + 1):
            rows = np.flatnonzero((tree.depth == depth) & (tree.parent != NONE))
            chosen[rows] |= chosen[tree.parent[rows]]
    return np.flatnonzero(chosen)


ENDPOINTS: tuple[Endpoint, ...] = (
    TraceEndpoint(
        path="modules",
        meaning="Modules by instance, as a tree, or by class: forward and backward, host, device.",
        query=ModulesQuery,
        response=Modules,
        handler=modules,
        is_whole=True,
    ),
    TraceEndpoint(
        path="modules/work",
        meaning="The operators and the device work that ran for a module.",
        query=ModuleWorkQuery,
        response=ModuleWork,
        handler=work,
    ),
)
