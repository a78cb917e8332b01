"""Endpoints of the tables of operators and kernels, by their groupings."""

from collections.abc import Iterable
from typing import Any, cast

import pandas as pd
from msgspec import structs

from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.kernel_table import Grouping as Kernels
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.devices.range_counters import kernel_counters, mean_counters
from stepscope.analyses.host.recomputed_forward import recomputed_operators
from stepscope.analyses.operators.operator_categories import category_of, operator_categories
from stepscope.analyses.operators.operator_table import REPLAYED, operator_table
from stepscope.analyses.operators.operator_table import Grouping as Operators
from stepscope.analyses.operators.replayed_operators import NOT_ATTRIBUTED
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.api.endpoint import TimeRangeQuery, trace_endpoint
from stepscope.api.messages import Column, Table
from stepscope.api.public_tables import cells
from stepscope.base.errors import UnknownNameError
from stepscope.model.trace import Trace

OPERATOR_GROUPS = ("name", "category", "shape", "stack", "module")
KERNEL_GROUPS = ("name", "launch", "stream")
OPERATOR_SUMS = (
    "operator_count",
    "call_count",
    "host_self_ns",
    "host_self_share",
    "host_share",
    "device_self_ns",
    "device_self_share",
    "device_share",
    "device_event_count",
    "recomputed_count",
    "recomputed_host_ns",
    "recomputed_device_ns",
)
KERNEL_SUMS = ("call_count", "total_ns", "kernel_share", "no_occupancy_count")
"""Not fractions of the window, in which kernels overlap."""
NO_OPERATORS = (
    "The trace has no operators: it was recorded without ProfilerActivity.CPU, or the recorded code"
    " ran outside torch. Use profile(activities=[ProfilerActivity.CPU, ...])."
)
NO_OPERATORS_ON_HOST = (
    "The trace has kernels but no operators: add ProfilerActivity.CPU to the activities."
)
NO_KERNELS = (
    "No device work was recorded. If the model was on a device, add its activity:"
    " profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])."
)
CALLS = Column(
    "call_count",
    "Calls",
    "count",
    "Calls on the host in the whole trace, or in the selected time. A call whose only nested call"
    " has the same name counts once with it, as in key_averages(): the Timeline shows both.",
)
HOST_MEMORY = (
    Column("host_self_bytes", "Host memory", "bytes", "Host memory allocated less freed."),
)
WORK = (
    Column(
        "flops", "FLOPs", "count", "Floating-point operations without nested calls, from shapes."
    ),
    Column("data_types", "Types", "text", "Data types of its operands."),
)
OPERATOR = "operator"
NAMES = ("name", "full_name")
COUNTER = "counter "
"""Prefix of the keys of columns of hardware counters."""
SHOWN_COUNTERS = 6
"""Further counters are hidden at first."""
CHECKPOINTING = "Activation checkpointing computes them again to save memory. Counted in steps."
NO_SHAPES = "Needs profile(record_shapes=True)."


def operators_table(trace: Trace, group: str = "name") -> Table:
    """Return the operators and annotations by name, by name and shapes, stack or module.

    By `category`, one row per category of operators.

    Raises:
        UnknownNameError: the grouping does not exist.
        MissingDataError: the grouping needs stacks or modules, which were not recorded.
    """
    _require(group, OPERATOR_GROUPS)
    has_device = bool(len(trace.device_events))
    table, columns = (
        _categories(trace) if group == "category" else _operators(trace, cast("Operators", group))
    )
    return Table(
        columns=tuple(columns),
        row_count=len(table),
        values=_values(table, columns),
        sort="device_self_ns" if has_device else "host_self_ns",
        groups=OPERATOR_GROUPS,
        group=group,
        sums=_present(OPERATOR_SUMS, columns),
        total_ns=window(trace).duration_ns,
        empty="" if len(table) else NO_OPERATORS_ON_HOST if has_device else NO_OPERATORS,
    )


