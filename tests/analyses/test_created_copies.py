"""Which copies are of tensors that were made right before them."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core import requirements
from stepscope.analyses.devices.host_copies import copies_to_device
from stepscope.analyses.idle.copy_cost import created_copies
from stepscope.model.trace import Trace

STEP = ["user_annotation", "ProfilerStep#1", 0, 1_000]
MOVE = [
    ["cpu_op", "aten::to", 100, 30, {"Input Dims": [[8, 4], []]}],
    ["cpu_op", "aten::copy_", 105, 20, {"Input Dims": [[8, 4], [8, 4]]}],
    ["cuda_runtime", "cudaMemcpyAsync", 110, 5, {"correlation": 1}],
    ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 116, 2, {"correlation": 1, "bytes": 128}],
]


def op(name: str, start: int, duration: int, *dims: list[int], **more: Any) -> list[Any]:
    return ["cpu_op", f"aten::{name}", start, duration, {"Input Dims": list(dims), **more}]


def found(*rows: list[Any]) -> list[tuple[str, bool]]:
    trace: Trace = trace_of([STEP, *rows, *MOVE])
    copies = copies_to_device(trace, requirements.main_device(trace))
    created = created_copies(trace, copies)
    names = trace.host_calls["name"].iloc[created.maker].tolist()
    assert set(trace.host_calls["name"].iloc[created.move]) <= {"aten::to"}
    return list(zip(names, created.is_sure.tolist(), strict=True))


ZEROS = [op("zeros", 80, 15, []), op("empty", 82, 3, []), op("zero_", 90, 4, [8, 4])]


def test_the_operator_before_the_move_made_it_where_one_within_has_its_shape() -> None:
    assert found(*ZEROS) == [("aten::zeros", True)]


def test_views_annotations_and_other_threads_may_lie_in_between() -> None:
    rows = [
        op("view", 96, 1, [8, 4]),
        ["user_annotation", "batch", 97, 1],
        op("mm", 96, 3, [8, 4], tid=9),
    ]
    assert found(*ZEROS, *rows) == [("aten::zeros", True)]


SILENT = {
    "another shape": [op("zeros", 80, 15, []), op("zero_", 90, 4, [9, 4])],
    "something else in between": [*ZEROS, op("add", 96, 2, [8, 4])],
    "on another thread": [[*row[:4], {**row[4], "tid": 9}] for row in ZEROS],
    "inside a loader": [
        ["user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 70, 28],
        *ZEROS,
    ],
    "an array of NumPy": [op("lift_fresh", 80, 5, [8, 4])],
    "nothing before it": [],
}


@pytest.mark.parametrize("rows", SILENT.values(), ids=SILENT)
def test_these_are_not_made_here(rows: list[list[Any]]) -> None:
    assert found(*rows) == []


def test_a_list_ends_with_detach() -> None:
    rows = [op("lift_fresh", 80, 5, [8, 4]), op("detach_", 90, 5, [8, 4])]
    assert found(*rows) == [("aten::lift_fresh", True)]


@pytest.mark.parametrize("dims", [{}, {"Input Dims": "absurd"}, {"Input Dims": []}])
def test_unknown_and_absurd_shapes_do_not_decide(dims: dict[str, Any]) -> None:
    trace = trace_of(
        [
            STEP,
            ["cpu_op", "aten::zeros", 80, 15, dims],
            ["cpu_op", "aten::to", 100, 30, dims],
            *MOVE[2:],
        ]
    )
    copies = copies_to_device(trace, requirements.main_device(trace))
    created = created_copies(trace, copies)
    assert created.is_sure.tolist() == [False] * len(created.maker)
