"""The tables of operators and kernels, by one grouping or another."""

from collections.abc import Iterable
from typing import Any, cast

import pandas as pd
from msgspec import structs

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_table import Grouping as Kernels
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.operators.operator_table import Grouping as Operators
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.messages import Column, Table
from stepscope.api.public_tables import cells
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace

OPERATOR_GROUPS = ("name", "shape", "stack", "module")
KERNEL_GROUPS = ("name", "launch", "stream")
OPERATOR_SUMS = (
    "call_count",
    "host_self_ns",
    "host_self_share",
    "device_self_ns",
    "device_self_share",
)
KERNEL_SUMS = ("call_count", "total_ns", "kernel_share", "no_occupancy_count", "window_share")
NO_OPERATORS = (
    "The recording holds no operator: it was made without ProfilerActivity.CPU, or what it"
    " recorded ran outside torch. Use profile(activities=[ProfilerActivity.CPU, ...])."
)
NO_OPERATORS_ON_HOST = (
    "The recording holds kernels but no operator: add ProfilerActivity.CPU to its activities."
)
NO_KERNELS = (
    "Nothing ran on a device while this was recorded. If the model was on one, add its"
    " activity: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])."
)
CALLS = Column("call_count", "Calls", "count", "How often it was called.")
NO_SHAPES = "Only known with profile(record_shapes=True)."


def operators_table(trace: Trace, group: str = "name") -> Table:
    """Return the operators and annotations, by name, or by name and shapes, stack or module.

    Raises:
        UnknownNameError: there is no such grouping.
        MissingDataError: stacks or modules are asked for and were not recorded.
    """
    _require(group, OPERATOR_GROUPS)
    table = operator_table(trace, cast("Operators", group))
    has_device = bool(len(trace.device_events))
    columns = [
        *_operator_identity(group),
        CALLS,
        *(_operator_device_columns(trace) if has_device else ()),
        *_host_columns(),
        *_work_columns(trace, table),
    ]
    return Table(
        schema=SCHEMA_VERSION,
        columns=tuple(columns),
        row_count=len(table),
        values=_values(table, columns),
        sort="device_self_ns" if has_device else "host_self_ns",
        groups=OPERATOR_GROUPS,
        group=group,
        sums=_present(OPERATOR_SUMS, columns),
        total_ns=window(trace).device_duration_ns,
        empty="" if len(table) else NO_OPERATORS_ON_HOST if has_device else NO_OPERATORS,
    )


def kernels_table(trace: Trace, group: str = "name") -> Table:
    """Return the kernels, by name, or by name and launch (operator, grid, block, …) or stream.

    Raises:
        UnknownNameError: there is no such grouping.
    """
    _require(group, KERNEL_GROUPS)
    table = kernel_table(trace, cast("Kernels", group))
    table = table.assign(window_share=table["total_ns"] / max(1, window(trace).device_duration_ns))
    columns = list(_kernel_columns(trace, group))
    return Table(
        schema=SCHEMA_VERSION,
        columns=tuple(columns),
        row_count=len(table),
        values=_values(table, columns),
        sort="total_ns",
        groups=KERNEL_GROUPS,
        group=group,
        sums=_present(KERNEL_SUMS, columns),
        total_ns=int(table["total_ns"].sum()),
        empty="" if len(table) else NO_KERNELS,
    )


def _present(keys: Iterable[str], columns: Iterable[Column]) -> tuple[str, ...]:
    there = {column.key for column in columns}
    return tuple(key for key in keys if key in there)


def _require(group: str, groups: tuple[str, ...]) -> None:
    if group not in groups:
        message = f"there is no grouping {group!r}; there are {', '.join(groups)}"
        raise UnknownNameError(message)


def _values(table: pd.DataFrame, columns: Iterable[Column]) -> dict[str, list[Any]]:
    return {column.key: cells(table[column.key], column.unit) for column in columns}