def _operators(trace: Trace, group: Operators) -> tuple[pd.DataFrame, list[Column]]:
    table = operator_table(trace, group)
    device = trace.dialect.device
    has_device = bool(len(trace.device_events))
    is_operator = table["kind"].isin((OPERATOR, REPLAYED)) & (table["name"] != NOT_ATTRIBUTED)
    categories = {name: category_of(name) for name in table.loc[is_operator, "name"].unique()}
    table = table.assign(category=table["name"].map(categories).where(is_operator, None))
    recomputed: list[Column] = []
    counters: list[Column] = []
    if group == "name":
        table, recomputed = _with_recomputed(trace, table)
        table, counters = _with_counters(trace, table, "operator")
    return table, [
        *_operator_identity(group, has_replays=REPLAYED in set(table["kind"])),
        CALLS,
        *recomputed,
        *(_in_group(device, _operator_device_columns(trace, table)) if has_device else ()),
        *counters,
        *_in_group("Host", _host_columns(trace, table)),
        *_with_values(WORK, table),
    ]


def _with_recomputed(trace: Trace, table: pd.DataFrame) -> tuple[pd.DataFrame, list[Column]]:
    """Return the table with the cost of recomputed calls; without any, unchanged."""
    recomputed = recomputed_operators(trace).set_index("operator")
    if recomputed.empty:
        return table, []
    has_device = bool(len(trace.device_events))
    device = trace.dialect.device
    help_text = f"{{}} self time of its calls that ran again in the backward pass. {CHECKPOINTING}"
    on_device = Column("recomputed_device_ns", "Recomputed", "ns", help_text.format(device))
    on_host = Column(
        "recomputed_host_ns",
        "Recomputed host" if has_device else "Recomputed",
        "ns",
        help_text.format("Host"),
        hidden=has_device,
    )
    calls = Column(
        "recomputed_count",
        "Recomputed calls",
        "count",
        f"Its calls that ran again in the backward pass. {CHECKPOINTING}",
        hidden=True,
    )
    columns = [on_device, on_host, calls] if has_device else [on_host, calls]
    sources = {
        "recomputed_count": "call_count",
        "recomputed_host_ns": "host_self_ns",
        "recomputed_device_ns": "device_self_ns",
    }
    names = table["name"].where(table["kind"] == OPERATOR)
    added = {key: names.map(recomputed[source]) for key, source in sources.items()}
    return table.assign(**added), columns


def _categories(trace: Trace) -> tuple[pd.DataFrame, list[Column]]:
    """Return the categories of operators, with the columns that fractions of the step need."""
    table = operator_categories(trace)
    window_ns = max(1, window(trace).duration_ns)
    table = table.assign(
        name=table["category"],
        device_self_share=table["device_self_ns"] / window_ns,
        host_self_share=table["host_self_ns"] / window_ns,
    )
    device, whole = trace.dialect.device, _whole(trace)
    of_device = (
        Column(
            "device_self_ns",
            f"{device} self",
            "ns",
            f"{device} time of kernels, copies and memory sets that they launched.",
        ),
        Column("device_share", f"{device} share", "share", f"Fraction of all {device} time."),
        Column(
            "device_self_share",
            f"{device} self of {whole}",
            "share",
            f"{device} time as a fraction of the window; above 100 % where streams overlap.",
        ),
        Column("device_event_count", f"{device} events", "count", "Kernels, copies, memory sets."),
    )
    of_host = (
        Column("host_self_ns", "Host self", "ns", "Host time without nested calls."),
        Column("host_share", "Host share", "share", "Fraction of all operators' host time."),
        Column(
            "host_self_share",
            f"Host self of {whole}",
            "share",
            "Host time as a fraction of the window; above 100 % where threads run concurrently.",
            hidden=True,
        ),
    )
    return table, [
        Column(
            "name",
            "Category",
            "text",
            "Follows from the operator's name. Work on devices that no operator launched is a"
            " category of its own.",
        ),
        Column("operator_count", "Names", "count", "Distinct names of operators."),
        Column("call_count", "Calls", "count", "Their calls on the host."),
        *(_in_group(device, of_device) if len(trace.device_events) else ()),
        *_in_group("Host", of_host),
    ]


