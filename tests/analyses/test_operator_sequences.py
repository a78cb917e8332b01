"""The kernels that operators run: beside a dictionary of tuples."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.operators.kernel_runs import ARROW, LONGEST, operator_sequences

US = 1000
CALLS = st.lists(st.lists(st.sampled_from("abc"), max_size=9), max_size=12)
Calls = list[list[str]]


def _rows(calls: Calls, *, within: str = "") -> list[list[Any]]:
    """Calls of `aten::op`, each 100 us, that launch kernels of 2 us by these names."""
    rows: list[list[Any]] = [["cpu_op", "aten::idle", 0, 1]]
    correlation = 0
    for number, kernels in enumerate(calls):
        at = 1 + 1000 * number
        rows.append(["cpu_op", "aten::op", at, 100])
        for place, kernel in enumerate(kernels):
            begin, correlation = at + place, correlation + 1
            rows.append(
                ["cuda_runtime", "cudaLaunchKernel", begin, 1, {"correlation": correlation}]
            )
            rows.append(
                ["kernel", kernel, begin + 200 + 2 * place, 2, {"correlation": correlation}]
            )
    if within:
        rows.append(["user_annotation", within, 1, 1000 * len(calls)])
    return rows


def test_calls_that_run_the_same_are_one_row() -> None:
    calls = [["a", "b"], ["a", "b"], ["b", "a"], ["a"]]
    table = operator_sequences(trace_of(_rows(calls, within="forward")))
    found = {
        (row.operator, row.sequence.replace(ARROW, "")): (
            row.call_count,
            row.device_ns,
            row.host_ns,
        )
        for row in rows_of(table)
    }
    assert found == {
        ("aten::op", "ab"): (2, 8 * US, 200 * US),
        ("aten::op", "ba"): (1, 4 * US, 100 * US),
        ("forward", "ababbaa"): (1, 14 * US, 4000 * US),
    }


def test_what_another_thread_launches_meanwhile_is_not_the_operators() -> None:
    rows = _rows([["a", "b"]])
    rows.append(["cuda_runtime", "cudaLaunchKernel", 2, 1, {"correlation": 77, "tid": 5}])
    rows.append(["kernel", "c", 300, 2, {"correlation": 77}])
    assert list(operator_sequences(trace_of(rows))["sequence"]) == [ARROW.join("ab")]


def test_sequences_that_are_too_long_are_left_out() -> None:
    just, more = ["a"] * LONGEST, ["a"] * (LONGEST + 1)
    table = operator_sequences(trace_of(_rows([just, more])))
    assert table["kernel_count"].tolist() == [LONGEST]


@given(CALLS)
def test_every_call_is_counted_by_what_it_ran(calls: Calls) -> None:
    expected = Counter(ARROW.join(call) for call in calls if len(call) > 1)
    table = operator_sequences(trace_of(_rows(calls)))
    assert dict(zip(table["sequence"], table["call_count"], strict=True)) == expected
    assert (table["device_ns"] == 2 * US * table["kernel_count"] * table["call_count"]).all()
