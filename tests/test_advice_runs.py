"""What is said of a run: its recordings' findings each once, and what rules over the run take."""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import pytest

from loading import trace_of
from stepscope.advice import advise
from stepscope.advice.run_advice import run_report
from stepscope.advice.settings import Changes
from stepscope.advice.trace_advice import advise_trace_by
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Outcome
from stepscope.base.report import MergedOutcome, RunReport
from stepscope.model.trace import Run, Trace
from stepscope.rules import Finding, Rule, RuleResult, RunClaim, RunEvidence
from test_advice import Options, claiming, rule

STEP_US = 1000


def recording(name: str, *, rank: int | None = None, span: str = "1", steps: int = 3) -> Trace:
    info = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 8}}
    trace = trace_of(
        [["user_annotation", f"ProfilerStep#{n}", n * STEP_US, STEP_US] for n in range(steps)],
        **info,
    )
    return dataclasses.replace(trace, worker=name, span=span, id=f"{name}.{span}")


def only_on(name: str, of: Rule[Any], *workers: str) -> Rule[Any]:
    """Return a rule that finds what another does, on some workers."""

    def check(trace: Trace, options: Options) -> Iterable[RuleResult]:
        return of.check(trace, options) if of.check and trace.worker in workers else ()

    return dataclasses.replace(of, id=name, check=check)


def over_the_run(name: str, *answers: RuleResult, error: Exception | None = None) -> Rule[Any]:
    def check_run(_evidence: RunEvidence, _options: Options) -> Iterable[RuleResult]:
        if error is not None:
            raise error
        return answers

    return dataclasses.replace(rule(name), check=None, check_run=check_run)


def ranks(count: int) -> tuple[Trace, ...]:
    return tuple(recording(f"w{rank}", rank=rank) for rank in range(count))


def merged_of(report: RunReport) -> dict[str, MergedOutcome]:
    return {each.outcome.rule: each for each in report.merged}


# The same finding in several recordings


def test_a_finding_of_many_ranks_is_said_once_with_where_and_how_much() -> None:
    loud = only_on("loud", rule("loud", claiming((0, 900))), "w0", "w2", "w3", "w5")
    report = advise(Run(name="run", workers=ranks(8)), [loud])
    [said] = report.merged
    assert (said.outcome.rule, said.where, said.of_count) == ("loud", "ranks 0, 2-3, 5 of 8", 8)
    assert said.traces == ("w0.1", "w2.1", "w3.1", "w5.1")
    assert (said.low_ns, said.median_ns, said.high_ns) == (225, 300, 300)
    assert len([each for each in report.outcomes if each.status == "found"]) == 4


def test_the_worst_recording_speaks_for_all() -> None:
    def check(trace: Trace, _options: Options) -> Iterable[RuleResult]:
        yield claiming((0, 3000 if trace.rank == 1 else 300))

    uneven = dataclasses.replace(rule("uneven"), check=check)
    said = merged_of(advise(Run(name="run", workers=ranks(3)), [uneven]))["uneven"]
    assert said.outcome.worker == "w1"
    assert said.where == "all 3 traces"
    assert (said.low_ns, said.median_ns, said.high_ns) == (75, 100, 1000)


def test_a_single_recording_needs_no_where() -> None:
    [said] = advise(Run(name="run", workers=ranks(1)), [rule("a", claiming((0, 9)))]).merged
    assert said.where == ""


def test_recordings_without_ranks_are_called_by_name_and_spans_are_told() -> None:
    workers = tuple(recording("a", span=str(span)) for span in (1, 2, 3))
    only_later = rule("later", claiming((0, 9)))

    def check(trace: Trace, options: Options) -> Iterable[RuleResult]:
        return only_later.check(trace, options) if only_later.check and trace.span != "1" else ()

    [said] = advise(
        Run(name="run", workers=workers), [dataclasses.replace(only_later, check=check)]
    ).merged
    assert said.where == "a, spans 2-3 of 3"


# Rules over the run


def outcome_of(report: RunReport, name: str) -> Outcome:
    [outcome] = [each for each in report.outcomes if each.rule == name and not each.trace]
    return outcome


def test_a_rule_over_the_run_speaks_once_for_all_recordings() -> None:
    claim = RunClaim(low_ns=100_000, high_ns=200_000, method="As measured.")
    finding = Finding(message="Rank 3 is late.", run_claim=claim)
    report = advise(Run(name="run", workers=ranks(4)), [over_the_run("late", finding)])
    found = outcome_of(report, "late")
    assert (found.status, found.severity, found.worker) == ("found", "critical", "")
    assert found.claim is not None
    assert (found.claim.net_low_ns, found.claim.net_high_ns) == (100_000, 200_000)
    assert found.claim.net_share == pytest.approx(0.2)
    assert merged_of(report)["late"].traces == ()