def kernels_table(trace: Trace, group: str = "name") -> Table:
    """Return the kernels by name, or by name and launch (operator, grid, block, …) or stream.

    Raises:
        UnknownNameError: the grouping does not exist.
    """
    _require(group, KERNEL_GROUPS)
    table = kernel_table(trace, cast("Kernels", group))
    table = table.assign(window_share=table["window_ns"] / max(1, window(trace).duration_ns))
    columns = list(_kernel_columns(trace, group))
    is_timed = len(table) > 0 or kernel_counters(trace).empty
    if not is_timed:
        table, columns = _counted_kernels(trace)
    if group == "name" or not is_timed:
        table, counters = _with_counters(trace, table, "full_name")
        columns += counters
    return Table(
        columns=tuple(columns),
        row_count=len(table),
        values=_values(table, columns),
        sort="total_ns" if is_timed else "call_count",
        groups=KERNEL_GROUPS,
        group=group,
        sums=_present(KERNEL_SUMS, columns),
        total_ns=window(trace).duration_ns,
        empty="" if len(table) else NO_KERNELS,
    )


def _counted_kernels(trace: Trace) -> tuple[pd.DataFrame, list[Column]]:
    """Return the kernels whose counters were measured instead of their times."""
    ranges = kernel_counters(trace).drop_duplicates("event")
    counts = ranges["full_name"].value_counts(sort=False)
    table = pd.DataFrame(
        {
            "name": [short(str(name)) for name in counts.index],
            "full_name": counts.index.astype(object),
            "call_count": counts.to_numpy(),
        }
    )
    help_text = "Runs that were measured. The trace has no times of kernels: each was run again"
    return table, [
        *(column for column in _kernel_columns(trace, "name") if column.key in NAMES),
        Column("call_count", "Calls", "count", f"{help_text} until all counters were read."),
    ]


def _with_counters(trace: Trace, table: pd.DataFrame, by: str) -> tuple[pd.DataFrame, list[Column]]:
    """Return the table with the mean of each hardware counter; without any, unchanged."""
    means = mean_counters(trace, by)
    if means.empty:
        return table, []
    names = table["name" if by == "operator" else by]
    if by == "operator":
        names = names.where(table["kind"] == OPERATOR)
    columns = [
        Column(
            f"{COUNTER}{counter}",
            str(counter),
            "count",
            "Hardware counter of CUPTI's range profiler: mean over its kernels.",
            hidden=at >= SHOWN_COUNTERS,
        )
        for at, counter in enumerate(means)
    ]
    added = {f"{COUNTER}{counter}": names.map(means[counter]) for counter in means}
    return table.assign(**added), columns


def _present(keys: Iterable[str], columns: Iterable[Column]) -> tuple[str, ...]:
    present = {column.key for column in columns}
    return tuple(key for key in keys if key in present)


def _require(group: str, groups: tuple[str, ...]) -> None:
    if group not in groups:
        message = f"there is no grouping {group!r}; the groupings are {', '.join(groups)}"
        raise UnknownNameError(message)


def _values(table: pd.DataFrame, columns: Iterable[Column]) -> dict[str, list[Any]]:
    return {column.key: cells(table[column.key], column.unit) for column in columns}


def _operator_identity(group: str, *, has_replays: bool) -> list[Column]:
    columns = [
        Column("name", "Name", "text", "Name of the operator or annotation."),
        Column(
            "kind",
            "Kind",
            "text",
            "operator: a torch operator. annotation: a record_function range, such as a step."
            " replayed: an operator whose kernels ran in replays of a graph; it is from the"
            " capture of the graph, or from an eager pass with the same kernels.",
            hidden=not has_replays,
        ),
        Column(
            "category",
            "Category",
            "text",
            "Matrix product, attention, elementwise, …: from the operator's name.",
            hidden=True,
        ),
    ]
    if group == "shape":
        columns.append(
            Column("input_dims", "Input shapes", "code", f"Shapes of its inputs. {NO_SHAPES}")
        )
    if group == "stack":
        help_text = "The five innermost Python functions around it, innermost first."
        columns.append(Column("stack", "Call stack", "code", help_text))
    if group == "module":
        help_text = "The innermost nn.Module around it, or around its forward operator."
        columns.append(Column("module", "Module", "text", help_text))
    return columns