def _operator_identity(group: str) -> list[Column]:
    columns = [
        Column("name", "Name", "text", "The operator's name, or the annotation's."),
        Column(
            "kind",
            "Kind",
            "text",
            "operator: a torch operator. annotation: a record_function range, such as a step.",
            hidden=True,
        ),
    ]
    if group == "shape":
        columns.append(Column("input_dims", "Input shapes", "code", f"Of its inputs. {NO_SHAPES}"))
    if group == "stack":
        help_text = "The five innermost Python functions around it, the innermost first."
        columns.append(Column("stack", "Call stack", "code", help_text))
    if group == "module":
        help_text = "The innermost nn.Module in whose call it ran, or its forward operator did."
        columns.append(Column("module", "Module", "text", help_text))
    return columns


def _host_columns() -> list[Column]:
    within = "A name that calls itself deeper down counts the inner time twice, as key_averages()."
    return [
        Column("host_self_ns", "Host self", "ns", "Host time, calls within it left out."),
        Column(
            "host_total_ns", "Host total", "ns", f"Host time with calls within; overlaps. {within}"
        ),
        Column(
            "host_self_share",
            "Host share",
            "share",
            "Host self time of the window, and so of the mean step; above 100 % where several"
            " threads work at once.",
        ),
        Column(
            "host_total_share",
            "Host total share",
            "share",
            "Host total time of the window; overlaps with that of calls within.",
            hidden=True,
        ),
        Column("host_mean_ns", "Mean", "ns", "Mean host total of a call."),
        Column("host_p50_ns", "p50", "ns", "Half of the calls take no longer on the host."),
        Column("host_p95_ns", "p95", "ns", "95 % of the calls take no longer on the host."),
        Column("host_max_ns", "Max", "ns", "The longest call's host total.", hidden=True),
    ]


def _operator_device_columns(trace: Trace) -> list[Column]:
    device, unit = trace.dialect.device, trace.dialect.matrix_unit
    columns = [
        Column(
            "device_self_ns",
            f"{device} self",
            "ns",
            f"Kernels, copies and memory sets on the {device} that it launched itself.",
        ),
        Column(
            "device_total_ns",
            f"{device} total",
            "ns",
            "The same with what calls within it launched; overlaps with theirs.",
        ),
        Column(
            "device_self_share",
            f"{device} share",
            "share",
            f"{device} self time of the window, and so of the mean step; above 100 % where streams"
            " overlap.",
        ),
        Column(
            "device_total_share",
            f"{device} total share",
            "share",
            f"{device} total time of the window; overlaps with that of calls within.",
            hidden=True,
        ),
    ]
    if trace.dialect.matrix_unit_kernel is None:
        return columns
    return [
        *columns,
        Column(
            "is_matrix_unit_eligible",
            f"{unit} eligible",
            "text",
            f"The operator can run on {unit}s when its inputs have a fitting type.",
            hidden=True,
        ),
        Column(
            "matrix_unit_self_share",
            f"{unit} self",
            "share",
            f"Of its {device} self time, the share in kernels that use {unit}s, by their names.",
        ),
        Column(
            "matrix_unit_total_share",
            f"{unit} total",
            "share",
            f"Of its {device} total time, the share in kernels that use {unit}s.",
            hidden=True,
        ),
    ]


def _work_columns(trace: Trace, table: pd.DataFrame) -> Iterable[Column]:
    """Memory and arithmetic, where anything is known of them."""
    device = trace.dialect.device
    known = (
        Column("host_self_bytes", "Host memory", "bytes", "Allocated less given back on the host."),
        Column(
            "device_self_bytes",
            f"{device} memory",
            "bytes",
            f"Allocated less given back on the {device}, without calls within.",
        ),
        Column("flops", "FLOPs", "count", "Floating-point operations of its own work, by shapes."),
        Column("data_types", "Types", "text", "Types of its operands."),
    )
    for column in known:
        if table[column.key].notna().any():
            yield structs.replace(column, hidden=True)


