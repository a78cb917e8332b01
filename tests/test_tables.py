"""The API's tables: columns with words and units, cells that JSON can hold, reasons for no rows."""

from typing import Any

import pytest

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


RECORDED_GROUPS = ("name", "shape")
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