def _in_group(group: str, columns: Iterable[Column]) -> Iterable[Column]:
    return (structs.replace(column, group=group) for column in columns)


def _whole(trace: Trace) -> str:
    """Return the whole of fractions of the window: `step`, or `window` without steps."""
    return "step" if step_breakdown(trace).step_count else "window"


def _host_columns(trace: Trace, table: pd.DataFrame) -> list[Column]:
    nested = "Recursive calls of a name count twice, as in key_averages()."
    return [
        Column("host_self_ns", "Host self", "ns", "Host time without nested calls."),
        Column(
            "host_total_ns", "Host total", "ns", f"Host time with nested calls; overlaps. {nested}"
        ),
        Column(
            "host_self_share",
            f"Host self of {_whole(trace)}",
            "share",
            "Host self time as a fraction of the window, and so of the mean step; above 100 % where"
            " several threads run concurrently.",
        ),
        Column(
            "host_total_share",
            f"Host total of {_whole(trace)}",
            "share",
            "Host total time as a fraction of the window; overlaps with nested calls.",
            hidden=True,
        ),
        Column("host_mean_ns", "Host mean", "ns", "Mean host total per call."),
        Column("host_p50_ns", "Host p50", "ns", "Median host total per call."),
        Column("host_p95_ns", "Host p95", "ns", "95th percentile of the host total per call."),
        Column("host_max_ns", "Host max", "ns", "Host total of the longest call.", hidden=True),
        *_with_values(HOST_MEMORY, table),
    ]


def _operator_device_columns(trace: Trace, table: pd.DataFrame) -> list[Column]:
    device, unit = trace.dialect.device, trace.dialect.matrix_unit
    columns = [
        Column(
            "device_self_ns",
            f"{device} self",
            "ns",
            f"{device} time of kernels, copies and memory sets that it launched directly.",
        ),
        Column(
            "device_total_ns",
            f"{device} total",
            "ns",
            f"{device} time launched by it and its nested calls; overlaps.",
        ),
        Column(
            "device_self_share",
            f"{device} self of {_whole(trace)}",
            "share",
            f"{device} self time as a fraction of the window, and so of the mean step; above 100 %"
            " where streams overlap.",
        ),
        Column(
            "device_total_share",
            f"{device} total of {_whole(trace)}",
            "share",
            f"{device} total time as a fraction of the window; overlaps with nested calls.",
            hidden=True,
        ),
    ]
    memory = Column(
        "device_self_bytes",
        f"{device} memory",
        "bytes",
        f"{device} memory allocated less freed, without nested calls.",
    )
    columns += _with_values((memory,), table)
    if trace.dialect.matrix_unit_kernel is None:
        return columns
    return [
        *columns,
        Column(
            "is_matrix_unit_eligible",
            f"{unit} eligible",
            "text",
            f"Whether the operator can run on {unit}s with inputs of a suitable type.",
            hidden=True,
        ),
        Column(
            "matrix_unit_self_share",
            f"{device} self on {unit}s",
            "share",
            f"Fraction of its {device} self time in kernels that use {unit}s, by their names.",
        ),
        Column(
            "matrix_unit_total_share",
            f"{device} total on {unit}s",
            "share",
            f"Fraction of its {device} total time in kernels that use {unit}s.",
            hidden=True,
        ),
    ]


def _with_values(columns: Iterable[Column], table: pd.DataFrame) -> list[Column]:
    """Return the columns that have values, hidden at first."""
    return [
        structs.replace(column, hidden=True)
        for column in columns
        if table[column.key].notna().any()
    ]


