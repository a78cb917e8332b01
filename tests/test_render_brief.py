"""The brief: of bounded length, the most important first, what is left out counted."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from reports import CANNOT_TELL, FOUND, RANKS, REPORT, WORKER, on_rank, run_of, with_texts
from stepscope.base.findings import Outcome
from stepscope.base.report import Problem, Report, RunReport
from stepscope.render import brief

LONG = "a sentence of some length that says what was measured, " * 20


def finding(number: int, text: str = "", severity: str = "warning") -> Outcome:
    return msgspec.structs.replace(
        FOUND,
        rule=f"rule-{number}",
        fingerprint=f"f{number}",
        message=text or FOUND.message,
        severity=severity,
    )


def named(name: str, *outcomes: Outcome) -> RunReport:
    return msgspec.structs.replace(run_of(*outcomes), name=name)


def test_a_small_report_is_told_whole() -> None:
    assert "Left out" not in brief.render(REPORT)
    assert "Left out" not in brief.render(RANKS)


@pytest.mark.parametrize("runs", [1, 3, 20, 500])
@pytest.mark.parametrize("findings", [1, 70])
def test_it_has_at_most_4000_characters_whatever_the_size_of_the_run(
    runs: int, findings: int
) -> None:
    outcomes = [finding(number, LONG) for number in range(findings)]
    report = Report(
        tuple(named(f"run {number}", *outcomes) for number in range(runs)),
        tuple(Problem("x" * 300, LONG, LONG) for _ in range(50)),
    )
    said = brief.render(report)
    assert len(said) <= brief.LIMIT
    assert "1. warning rule-0" in said
    assert said.endswith("(details of a rule).\n")


@given(st.text(max_size=2000))
@examples(40)
def test_no_text_of_a_trace_makes_it_longer(found: str) -> None:
    assert len(brief.render(with_texts(found))) <= brief.LIMIT


def test_what_there_is_no_room_for_is_counted() -> None:
    said = brief.render(Report((run_of(*(finding(number, LONG) for number in range(30))),)))
    shown = said.count("warning rule-")
    assert 0 < shown < 30
    assert f"Left out for length: {30 - shown} findings." in said


def test_of_many_runs_the_worst_are_told_first() -> None:
    mild = [named(f"mild {number}", finding(0, LONG, "info")) for number in range(40)]
    said = brief.render(Report((*mild, named("bad", finding(1, LONG, "critical")))))
    assert said.index("Run bad: Step") < said.index("Run mild 0: Step")
    assert "1. critical rule-1" in said


def test_the_fix_is_told_before_the_measurement_which_may_be_cut() -> None:
    said = brief.render(Report((run_of(finding(0, LONG)),)))
    [line] = [each for each in said.splitlines() if "rule-0" in each]
    assert "Fix: Load in workers. Measured: a sentence" in line
    assert line.endswith("…")


def test_what_is_unknown_is_not_told_as_nothing() -> None:
    worker = msgspec.structs.replace(on_rank(0), devices=(), budget=())
    said = brief.render(Report((run_of(CANNOT_TELL, workers=(worker,)),)))
    assert "0 ms" not in said
    assert "0.0 %" not in said
    assert "Inconclusive: tiny-batch-size: no shapes were recorded." in said
    assert "To record it: profile(record_shapes=True)" in said


def test_where_nothing_was_read_it_says_so() -> None:
    said = brief.render(Report((), (Problem("log/x.json", "the file is empty", "Record it"),)))
    assert "Not read: log/x.json: the file is empty. Record it." in said
    assert WORKER.verdict not in said
