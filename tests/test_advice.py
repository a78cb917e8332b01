"""The engine: outcomes, their order, and savings that never count a nanosecond twice."""

import dataclasses
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope import rules
from stepscope.advice import advise, rule_outcomes
from stepscope.analyses.core.window import window
from stepscope.base.calibration import Factor
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Confidence, Evidence, Fix, Outcome, Severity
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Run, Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, severity_of

STEP_US = 1000
STEP_COUNT = 3
WINDOW_NS = STEP_COUNT * STEP_US * 1000


def steps(count: int = STEP_COUNT) -> Trace:
    """Steps of 1,000 us, nothing else: claims are what the fake rules say."""
    return trace_of(
        [["user_annotation", f"ProfilerStep#{n}", n * STEP_US, STEP_US] for n in range(count)]
    )


TRACE = steps()


@dataclass(frozen=True, kw_only=True)
class Options:
    """None."""


def rule(
    name: str, *findings: RuleResult, priority: int = 50, is_symptom: bool = False
) -> Rule[Any]:
    def check(_trace: Trace, _options: Options) -> Iterable[RuleResult]:
        return findings

    return Rule(
        id=name,
        title=name,
        category="fake",
        why="Because.",
        detects="What it looks at.",
        saving="As the test says.",
        effort="flag",
        risk="none",
        fix=Fix(summary="Do it."),
        options=Options(),
        check=check,
        priority=priority,
        is_symptom=is_symptom,
    )


def raising(name: str, error: Exception) -> Rule[Any]:
    def check(_trace: Trace, _options: Options) -> Iterator[Finding]:
        yield Finding(message="before it broke", severity="critical")
        raise error

    return dataclasses.replace(rule(name), check=check)


def times(*spans: tuple[int, int]) -> Intervals:
    array = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return intervals.union(array[:, 0], array[:, 1])


def claiming(*spans: tuple[int, int], **options: Any) -> Finding:
    severity: Severity | None = options.pop("severity", "info")
    low, high = options.pop("low", 0.75), options.pop("high", 1.0)
    factor = Factor(low=low, high=high, source="The test.")
    return Finding(
        message="claims",
        severity=severity,
        claims=(Claim(intervals=times(*spans), factor=factor, method="As measured.", **options),),
    )


