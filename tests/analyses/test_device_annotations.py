"""What annotations cost on the device, and which of them work belongs to."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.devices.annotations import (
    annotated_kernels,
    annotation_table,
    innermost_annotation,
)

US = 1000
ROWS: list[list[Any]] = [
    ["gpu_user_annotation", "step", 0, 100],
    ["gpu_user_annotation", "forward", 10, 40],
    ["gpu_user_annotation", "step", 0, 20, {"stream": 8}],
    ["kernel", "gemm", 10, 10],
    ["kernel", "gemm", 40, 10],
    ["kernel", "add", 60, 5],
    ["kernel", "add", 5, 5, {"stream": 8}],
    ["kernel", "add", 25, 5, {"stream": 8}],
    ["gpu_memcpy", "Memcpy HtoD", 12, 5, {"device": 1}],
]


def test_work_belongs_to_the_innermost_annotation_of_its_own_stream() -> None:
    trace = trace_of(ROWS)
    names = [*trace.device_annotations["name"].astype(object), None]
    found = [names[row] for row in innermost_annotation(trace)]
    begun = trace.device_events["start_ns"] // US
    assert dict(zip(begun.tolist(), found, strict=True)) == {
        5: "step",
        10: "forward",
        12: None,
        25: None,
        40: "forward",
        60: "step",
    }


def test_annotations_by_name() -> None:
    step, forward = rows_of(annotation_table(trace_of(ROWS)))
    assert (step.name, step.call_count, step.total_ns) == ("step", 2, 120 * US)
    assert (step.min_ns, step.max_ns) == (20 * US, 100 * US)
    assert (step.own_work_count, step.own_work_ns) == (2, 10 * US)
    assert (forward.own_work_count, forward.own_work_ns) == (2, 20 * US)
    assert forward.standard_deviation_ns != forward.standard_deviation_ns


def test_work_by_annotation() -> None:
    found = [
        (row.device, row.annotation, row.name, row.call_count, row.total_ns // US)
        for row in rows_of(annotated_kernels(trace_of(ROWS)))
    ]
    assert found == [
        (0, "forward", "gemm", 2, 20),
        (0, "step", "add", 2, 10),
        (1, None, "Memcpy HtoD", 1, 5),
        (0, None, "add", 1, 5),
    ]


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), max_size=6),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 9)), min_size=1, max_size=8),
)
def test_all_work_is_somewhere_once(
    annotations: list[tuple[int, int]], kernels: list[tuple[int, int]]
) -> None:
    rows = [["gpu_user_annotation", f"a{number % 3}", *of] for number, of in enumerate(annotations)]
    trace = trace_of(rows + [["kernel", "gemm", *of] for of in kernels])
    table = annotated_kernels(trace)
    assert table["call_count"].sum() == len(kernels)
    assert table["total_ns"].sum() == sum(duration for _, duration in kernels) * US
    own = table[table["annotation"].notna()]["total_ns"].sum()
    assert annotation_table(trace)["own_work_ns"].sum() == own


@pytest.mark.parametrize("table", [annotation_table, annotated_kernels])
def test_a_host_alone_has_neither(table: Any) -> None:
    assert table(trace_of([["cpu_op", "aten::add", 0, 5]])).empty
