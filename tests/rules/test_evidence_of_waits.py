"""What the rules on waits, launches and loops show beside their numbers: lines, tables, events."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.advice import rule_outcomes
from stepscope.base.findings import EvidenceRow, Link, Outcome, SourceLine
from stepscope.model.trace import Trace
from stepscope.rules import (
    blocking_d2h_copy,
    item_sync,
    launch_bound,
    python_gc_pauses,
    python_loop_indexing,
)

GEMM = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}


def recorded(*body: dict[str, Any], record: tuple[str, ...] = (), machine: str = "h100") -> Trace:
    actions = [{"steps": 3, "body": list(body)}]
    schedule = {"machine": machine, "record": record, "actions": actions}
    return trace_of(document=tracebuild.document(schedule=schedule))


def said(trace: Trace, rule: Any) -> Outcome:
    [outcome] = rule_outcomes(trace, [rule])
    return outcome


def rows(outcome: Outcome) -> tuple[EvidenceRow, ...]:
    [table] = outcome.tables
    return table.rows


def test_a_wait_names_the_users_line_in_table_events_and_locations() -> None:
    reading = {"python": "train.py(12): train", "body": [GEMM, {"item": 4}, {"host": 200}]}
    outcome = said(recorded(reading, GEMM, {"host": 900}, record=("stacks",)), item_sync.RULE)
    line = "train.py(12): train"
    [row] = rows(outcome)
    # blocked from 21 us to the read's end at 1,016, then as long as the kernel of the step before
    # still runs; 217 us idle behind each of 3
    assert row.cells[:3] == (line, "aten::item", 3)
    assert row.cells[4] == 3 * 217_000
    assert row.link == Link(view="operators", search="aten::item", source=line)
    assert {event.detail for event in outcome.events} == {line}
    assert outcome.locations == (SourceLine(path="train.py", line=12, function="train"),)


def test_without_stacks_it_names_the_operator() -> None:
    outcome = said(recorded(GEMM, {"to_cpu": 4000}, {"host": 200}), blocking_d2h_copy.RULE)
    [row] = rows(outcome)
    assert row.cells[:3] == (None, "aten::to", 3)
    assert row.link == Link(view="operators", search="aten::to")
    assert {event.detail for event in outcome.events} == {"aten::to"}
    assert outcome.locations == ()


def test_late_launches_are_shown_by_operator() -> None:
    """Of each 15 us, 11 are idle: 8 in this operator and its launch, 3 in the next."""
    adding = {"op": "aten::add", "us": 10, "body": [{"kernel": "add", "us": 4}]}
    outcome = said(recorded({"repeat": 60, "body": [adding]}), launch_bound.RULE)
    [row] = rows(outcome)
    assert row.cells[:2] == ("aten::add", None)
    assert row.cells[3] == 18_000 + 179 * 11_000


def test_loops_are_shown_by_what_they_repeat() -> None:
    turn = [{"op": "aten::select"}, {"op": "aten::add"}]
    loop = {"python": "train.py(7): total", "body": [{"repeat": 20, "body": turn}]}
    trace = recorded(loop, {"host": 100}, record=("stacks",), machine="cpu")
    outcome = said(trace, python_loop_indexing.RULE)
    [row] = rows(outcome)
    assert row.cells == ("aten::select → aten::add", "train.py(7): total", 3, 60, 600_000)
    assert outcome.locations == (SourceLine(path="train.py", line=7, function="total"),)
    assert {event.detail for event in outcome.events} == {"loop of 20 iterations"}


def test_many_waits_a_step_are_written_out() -> None:
    outcome = said(recorded({"repeat": 1200, "body": [{"item": 4}]}), item_sync.RULE)
    assert "3,600 values are read from the device (1,200 per step)" in outcome.message


def test_collections_are_shown_by_the_line_that_they_ran_in() -> None:
    loading = {"python": "data.py(5): load", "us": 10, "body": [{"python": "Python GC", "us": 300}]}
    trace = recorded(
        {"op": "aten::mm", "us": 900}, loading, {"python": "Python GC", "us": 100},
        record=("stacks",), machine="cpu",
    )  # fmt: skip
    outcome = said(trace, python_gc_pauses.RULE)
    cells = [row.cells for row in rows(outcome)]
    assert cells == [("data.py(5): load", 3, 900_000), (None, 3, 300_000)]
    assert outcome.locations == (SourceLine(path="data.py", line=5, function="load"),)
    assert outcome.events[0].name == "Python GC"
