"""The API's tables: columns with words and units, cells that JSON can hold, reasons for no rows."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.api.endpoints.grouped_tables import (
    KERNEL_GROUPS,
    OPERATOR_GROUPS,
    kernels_table,
    operators_table,
)
from stepscope.api.messages import Table
from stepscope.base.errors import UnknownNameError
from stepscope.model.trace import Trace

pytestmark = pytest.mark.frames

US = 1000


def _on_device(runtime: str = "cudaLaunchKernel", category: str = "cuda_runtime") -> Trace:
    return trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 1000],
            ["cpu_op", "aten::mm", 0, 100, {"Input Dims": [[2, 2], [2, 2]]}],
            [category, runtime, 10, 5, {"correlation": 1}],
            ["cpu_op", "aten::relu", 200, 50],
            ["kernel", "volta_fp16_s884gemm", 50, 400, {"correlation": 1, "grid": [1, 1, 1]}],
            ["kernel", "other", 500, 100, {"blocks per SM": 0.5}],
        ]
    )


def _on_host() -> Trace:
    return trace_of([["cpu_op", "aten::mm", 0, 100], ["cpu_op", "aten::relu", 200, 50]])


RECORDED_GROUPS = ("name", "category", "shape")
"""Groupings of operators that need neither call stacks nor modules."""


def _tables(trace: Trace) -> list[Table]:
    return [operators_table(trace, group) for group in RECORDED_GROUPS] + [
        kernels_table(trace, group) for group in KERNEL_GROUPS
    ]


def _labels(table: Table) -> list[str]:
    return [column.label for column in table.columns]


@pytest.mark.parametrize("trace", [_on_device(), _on_host(), _on_device("hipLaunchKernel")])
def test_columns_have_labels_help_and_units_that_fit(trace: Trace) -> None:
    for table in _tables(trace):
        assert table.columns[0].key == "name"
        assert not table.columns[0].hidden
        assert len(set(_labels(table))) == len(table.columns)
        for column in table.columns:
            assert column.help.endswith("."), column
            for unit in ("ns", "bytes", "share", "count"):
                if column.key.endswith(f"_{unit}"):
                    assert column.unit == unit, column
        (sort,) = [column for column in table.columns if column.key == table.sort]
        assert sort.unit == "ns"
        assert not sort.hidden


@pytest.mark.parametrize("trace", [_on_device(), _on_host()])
def test_cells_are_of_their_columns_unit(trace: Trace) -> None:
    for table in _tables(trace):
        for column in table.columns:
            for value in table.values[column.key]:
                whole = column.unit in {"ns", "bytes"}
                kinds: Any = (
                    int if whole else str if column.unit in {"text", "code"} else float | int
                )
                assert value is None or isinstance(value, kinds), (column.key, value)
                assert value == value, column.key  # noqa: PLR0124 (NaN is no JSON)


def test_operators_on_a_device_are_sorted_by_what_they_cost_there() -> None:
    table = operators_table(_on_device())
    assert (table.sort, table.group, table.groups) == (
        "device_self_ns",
        "name",
        OPERATOR_GROUPS,
    )
    assert table.values["name"] == ["aten::mm", "ProfilerStep*", "aten::relu"]
    assert table.values["device_self_ns"] == [400 * US, 0, 0]
    assert table.total_ns == 1000 * US
    assert table.values["device_self_share"] == [0.4, 0, 0]
    assert table.values["matrix_unit_self_share"] == [1.0, None, None]
    assert table.values["is_matrix_unit_eligible"] == ["yes", "no", "no"]


def test_operators_on_the_host_have_no_device_columns() -> None:
    table = operators_table(_on_host())
    assert table.sort == "host_self_ns"
    assert not [column.key for column in table.columns if "device" in column.key]
    assert not [column.key for column in table.columns if "matrix" in column.key]


def test_categories_have_a_row_each_with_their_parts_of_the_step() -> None:
    trace = _on_device()
    table = operators_table(trace, "category")
    assert table.sort == "device_self_ns"
    shown = {
        "name": ["matrix product", "device work of no operator", "elementwise"],
        "operator_count": [1, 0, 1],
        "call_count": [1, 0, 1],
        "device_self_ns": [400 * US, 100 * US, 0],
        "device_share": [0.8, 0.2, 0.0],
        "device_self_share": [0.4, 0.1, 0.0],
        "device_event_count": [1, 1, 0],
        "host_self_ns": [95 * US, 0, 50 * US],
        "host_share": [95 / 145, 0.0, 50 / 145],
        "host_self_share": [0.095, 0.0, 0.05],
    }
    assert table.values == shown
    categories = operators_table(trace).values["category"]
    assert categories == ["matrix product", None, "elementwise"]


def test_categories_on_the_host_have_no_device_columns() -> None:
    table = operators_table(_on_host(), "category")
    assert table.sort == "host_self_ns"
    assert table.values["host_self_ns"] == [100 * US, 50 * US]
    assert not [column.key for column in table.columns if "device" in column.key]


def _recomputing(*, on_device: bool) -> Trace:
    """`aten::addmm` runs in the forward pass, and again in the backward pass."""
    made = {"Sequence number": 3, "Fwd thread id": 0}
    node = {"Sequence number": 3, "Fwd thread id": 1}
    rows: list[tracebuild.Row] = [
        ["user_annotation", "ProfilerStep#1", 0, 500],
        ["cpu_op", "aten::addmm", 0, 16, made],
        ["cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 100, 100, node],
        ["cpu_op", "AddmmBackward0", 110, 80, node],
        ["cpu_op", "aten::addmm", 122, 14, {"Sequence number": 9, "Fwd thread id": 0}],
        ["cpu_op", "aten::mm", 150, 20],
    ]
    launches: list[tracebuild.Row] = [
        ["cuda_runtime", "cudaLaunchKernel", 124, 2, {"correlation": 2}],
        ["kernel", "gemm", 340, 10, {"correlation": 2}],
    ]
    return trace_of([*rows, *launches] if on_device else rows)


def test_recomputed_calls_are_shown_where_there_are_some() -> None:
    table = operators_table(_recomputing(on_device=True))
    added = {key: values for key, values in table.values.items() if key.startswith("recomputed")}
    at = table.values["name"].index("aten::addmm")
    assert {key: values[at] for key, values in added.items()} == {
        "recomputed_count": 1,
        "recomputed_host_ns": 12 * US,
        "recomputed_device_ns": 10 * US,
    }
    others = [value for values in added.values() for row, value in enumerate(values) if row != at]
    assert set(others) == {None}
    assert [
        column.key for column in table.columns if column.key in added and not column.hidden
    ] == ["recomputed_device_ns"]


def test_recomputed_calls_on_the_host_show_its_time() -> None:
    table = operators_table(_recomputing(on_device=False))
    at = table.values["name"].index("aten::addmm")
    assert table.values["recomputed_host_ns"][at] == 14 * US
    assert "recomputed_device_ns" not in table.values
    assert "recomputed_count" not in operators_table(_on_device()).values


RANGES: list[tracebuild.Row] = [
    ["cpu_op", "aten::conv2d", 0, 100],
    ["cuda_runtime", "cudaLaunchKernel", 20, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 40, 5, {"correlation": 2}],
    ["cpu_op", "aten::relu", 200, 100],
    ["cuda_runtime", "cudaLaunchKernel", 220, 5, {"correlation": 3}],
    *(
        ["cuda_profiler_range", name, 100 * at, 100, {"pid": "0", "tid": 0, **counters}]
        for at, (name, counters) in enumerate(
            [
                ("void gemm<float>(float*)", {"dram": 10.0, "sm": 7.0}),
                ("void gemm<float>(float*)", {"dram": 20.0}),
                ("relu", {"dram": 3.0}),
            ]
        )
    ),
]
"""Hardware counters instead of kernels."""


def test_kernels_show_their_counters_where_these_were_measured() -> None:
    table = kernels_table(trace_of(RANGES))
    assert table.values == {
        "name": ["gemm", "relu"],
        "full_name": ["void gemm<float>(float*)", "relu"],
        "call_count": [2, 1],
        "counter dram": [15.0, 3.0],
        "counter sm": [7.0, None],
    }
    assert (table.sort, table.empty) == ("call_count", "")
    timed = kernels_table(trace_of([*RANGES, ["kernel", "relu", 400, 5], ["kernel", "k", 410, 3]]))
    assert timed.values["name"] == ["relu", "k"]
    assert timed.values["counter dram"] == [3.0, None]
    assert timed.sort == "total_ns"
    assert not [key for key in kernels_table(_on_device()).values if key.startswith("counter")]


def test_operators_show_the_mean_counters_of_their_kernels() -> None:
    table = operators_table(trace_of(RANGES))
    rows = dict(zip(table.values["name"], table.values["counter dram"], strict=True))
    assert rows == {"aten::conv2d": 15.0, "aten::relu": 3.0}
    assert table.values["counter sm"] == [None, 7.0]
    assert not [key for key in operators_table(_on_device()).values if key.startswith("counter")]


def test_shapes_are_shown_when_asked_for() -> None:
    table = operators_table(_on_device(), "shape")
    assert table.values["input_dims"] == ["[[2,2],[2,2]]", None, None]
    assert "input_dims" not in operators_table(_on_device(), "name").values


def test_the_vendors_words_are_used() -> None:
    assert "Tensor Cores" in _labels(kernels_table(_on_device()))
    assert "Occupancy" in _labels(kernels_table(_on_device()))
    amd = _labels(kernels_table(_on_device("hipLaunchKernel")))
    assert "Matrix Cores" in amd
    assert "Occupancy" not in amd  # nothing of AMD's records it
    unknown = _tables(_on_device("launch", "xyz_runtime"))
    assert not [word for table in unknown for word in _labels(table) if "Core" in word]


def test_kernels_show_launches_when_asked_for() -> None:
    table = kernels_table(_on_device(), "launch")
    assert table.values["operator"] == ["aten::mm", None]
    assert table.values["grid"] == ["[1,1,1]", None]
    assert "registers_per_thread" not in table.values  # not recorded here
    assert table.total_ns == 1000 * US  # of the window, as of operators
    assert table.values["kernel_share"] == [0.8, 0.2]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (kernels_table(_on_host()), "ProfilerActivity.CUDA"),
        (operators_table(trace_of([["kernel", "k", 0, 5]])), "add ProfilerActivity.CPU"),
        (operators_table(trace_of([["python_function", "f", 0, 5]])), "no operator"),
    ],
)
def test_a_table_without_rows_says_why(table: Table, says: str) -> None:
    assert table.row_count == 0
    assert says in table.empty


def test_an_unknown_grouping_is_refused() -> None:
    for make in (operators_table, kernels_table):
        with pytest.raises(UnknownNameError, match="no grouping 'other'; the groupings are name, "):
            make(_on_host(), "other")