def _kernel_columns(trace: Trace, group: str) -> Iterable[Column]:
    yield Column("name", "Name", "text", "The kernel's name without namespaces and arguments.")
    yield Column("full_name", "Full name", "code", "As the profiler wrote it.", hidden=True)
    if group == "launch":
        yield from _launch_columns(trace)
    yield Column(
        "call_count",
        "Calls",
        "count",
        "Runs on the device in the whole trace; in a selected time, those launched in it.",
    )
    yield Column("total_ns", "Total", "ns", "Sum of its durations.")
    yield Column(
        "kernel_share", "Of kernel time", "share", "Fraction of the durations of all kernels."
    )
    yield Column(
        "window_share",
        f"Of {_whole(trace)}",
        "share",
        "Its time in the window as a fraction of it, and so of the mean step; work of steps before"
        " the trace is not in it; the sum passes 100 % with overlap.",
    )
    yield Column("mean_ns", "Mean", "ns", "Mean duration.")
    yield Column("p95_ns", "p95", "ns", "95th percentile of durations.")
    yield Column("min_ns", "Min", "ns", "Shortest duration.", hidden=True)
    yield Column("max_ns", "Max", "ns", "Longest duration.", hidden=True)
    yield from _fill_columns(trace)
    is_hidden = group != "stream"
    yield Column(
        "devices", trace.dialect.device, "text", "The devices it ran on.", hidden=is_hidden
    )
    yield Column("streams", "Stream", "text", "The streams it ran on.", hidden=is_hidden)
    delay = "Time from the end of its launching call to its start, at least 0"
    yield Column("launch_delay_mean_ns", "Launch delay", "ns", f"{delay}: mean.", hidden=True)
    yield Column(
        "launch_delay_p95_ns",
        "Launch delay p95",
        "ns",
        f"{delay}: 95th percentile.",
        hidden=True,
    )
    yield Column(
        "data_type", "Type", "text", "Data type of its operands, from its name.", hidden=True
    )
    yield Column(
        "is_collective",
        "Collective",
        "text",
        "Whether it communicates between devices.",
        hidden=True,
    )


def _launch_columns(trace: Trace) -> Iterable[Column]:
    yield Column(
        "operator",
        "Operator",
        "text",
        "The innermost operator that launched it; of a replayed graph, that of its capture or of"
        " an eager pass with the same kernels. Not attributed: the trace has neither; the table"
        " graph-kernels has the operator if another trace of the run has one of them.",
    )
    yield Column("grid", "Grid", "code", "Blocks in x, y, z.")
    yield Column("block", "Block", "code", "Threads per block in x, y, z.")
    if trace.kernels["registers_per_thread"].notna().any():
        yield Column("registers_per_thread", "Registers", "count", "Registers per thread.")
    if trace.kernels["shared_memory_bytes"].notna().any():
        yield Column("shared_memory_bytes", "Shared memory", "bytes", "Shared memory per block.")


def _fill_columns(trace: Trace) -> Iterable[Column]:
    """Yield columns of matrix units and occupancy, where the vendor's traces record them."""
    dialect = trace.dialect
    if dialect.matrix_unit_kernel is not None:
        help_text = f"Whether it runs on {dialect.matrix_unit}s, from its name."
        yield Column("uses_matrix_unit", f"{dialect.matrix_unit}s", "text", help_text)
    if not dialect.records_occupancy:
        return
    yield Column(
        "blocks_per_sm",
        f"Blocks / {dialect.terms.get('multiprocessor', 'SM')}",
        "count",
        "Blocks per multiprocessor, mean weighted by duration; below 1 some are idle.",
    )
    yield Column(
        "occupancy_share",
        "Occupancy",
        "share",
        "Estimated occupancy, mean weighted by duration over the runs that record it.",
    )
    yield Column(
        "no_occupancy_count",
        "Without occupancy",
        "count",
        "Runs without a recorded occupancy, or with 0, which means unknown.",
        hidden=True,
    )


class GroupedQuery(TimeRangeQuery, frozen=True, kw_only=True):
    """A grouping of the table."""

    group: str = "name"
    """One of the response's `groups`."""


def operators(trace: Trace, query: GroupedQuery) -> Table:
    """Return operators by name, by name and `shape`, `stack` or `module`, or by `category`."""
    return operators_table(trace, query.group)


def kernels(trace: Trace, query: GroupedQuery) -> Table:
    """Return kernels by name, or by name and `launch` or `stream`."""
    return kernels_table(trace, query.group)


ENDPOINTS = (trace_endpoint("operators", operators), trace_endpoint("kernels", kernels))
