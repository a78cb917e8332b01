"""When the host goes from short operator to short operator."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.analyses.host.short_operator_runs import ShortOperatorRuns, short_operator_runs


def turns(*body: dict[str, Any]) -> ShortOperatorRuns:
    schedule = {"machine": "cpu", "actions": [{"steps": 2, "body": list(body)}]}
    return short_operator_runs(trace_of(document=tracebuild.document(schedule=schedule)), 100_000)


def test_neither_long_operators_nor_long_waits_between_them_are_short_turns() -> None:
    found = turns(
        {"op": "aten::add", "us": 99},
        {"host": 99},
        {"op": "aten::mm", "us": 100},
        {"op": "aten::add", "us": 1},
        {"host": 100},
        {"op": "aten::add", "us": 1},
    )
    one = [[0, 198_000], [298_000, 299_000], [399_000, 400_000]]
    start = found.times[0, 0]
    assert (found.times[:2] - start).tolist() == one[:2]
    assert (found.share, found.operators) == (0.5, 6)


def test_an_operator_is_as_long_as_without_those_that_it_calls() -> None:
    called = [{"op": "aten::add", "us": 60}, {"op": "aten::add", "us": 60}]
    assert turns({"op": "aten::outer", "us": 30, "body": called}).share == 1.0