def by_rule(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    return {outcome.rule: outcome for outcome in outcomes}


# Statuses


def test_a_rule_that_raises_is_one_failed_outcome_and_hides_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = raising("broken", ZeroDivisionError("division by zero"))
    sound = rule("sound", claiming((0, 500)))
    with caplog.at_level(logging.WARNING):
        report = advise(Run(name="run", workers=(TRACE,)), [broken, sound])
    assert [(each.rule, each.status) for each in report.outcomes] == [
        ("sound", "found"),
        ("broken", "failed"),
    ]
    failed = by_rule(report.outcomes)["broken"]
    assert failed.reason is not None
    assert failed.reason.startswith("ZeroDivisionError: division by zero at ")
    assert (failed.severity, failed.claim, failed.message) == (None, None, "")
    assert "rule broken failed" in caplog.text
    assert "division by zero" in caplog.text
    assert "Traceback" not in caplog.text
    assert report.workers[0].verdict


def test_a_rule_whose_claim_is_no_time_fails_alone() -> None:
    wrong = Finding(message="m", severity="warning", claims=(Claim(intervals=np.array([1, 2])),))
    outcomes = by_rule(
        rule_outcomes(TRACE, [rule("wrong", wrong), rule("right", claiming((0, 9)))])
    )
    assert (outcomes["wrong"].status, outcomes["right"].status) == ("failed", "found")


def test_missing_data_is_no_answer_with_reason_and_remedy() -> None:
    missing = raising("missing", MissingDataError("no shapes", "record_shapes=True"))
    [outcome] = rule_outcomes(TRACE, [missing])
    assert outcome.status == "cannot-tell"
    assert (outcome.reason, outcome.remedy) == ("no shapes", "record_shapes=True")
    [bare] = rule_outcomes(TRACE, [raising("missing", MissingDataError("no shapes"))])
    assert (bare.reason, bare.remedy) == ("no shapes", None)


def test_what_the_recording_has_nothing_of_is_not_applicable_and_needs_no_remedy() -> None:
    [outcome] = rule_outcomes(TRACE, [raising("ranks", NotApplicableError("one process"))])
    assert outcome.status == "not-applicable"
    assert (outcome.reason, outcome.remedy) == ("one process", None)


def test_what_is_acquitted_is_rejected_with_its_numbers() -> None:
    reads = Evidence(label="Reads", value=4, unit="count")
    [outcome] = rule_outcomes(
        TRACE, [rule("a", RuledOut(message="It costs nothing.", evidence=(reads,)))]
    )
    assert (outcome.status, outcome.message, outcome.evidence) == (
        "rejected",
        "It costs nothing.",
        (reads,),
    )
    assert (outcome.severity, outcome.claim, outcome.fix) == (None, None, None)


def test_no_finding_is_passed_and_several_are_several() -> None:
    assert [each.status for each in rule_outcomes(TRACE, [rule("quiet")])] == ["passed"]
    two = rule_outcomes(TRACE, [rule("loud", claiming((0, 9)), claiming((9, 18)))])
    assert [each.status for each in two] == ["found", "found"]


def test_an_outcome_carries_the_rules_words_and_a_findings_own_fix_goes_before() -> None:
    own = Finding(message="m", severity="info", fix=Fix(summary="Do this instead."))
    [general] = rule_outcomes(TRACE, [rule("a", claiming((0, 9)))])
    [special] = rule_outcomes(TRACE, [rule("a", own)])
    assert general.fix == Fix(summary="Do it.")
    assert special.fix == Fix(summary="Do this instead.")
    assert (general.title, general.category, general.why) == ("a", "fake", "Because.")


# Severity and confidence


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        (0.0, None),
        (0.0099, None),
        (0.01, "info"),
        (0.0499, "info"),
        (0.05, "warning"),
        (0.1999, "warning"),
        (0.2, "critical"),
        (1.0, "critical"),
    ],
)
def test_severity_is_the_recoverable_share(share: float, severity: Severity | None) -> None:
    assert severity_of(share) == severity
    found = rule_outcomes(
        TRACE, [rule("a", claiming((0, round(share * WINDOW_NS)), severity=None))]
    )
    assert [each.severity for each in found] == [severity], "hidden below the lowest: passed"


def test_time_outside_the_window_makes_nothing_serious() -> None:
    beyond = claiming((-10 * WINDOW_NS, 0), (WINDOW_NS, 9 * WINDOW_NS), severity=None)
    assert [each.status for each in rule_outcomes(TRACE, [rule("a", beyond)])] == ["passed"]


@pytest.mark.parametrize("given_severity", ["critical", None])
def test_low_confidence_is_never_critical(given_severity: Severity | None) -> None:
    doubtful = dataclasses.replace(
        claiming((0, WINDOW_NS), severity=given_severity), confidence="low"
    )
    [outcome] = rule_outcomes(TRACE, [rule("a", doubtful)])
    assert (outcome.severity, outcome.confidence) == ("warning", "low")


@pytest.mark.parametrize(
    ("count", "own", "shown"),
    [
        (0, "high", "medium"),
        (1, "high", "medium"),
        (2, "high", "medium"),
        (2, "medium", "medium"),
        (2, "low", "low"),
        (3, "high", "high"),
        (3, "low", "low"),
    ],
)
def test_confidence_is_high_from_three_steps_on(
    count: int, own: Confidence, shown: Confidence
) -> None:
    trace = steps(count) if count else trace_of([["cpu_op", "aten::mm", 0, 10]])
    finding = Finding(message="m", severity="info", confidence=own)
    assert [each.confidence for each in rule_outcomes(trace, [rule("a", finding)])] == [shown]


# Order