def _kernel_columns(trace: Trace, group: str) -> Iterable[Column]:
    yield Column("name", "Name", "text", "The kernel's name without namespaces and arguments.")
    yield Column("full_name", "Full name", "code", "As the profiler wrote it.", hidden=True)
    if group == "launch":
        yield from _launch_columns(trace)
    yield Column("call_count", "Calls", "count", "How often it ran.")
    yield Column("total_ns", "Total", "ns", "Sum of its durations.")
    yield Column("kernel_share", "Share", "share", "Of the durations of all kernels.")
    yield Column(
        "window_share",
        "Of step",
        "share",
        "Of the window, and so of the mean step; in all above 100 % where streams overlap.",
    )
    yield Column("mean_ns", "Mean", "ns", "Mean duration.")
    yield Column("p95_ns", "p95", "ns", "95 % of its runs take no longer.")
    yield Column("min_ns", "Min", "ns", "Its shortest run.", hidden=True)
    yield Column("max_ns", "Max", "ns", "Its longest run.", hidden=True)
    yield from _fill_columns(trace)
    is_hidden = group != "stream"
    yield Column(
        "devices", trace.dialect.device, "text", "The devices it ran on.", hidden=is_hidden
    )
    yield Column("streams", "Stream", "text", "The streams it ran on.", hidden=is_hidden)
    delay = "From its launching call's end to its begin, at least 0"
    yield Column("launch_delay_mean_ns", "Launch delay", "ns", f"{delay}: the mean.", hidden=True)
    yield Column(
        "launch_delay_p95_ns",
        "Launch delay p95",
        "ns",
        f"{delay}: the 95th percentile.",
        hidden=True,
    )
    yield Column("data_type", "Type", "text", "Type of its operands, by its name.", hidden=True)
    yield Column(
        "is_collective", "Collective", "text", "Communicates between devices.", hidden=True
    )


def _launch_columns(trace: Trace) -> Iterable[Column]:
    yield Column("operator", "Operator", "text", "The innermost operator that launched it.")
    yield Column("grid", "Grid", "code", "Its launch's grid in x, y, z.")
    yield Column("block", "Block", "code", "Threads a block in x, y, z.")
    if trace.kernels["registers_per_thread"].notna().any():
        yield Column("registers_per_thread", "Registers", "count", "Registers a thread.")
    if trace.kernels["shared_memory_bytes"].notna().any():
        yield Column("shared_memory_bytes", "Shared memory", "bytes", "Shared memory a block.")


def _fill_columns(trace: Trace) -> Iterable[Column]:
    """How the kernel fills the device, where this vendor's traces tell."""
    dialect = trace.dialect
    if dialect.matrix_unit_kernel is not None:
        help_text = f"Runs on {dialect.matrix_unit}s, judged by its name."
        yield Column("uses_matrix_unit", f"{dialect.matrix_unit}s", "text", help_text)
    if not dialect.records_occupancy:
        return
    yield Column(
        "blocks_per_sm",
        f"Blocks / {dialect.terms.get('multiprocessor', 'SM')}",
        "count",
        "Blocks over multiprocessors, mean weighted by duration; below 1 some stand idle.",
    )
    yield Column(
        "occupancy_share",
        "Occupancy",
        "share",
        "Estimated achieved occupancy, mean weighted by duration over the runs that report one.",
    )
    yield Column(
        "no_occupancy_count",
        "Without occupancy",
        "count",
        "Runs that report no occupancy, or 0, which means that it is not known.",
        hidden=True,
    )


class Grouped(TimeRangeQuery, frozen=True, kw_only=True):
    """What the rows stand for."""

    group: str = "name"
    """One of the answer's `groups`."""


def operators(trace: Trace, query: Grouped) -> Table:
    """Answer with the table of operators."""
    return operators_table(trace, query.group)


def kernels(trace: Trace, query: Grouped) -> Table:
    """Answer with the table of kernels."""
    return kernels_table(trace, query.group)


ENDPOINTS = (
    TraceEndpoint(
        path="operators",
        meaning="Operators and annotations, by name, or by name and `shape`, `stack` or `module`.",
        query=Grouped,
        response=Table,
        handler=operators,
    ),
    TraceEndpoint(
        path="kernels",
        meaning="Kernels, by name, or by name and `launch` or `stream`.",
        query=Grouped,
        response=Table,
        handler=kernels,
    ),
)