def test_a_claim_over_the_run_is_never_more_than_its_longest_step() -> None:
    claim = RunClaim(low_ns=5e6, high_ns=9e6, method="Too much.")
    report = advise(
        Run(name="run", workers=ranks(2)),
        [over_the_run("late", Finding(message="Late.", run_claim=claim))],
    )
    found = outcome_of(report, "late").claim
    assert found is not None
    assert (found.net_low_ns, found.net_high_ns, found.net_share) == (1_000_000, 1_000_000, 1.0)


def test_what_the_run_claims_the_recordings_do_not_claim_again() -> None:
    waiting = rule("exposed", claiming((0, 900_000)))
    claim = RunClaim(
        low_ns=0,
        high_ns=200_000,
        method="Waiting.",
        taken_ns={"w0.1": 200_000},
        taken_from=("exposed",),
    )
    late = over_the_run("late", Finding(message="Late.", run_claim=claim))
    report = advise(Run(name="run", workers=ranks(2)), [waiting, late])
    claims = {each.trace: each.claim for each in report.outcomes if each.rule == "exposed"}
    first, second = claims["w0.1"], claims["w1.1"]
    assert first is not None
    assert second is not None
    assert (second.net_low_ns, second.net_high_ns) == (225_000, 300_000)
    assert (first.net_low_ns, first.net_high_ns) == (75_000, 100_000)
    assert first.method.endswith("200 µs of it is counted under late.")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (NotApplicableError("one process"), "not-applicable"),
        (MissingDataError("no ranks", "init_process_group()"), "cannot-tell"),
        (ZeroDivisionError("oh"), "failed"),
    ],
)
def test_a_rule_over_the_run_that_cannot_answer_costs_one_outcome(
    error: Exception, status: str
) -> None:
    chosen = [over_the_run("broken", error=error), rule("sound", claiming((0, 9)))]
    report = advise(Run(name="run", workers=ranks(2)), chosen)
    assert outcome_of(report, "broken").status == status
    assert [each.outcome.rule for each in report.merged] == ["sound"]


def test_what_was_said_of_severities_holds_for_rules_over_the_run_too() -> None:
    slow = over_the_run("slow", Finding(message="m", severity="critical"))
    recordings = [advise_trace_by(trace, ()) for trace in ranks(2)]
    [told] = run_report("run", recordings, [slow], Changes(severities={"slow": "info"})).outcomes
    assert told.severity == "info"
    assert run_report("run", recordings, [slow], Changes(select=("warning",))).outcomes == ()


@pytest.mark.parametrize(
    ("high_ns", "status", "counted_ns"), [(math.nan, "failed", None), (-9.0, "found", 0)]
)
def test_a_claim_over_the_run_that_is_no_time_costs_nobody_else(
    high_ns: float, status: str, counted_ns: int | None
) -> None:
    claim = RunClaim(low_ns=high_ns, high_ns=high_ns, method="")
    wrong = over_the_run("wrong", Finding(message="m", run_claim=claim))
    right = over_the_run("right", Finding(message="m"))
    outcomes = {
        each.rule: each
        for each in advise(Run(name="run", workers=ranks(2)), [wrong, right]).outcomes
    }
    assert (outcomes["wrong"].status, outcomes["right"].status) == (status, "found")
    told = outcomes["wrong"].claim
    assert (told.low_ns if told else None) == counted_ns


def test_a_finding_that_is_lessened_is_less_serious_too() -> None:
    waiting = rule("exposed", claiming((0, 900_000), severity="critical"))
    claim = RunClaim(
        low_ns=0,
        high_ns=290_000,
        method="Waiting.",
        taken_ns={"w0.1": 290_000},
        taken_from=("exposed",),
    )
    late = over_the_run("late", Finding(message="Late.", run_claim=claim))
    report = advise(Run(name="run", workers=ranks(2)), [waiting, late])
    told = {each.trace: each.severity for each in report.outcomes if each.rule == "exposed"}
    assert told == {"w0.1": "info", "w1.1": "critical"}


# The sentence


def test_the_verdict_of_a_run_names_what_costs_most_and_where() -> None:
    costly = dataclasses.replace(
        rule("costly", claiming((0, 900_000), severity=None)), culprit="the DataLoader"
    )
    report = advise(Run(name="run", workers=ranks(4)), [only_on("costly", costly, "w1", "w2")])
    assert report.verdict == (
        "4 traces, step 1.00 ms; the DataLoader alone costs 225–300 µs of it (ranks 1-2 of 4)."
    )


def test_without_that_it_is_the_slowest_recordings_own() -> None:
    workers = (*ranks(2), recording("w2", rank=2, steps=1))
    report = advise(Run(name="run", workers=workers), [rule("quiet")])
    assert report.verdict.startswith("3 traces, step 1.00 ms. The slowest is rank 0: ")
    assert advise(Run(name="none"), [rule("quiet")]).verdict == ""