def test_outcomes_are_ordered_causes_first() -> None:
    span = STEP_US * 1000
    chosen = [
        rule("z-symptom", Finding(message="m", severity="critical"), is_symptom=True),
        rule("a-quiet"),
        raising("a-missing", MissingDataError("none")),
        raising("b-broken", ValueError("no")),
        rule("covered", claiming((0, span), severity="critical"), priority=60),
        rule("small", claiming((span, span + 10), severity="warning"), priority=10),
        rule("large", claiming((0, span), severity="warning"), priority=10),
        rule("note", Finding(message="m", severity="info")),
        rule("worst", claiming((2 * span, 2 * span + 5), severity="critical")),
    ]
    report = advise(Run(name="run", workers=(TRACE,)), chosen)
    assert [outcome.rule for outcome in report.outcomes] == [
        "worst",
        "large",
        "small",
        "note",
        "covered",
        "z-symptom",
        "b-broken",
        "a-quiet",
        "a-missing",
    ]


@pytest.mark.parametrize(("part", "first"), [(0.51, "specific"), (0.49, "launch-bound")])
def test_a_general_cause_follows_one_that_saves_half_as_much(part: float, first: str) -> None:
    span = STEP_US * 1000
    chosen = [
        rule("launch-bound", claiming((0, span), severity="warning")),
        rule("specific", claiming((span, span + round(part * span)), severity="warning")),
    ]
    report = advise(Run(name="run", workers=(TRACE,)), chosen)
    assert report.outcomes[0].rule == first


def test_every_worker_has_its_outcomes_and_its_report() -> None:
    first, second = (dataclasses.replace(TRACE, worker=name) for name in ("rank0", "rank1"))
    report = advise(Run(name="run", workers=(first, second)), [rule("a", claiming((0, 9)))])
    assert [each.worker for each in report.outcomes] == ["rank0", "rank1"]
    assert [each.name for each in report.workers] == ["rank0", "rank1"]
    assert advise(Run(name="none"), [rule("a")]).outcomes == ()


def test_all_rules_run_by_default() -> None:
    report = advise(Run(name="run", workers=(TRACE,)))
    on = {rule.id for rule in rules.all_rules() if rule.life_cycle != "preview"}
    assert {outcome.rule for outcome in report.outcomes} == on
    assert report.verdict == report.workers[0].verdict


# The resolver


def test_a_nanosecond_goes_to_the_special_cause_and_the_general_one_says_so() -> None:
    special = rule("special", claiming((0, 600)), priority=10)
    apart = rule("apart", claiming((2000, 2300)), priority=20)
    general = rule("general", claiming((300, 1200)), priority=30)
    found = by_rule(rule_outcomes(TRACE, [general, special, apart]))
    claims = {name: each.claim for name, each in found.items() if each.claim}
    assert claims["special"].high_ns == 200, "per step: 600 of 3"
    assert claims["special"].method == "As measured."
    assert claims["general"].high_ns == 300
    assert (claims["general"].net_low_ns, claims["general"].net_high_ns) == (150, 200)
    assert claims["general"].method == "As measured. 100 ns of it is counted under special."


def test_two_findings_of_a_rule_share_its_time_and_the_second_says_so() -> None:
    both = rule("twice", claiming((0, 400_000)), claiming((100_000, 700_000)))
    first, second = rule_outcomes(TRACE, [both])
    assert first.claim is not None
    assert second.claim is not None
    assert (first.claim.method, first.claim.net_high_ns) == ("As measured.", 133_333)
    assert second.claim.method == "As measured. 100 µs of it is counted under twice."
    assert (second.claim.high_ns, second.claim.net_high_ns) == (200_000, 100_000)


def test_the_sure_part_alone_is_won_at_least() -> None:
    finding = claiming((0, 900), low=1.0, low_intervals=times((0, 300)))
    [outcome] = rule_outcomes(TRACE, [rule("a", finding)])
    assert outcome.claim is not None
    assert (outcome.claim.net_low_ns, outcome.claim.net_high_ns) == (100, 300)


