"""What a reader should know of the file itself."""

from typing import Any

import pytest

from loading import columns_of, trace_of
from stepscope.analyses.health import early_share, health
from stepscope.report import HealthItem
from stepscope.trace import Trace, trace_from_columns

FULL: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 1000],
    ["cpu_op", "aten::mm", 0, 10, {"Input Dims": [[1, 2], [2, 1]]}],
    ["python_function", "train.py(1): main", 0, 900],
    ["cpu_instant_event", "[memory]", 5, None, {"Bytes": 512, "Device Type": 1}],
]


def kinds(rows: list[list[Any]]) -> dict[str, HealthItem]:
    return {item.kind: item for item in health(trace_of(rows))}


def works(linked: int, orphans: int = 0, early: int = 0) -> list[list[Any]]:
    """Kernels with a launch 5 us before them, without one, and with one 5 us behind."""
    rows: list[list[Any]] = []
    for number in range(linked + early):
        start = 20 + 10 * number
        launch = start - 5 if number < linked else start + 5
        rows.append(["cuda_runtime", "cudaLaunchKernel", launch, 2, {"correlation": number}])
        rows.append(["kernel", "gemm", start, 3, {"correlation": number}])
    rows += [
        ["kernel", "gemm", 5000 + 10 * number, 3, {"correlation": 10_000 + number}]
        for number in range(orphans)
    ]
    return rows


def test_a_full_recording_needs_no_remark() -> None:
    assert kinds([*FULL, *works(50)]) == {}


@pytest.mark.parametrize(
    ("missing", "kind", "remedy"),
    [
        (0, "no-steps", "prof.step()"),
        (1, "no-shapes", "record_shapes=True"),
        (2, "no-stacks", "with_stack=True"),
        (3, "no-memory", "profile_memory=True"),
    ],
)
def test_a_flag_that_was_off_is_named_with_its_remedy(missing: int, kind: str, remedy: str) -> None:
    rows = [row for place, row in enumerate(FULL) if place != missing]
    if kind == "no-shapes":
        rows.append(["cpu_op", "aten::mm", 0, 10])
    found = kinds(rows)
    assert list(found) == [kind]
    assert found[kind].severity == "info"
    assert remedy in found[kind].remedy


def test_a_stack_of_2021_is_a_stack() -> None:
    stack = {"Call stack": "train.py(1): main", "Input dims": [[1]]}
    rows = [FULL[0], ["Operator", "aten::mm", 0, 10, stack], FULL[3]]
    assert kinds(rows) == {}


def test_without_operators_missing_shapes_are_no_news() -> None:
    assert "no-shapes" not in kinds([FULL[0], *works(3)])


@pytest.mark.parametrize(("orphans", "is_told"), [(1, False), (2, True)])
def test_two_in_a_hundred_without_a_launch_are_told(orphans: int, *, is_told: bool) -> None:
    found = kinds([*FULL, *works(100 - orphans, orphans)])
    assert ("launch-not-recorded" in found) == is_told
    if is_told:
        item = found["launch-not-recorded"]
        assert (item.count, item.severity) == (2, "warning")
        assert item.message.startswith("2 of 100 device events have no recorded launch")


@pytest.mark.parametrize(("early", "is_told"), [(1, False), (2, True)])
def test_more_than_one_in_a_hundred_before_its_launch_is_told(early: int, *, is_told: bool) -> None:
    rows = [*FULL, *works(100 - early, early=early)]
    assert ("clocks-disagree" in kinds(rows)) == is_told
    assert early_share(trace_of(rows)) == early / 100


def test_work_without_a_launch_tells_nothing_of_the_clocks() -> None:
    rows = [*FULL, *works(49, orphans=100, early=1)]
    assert early_share(trace_of(rows)) == 1 / 50, "of those that have a launch"
    assert early_share(trace_of(FULL)) == 0.0


def test_records_that_the_profiler_never_filled_are_told() -> None:
    empty = ["kernel", "gemm", 0, 0]
    later: list[list[Any]] = [
        [row[0], row[1], row[2] + 100, *row[3:]] for row in [*FULL, *works(50)]
    ]
    trace = trace_of([empty, *later], baseTimeNanoseconds=0)
    [item] = health(trace)
    assert (item.kind, item.count, item.severity) == ("empty-records", 1, "info")


def cut_short() -> Trace:
    text = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 2'
    whole = '{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "ts": 0, "dur": 1}, '
    return trace_from_columns(columns_of(text.replace("[", "[" + whole, 1)), worker="worker")


def test_what_was_repaired_comes_first() -> None:
    items = health(cut_short())
    assert items[0].severity == "warning"
    assert items[0].message
    assert [item.severity for item in items] == sorted(
        (item.severity for item in items), key=["critical", "warning", "info"].index
    )
