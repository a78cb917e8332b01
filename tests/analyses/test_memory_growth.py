"""Memory from step to step: what each did, whether it grows, and who leaves things behind."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from memorybuild import memory
from stepscope.advice import rule_outcomes
from stepscope.analyses.core.robust_slope import slope
from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.growth import LEAK_SCHEMA, memory_growth, memory_leaks
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace
from stepscope.rules import all_rules

STEP_US = 100


def _stepped(events: Sequence[Sequence[str]], before: int = 1000) -> Trace:
    """A step of 100 µs for each list of events, which follow each other every 10 µs."""
    rows: list[Any] = []
    total = before
    for number, of_step in enumerate(events):
        start = number * STEP_US
        rows.append(["user_annotation", f"ProfilerStep#{number}", start, STEP_US])
        for place, event in enumerate(of_step):
            total += int(event.split("@")[0])
            at = start + 10 * (place + 1)
            rows.append(["cpu_op", f"aten::op{place}", at - 1, 3])
            rows.append(memory(at, event, **{"Total Allocated": total, "Total Reserved": 4096}))
    return trace_of(rows)


def test_each_step_says_what_it_did() -> None:
    trace = _stepped([["+8@1", "+16@2", "-8@1"], [], ["+32@3", "-32@3", "-16@2"]])
    table = memory_by_step(trace)
    assert table["step"].tolist() == [0, 1, 2]
    assert table["end_bytes"].tolist() == [1016, 1016, 1000]
    assert table["growth_bytes"].tolist() == [16, 0, -16]
    assert table["peak_bytes"].tolist() == [1024, 1016, 1048]
    assert table["allocated_bytes"].tolist() == [24, 0, 32]
    assert table["freed_bytes"].tolist() == [8, 0, 48]
    assert table["allocation_count"].tolist() == [2, 0, 1]
    assert table["left_bytes"].tolist() == [0, 0, 0]
    assert table["reserved_bytes"].tolist() == [4096, 4096, 4096]


def test_what_a_step_leaves_behind_is_held_to_the_end() -> None:
    table = memory_by_step(_stepped([["+8@1", "+16@2"], ["-16@2", "+4@4"]]))
    assert table["left_bytes"].tolist() == [8, 4]


def test_growth_is_what_every_step_adds() -> None:
    trace = _stepped([[f"+8@{n}", "+64@99", "-64@99"] for n in range(8)])
    (row,) = rows_of(memory_growth(trace))
    assert (row.growth_bytes, row.least_growth_bytes, row.most_growth_bytes) == (8, 8, 8)
    assert (row.step_count, row.total_growth_bytes, row.confidence) == (8, 56, "high")


def test_a_first_step_that_allocates_what_stays_is_no_growth() -> None:
    # optimizer states are made in the first step, and the last step's outputs are still held
    trace = _stepped([["+512@1", "+8@2"], *[["-8@2", "+8@2"] for _ in range(7)]])
    (row,) = rows_of(memory_growth(trace))
    assert (row.growth_bytes, row.confidence) == (0, "none")
    assert len(memory_leaks(trace)) == 0


def test_few_steps_are_little_evidence() -> None:
    assert rows_of(memory_growth(_stepped([["+8@1"], ["+8@2"], ["+8@3"]])))[0].confidence == "low"
    alone = rows_of(memory_growth(_stepped([["+8@1"]])))[0]
    assert np.isnan(alone.growth_bytes)
    assert alone.confidence == "none"


def test_only_steps_at_whose_end_the_memory_is_known_are_compared() -> None:
    steps = [memory(100 * n + 50, "+8@1", **{"Total Allocated": 1000 + 8 * n}) for n in range(8)]
    for unknown in (0, 7):
        del steps[unknown][4]["Total Allocated"]
    marks = [["user_annotation", f"ProfilerStep#{n}", 100 * n, 100] for n in range(8)]
    trace = trace_of([*marks, *steps])
    (row,) = rows_of(memory_growth(trace))
    assert (row.step_count, row.growth_bytes, row.total_growth_bytes) == (6, 8, 40)
    [found] = rule_outcomes(trace, [rule for rule in all_rules() if rule.id == "memory-growth"])
    assert found.message.startswith("Memory of CUDA 0 grows by 8 B per step (0.8 %) over 6 steps.")


def test_who_leaves_something_behind_in_every_step_may_leak() -> None:
    trace = _stepped([[f"+8@{n}", f"+64@{90 + n}", f"-64@{90 + n}"] for n in range(8)])
    (leak,) = rows_of(memory_leaks(trace))
    assert (leak.operator, leak.left_bytes, leak.allocation_count) == ("aten::op0", 56, 7)
    assert (leak.step_count, leak.step_share, leak.bytes_per_step) == (7, 1, 8)
    assert leak.confidence == "high"


def test_what_stays_behind_in_half_of_the_steps_is_believed_less() -> None:
    trace = _stepped([[f"+8@{n}"] if n % 2 == 0 else [] for n in range(9)])
    assert [row.confidence for row in rows_of(memory_leaks(trace))] == ["low"]


def test_one_step_in_ten_is_no_leak() -> None:
    trace = _stepped([["+8@1"] if n == 3 else [] for n in range(11)])
    assert len(memory_leaks(trace)) == 0
    assert [str(kind) for kind in memory_leaks(trace).dtypes] == [c.dtype for c in LEAK_SCHEMA]


def test_without_steps_it_says_how_to_mark_them() -> None:
    with pytest.raises(MissingDataError, match="no steps") as missing:
        memory_growth(trace_of([memory(0, "+8@1")]))
    assert missing.value.remedy.startswith("profiler.step()")


def test_without_totals_the_change_is_what_grows() -> None:
    (row,) = rows_of(memory_growth(trace_of(_rows_without_totals())))
    assert row.growth_bytes == 8


def _rows_without_totals() -> list[Any]:
    rows: list[Any] = []
    for number in range(8):
        rows.append(["user_annotation", f"ProfilerStep#{number}", number * 10, 10])
        rows.append(memory(number * 10 + 5, "+8"))
    return rows


def _slow_slope(values: Sequence[float]) -> float:
    pairs = [
        (after - before) / (j - i)
        for i, before in enumerate(values)
        for j, after in enumerate(values)
        if j > i
    ]
    return float(np.median(pairs))


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=12))
def test_the_slope_is_the_median_of_all_slopes(values: list[int]) -> None:
    found = slope(np.array(values, dtype=np.float64))
    assert found.median == pytest.approx(_slow_slope(values))
    assert found.low <= found.median <= found.high
    backwards = slope(np.array(values[::-1], dtype=np.float64))
    assert backwards.z == pytest.approx(-found.z)


def test_one_wild_step_does_not_move_the_slope() -> None:
    values = np.arange(20.0) * 8
    values[[0, 7]] = 10_000
    assert slope(values).median == pytest.approx(8)


def test_thousands_of_steps_are_thinned_out() -> None:
    assert slope(np.arange(100_000.0) * 3).median == pytest.approx(3)


@pytest.mark.parametrize("name", shared_trace_names())
def test_real_steps_add_up(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = memory_by_step(trace)
    except MissingDataError:
        return
    growth = table["growth_bytes"]
    assert (table["peak_bytes"] >= table["end_bytes"]).all()
    changed = (table["allocated_bytes"] - table["freed_bytes"]).astype(float)
    assert growth.tolist() == changed.tolist()
    assert memory_growth(trace)["confidence"].isin(["none", "low"]).all()  # none of them leaks