def test_without_steps_figures_are_of_the_window() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 10]])
    [outcome] = rule_outcomes(trace, [rule("a", claiming((0, 4000), low=0.5))])
    assert outcome.claim is not None
    assert (outcome.claim.high_ns, outcome.claim.net_low_ns) == (4000, 2000)
    assert outcome.claim.net_share == pytest.approx(0.4)


SPAN = st.tuples(st.integers(-WINDOW_NS // 10, WINDOW_NS), st.integers(0, WINDOW_NS // 2)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
SHARE = st.floats(0, 1, allow_nan=False)


@st.composite
def fakes(draw: st.DrawFn) -> list[Rule[Any]]:
    """Rules that claim whatever, some the same as others, with any shares and priorities."""
    found = []
    for number in range(draw(st.integers(1, 6))):
        spans = draw(st.lists(SPAN, max_size=4))
        part = draw(st.none() | st.lists(SPAN, max_size=2).map(lambda s: times(*s)))
        finding = claiming(*spans, low=draw(SHARE), high=draw(SHARE), low_intervals=part)
        found.append(rule(f"rule-{number}", finding, priority=draw(st.integers(0, 3))))
    return found


def claims_of(chosen: list[Rule[Any]]) -> dict[str, Any]:
    return {each.rule: each.claim for each in rule_outcomes(TRACE, chosen) if each.claim}


@given(fakes())
def test_savings_sum_to_no_more_than_the_window(chosen: list[Rule[Any]]) -> None:
    claims = claims_of(chosen)
    rounding = len(claims)
    assert sum(claim.net_high_ns for claim in claims.values()) <= STEP_US * 1000 + rounding
    assert sum(claim.net_share for claim in claims.values()) <= 1 + 1e-9
    for claim in claims.values():
        assert 0 <= claim.net_low_ns <= claim.net_high_ns <= claim.high_ns


@given(fakes())
def test_each_nanosecond_is_given_once(chosen: list[Rule[Any]]) -> None:
    """With shares of 1 the nets are exactly the union of all claims, within the window."""
    findings = [
        (each, answer)
        for each in chosen
        for answer in (each.check(TRACE, each.options) if each.check else ())
        if isinstance(answer, Finding)
    ]
    sets = [claim.intervals for _, finding in findings for claim in finding.claims]
    whole = [
        rule(each.id, claiming(*(tuple(span) for span in spans.tolist())), priority=each.stage)
        for (each, _), spans in zip(findings, sets, strict=True)
    ]
    outcomes = rule_outcomes(TRACE, whole)
    claimed = intervals.merged(*sets)
    inside = intervals.clip(claimed, 0, WINDOW_NS)
    shares = sum(each.claim.net_share for each in outcomes if each.claim)
    assert shares * WINDOW_NS == pytest.approx(intervals.duration_ns(inside), abs=1)


@given(fakes(), st.lists(SPAN, max_size=4))
def test_a_rule_of_later_priority_changes_no_other_net(
    chosen: list[Rule[Any]], spans: list[tuple[int, int]]
) -> None:
    before = claims_of(chosen)
    after = claims_of([rule("later", claiming(*spans), priority=99), *chosen])
    assert {name: claim for name, claim in after.items() if name != "later"} == before


@given(fakes(), st.randoms(use_true_random=False))
def test_the_order_in_which_rules_run_does_not_matter(chosen: list[Rule[Any]], random: Any) -> None:
    shuffled = list(chosen)
    random.shuffle(shuffled)
    assert claims_of(shuffled) == claims_of(chosen)


@given(st.integers(-(10**6), 10**6), fakes())
def test_moving_the_clock_changes_nothing(shift_us: int, chosen: list[Rule[Any]]) -> None:
    """Times are from the trace's first event, so a shifted file is the same file."""
    shifted = trace_of(
        [
            ["user_annotation", f"ProfilerStep#{n}", 10**7 + shift_us + n * STEP_US, STEP_US]
            for n in range(STEP_COUNT)
        ]
    )
    assert window(shifted) == window(TRACE)
    assert {e.rule: e.claim for e in rule_outcomes(shifted, chosen) if e.claim} == claims_of(chosen)
