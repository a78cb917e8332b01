"""Savings in the recorded step and without the profiler: which one decides, and where it holds."""

from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import trace_of
from stepscope.advice import rule_outcomes
from stepscope.analyses.core.window import window
from stepscope.base import recording_costs as costs
from stepscope.base.calibration import Factor
from stepscope.base.findings import ClaimReport, Fix, Outcome, Severity, TimedStep
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.render import advice_phrases
from stepscope.render.advice_sections import AdviceItem
from stepscope.replay.unrecorded import unrecorded_world
from stepscope.rules import INFO_SHARE, Claim, Finding, Rule, Thresholds
from stepscope.rules.shared.step_savings import StepShares

ALL = Factor(low=1.0, high=1.0, source="The test.")
FRACTIONS = st.floats(0, 1)


@pytest.mark.parametrize(
    ("recorded", "unrecorded", "is_measured", "expected"),
    [
        (0.10, None, False, ("recorded", 0.10, "both")),
        (0.10, 0.11, False, ("recorded", 0.10, "both")),
        (0.10, 0.09, False, ("recorded", 0.10, "both")),
        (0.10, 0.09, True, ("unrecorded", 0.09, "both")),
        (0.10, 0.05, False, ("unrecorded", 0.05, "both")),
        (0.05, 0.10, False, ("recorded", 0.05, "both")),
        (0.05, 0.10, True, ("unrecorded", 0.10, "both")),
        (0.009, 0.30, False, ("recorded", 0.009, "unrecorded")),
        (0.009, 0.30, True, ("unrecorded", 0.30, "unrecorded")),
        (0.30, 0.0, False, ("unrecorded", 0.0, "recorded")),
        (0.30, 0.0, True, ("unrecorded", 0.0, "recorded")),
        (0.011, 0.009, False, ("recorded", 0.011, "both")),
        (0.009, 0.008, False, ("recorded", 0.009, "neither")),
    ],
)
def test_the_measured_step_decides_else_the_smaller_saving(
    recorded: float,
    unrecorded: float | None,
    is_measured: bool,  # noqa: FBT001
    expected: tuple[str, float, str],
) -> None:
    shares = StepShares(recorded=recorded, unrecorded=unrecorded, is_measured=is_measured)
    assert (shares.decisive_step, shares.decisive, shares.holds_in) == expected


@given(recorded=FRACTIONS, unrecorded=FRACTIONS)
def test_an_estimate_never_raises_a_saving(recorded: float, unrecorded: float) -> None:
    shares = StepShares(recorded=recorded, unrecorded=unrecorded)
    assert shares.decisive <= recorded
    assert shares.decisive <= max(unrecorded / 0.8, unrecorded + INFO_SHARE) + 1e-12


def on_device(median_share: float | None = None) -> Trace:
    """Four steps of 200 operators, 10 us each on the host, 9.5 us on the device.

    Without the cost of recording, the host takes less than 9.5 us, and the device is the limit.
    """
    gemm = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 9.5}]}
    body = [{"repeat": 200, "body": [gemm]}]
    schedule = {"machine": "h100", "actions": [{"steps": 4, "body": body}]}
    document = tracebuild.document(schedule=schedule)
    if median_share is not None:
        document |= measured(round(2_000_000 * median_share))
    return trace_of(document=document)


def measured(median_ns: int) -> dict[str, Any]:
    """Return the recorder's time of unrecorded steps."""
    names = ("median_ns", "first_quartile_ns", "third_quartile_ns")
    figures = {"count": 20, **dict.fromkeys(names, median_ns)}
    return {"stepscope_recorder": {"unrecorded_steps": figures}}


class NoOptions(Thresholds):
    """None."""


def kernels(trace: Trace) -> Claim:
    """Claim all kernels, at zero time."""
    device = trace.device_events
    times = intervals.union(device["start_ns"].to_numpy(), device["end_ns"].to_numpy())
    return Claim(times, ALL, "All kernels.", is_device_work=True)


def gaps(trace: Trace) -> Claim:
    """Claim all time in which the device is idle."""
    span = window(trace)
    whole = np.array([[span.start_ns, span.device_end_ns]])
    return Claim(intervals.difference(whole, kernels(trace).intervals), ALL, "All idle time.")


def advised(trace: Trace, claim: Claim, severity: Severity | None = None) -> Outcome:
    """Return the outcome of a rule with this claim alone."""

    def check(_trace: Trace, _options: NoOptions) -> Iterable[Finding]:
        yield Finding(message="It is slow.", severity=severity, claims=(claim,))

    rule = Rule(
        id="slow",
        title="slow",
        category="fake",
        why="Because.",
        detects="All.",
        saving="All.",
        effort="flag",
        risk="none",
        fix=Fix(summary="Do it."),
        options=NoOptions(),
        check=check,
    )
    [outcome] = rule_outcomes(trace, [rule])
    return outcome


def claim_of(outcome: Outcome) -> ClaimReport:
    assert outcome.claim is not None
    return outcome.claim


ONLY_UNRECORDED = (
    "It is slow. Holds only without the profiler: as recorded, the host hardly waits for the GPU."
)
ONLY_RECORDED = (
    "It is slow. Holds only as recorded: without the profiler, it saves less than 1 % of the step."
)


def test_a_saving_that_an_estimate_alone_shows_is_of_low_confidence() -> None:
    trace = on_device()
    outcome = advised(trace, kernels(trace))
    claim = claim_of(outcome)
    assert (outcome.severity, outcome.confidence) == ("info", "low")
    assert (claim.decisive_step, claim.holds_in) == ("recorded", "unrecorded")
    assert outcome.message == ONLY_UNRECORDED
    assert claim.share < INFO_SHARE < 0.05 < (claim.unrecorded_share or 0)


@pytest.mark.parametrize("is_unslowed", [False, True])
def test_recording_may_slow_the_claimed_time_by_its_events_alone(is_unslowed: bool) -> None:  # noqa: FBT001
    """Steps of 200 operators of 5 us and 1 ms of other work, which take 1.5 ms unrecorded."""
    body = [{"repeat": 200, "body": [{"op": "aten::add", "us": 5}]}, {"host": 1000}]
    document = tracebuild.document(
        schedule={"machine": "cpu", "actions": [{"steps": 4, "body": body}]}
    )
    trace = trace_of(document=document | measured(1_500_000))
    calls = trace.host_calls[trace.host_calls["is_operator"]]
    times = intervals.union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    claim = claim_of(advised(trace, Claim(times, ALL, "All.", is_unslowed=is_unslowed)))
    local_ns = 200 * costs.LOCAL_PART * costs.OPERATOR.ns
    slowed = 1 if is_unslowed else unrecorded_world(trace).host_factor
    assert claim.high_ns == 1_000_000
    assert claim.unrecorded_high_ns == pytest.approx(slowed * (1e6 - local_ns), rel=0.002)


@pytest.mark.parametrize("stated", [None, "critical", "info"])
def test_a_saving_in_measured_steps_counts_as_any_other(stated: Severity | None) -> None:
    trace = on_device(median_share=0.95)
    outcome = advised(trace, kernels(trace), stated)
    claim = claim_of(outcome)
    assert (outcome.severity, outcome.confidence) == (stated or "warning", "high")
    assert (claim.decisive_step, claim.holds_in) == ("unrecorded", "unrecorded")
    assert claim.decisive.high_ns == claim.unrecorded_high_ns
    assert claim.decisive.share == pytest.approx(claim.decisive.high_ns / 1_900_000, rel=0.01)
    assert outcome.message == ONLY_UNRECORDED


@pytest.mark.parametrize("median_share", [None, 0.95])
@pytest.mark.parametrize("stated", [None, "critical"])
def test_a_saving_of_the_recorded_step_alone_is_less_certain(
    median_share: float | None, stated: Severity | None
) -> None:
    trace = on_device(median_share)
    outcome = advised(trace, gaps(trace), stated)
    claim = claim_of(outcome)
    assert (outcome.severity, outcome.confidence) == ("info", "medium")
    assert (claim.decisive_step, claim.holds_in) == ("unrecorded", "recorded")
    assert claim.decisive.high_ns < 0.02 * claim.high_ns
    assert outcome.message == ONLY_RECORDED


def test_a_saving_in_both_steps_is_said_without_condition() -> None:
    trace = on_device(median_share=1.0)
    outcome = advised(trace, gaps(trace))
    claim = claim_of(outcome)
    assert (outcome.severity, outcome.confidence, outcome.message) == (
        "info",
        "high",
        "It is slow.",
    )
    assert claim.decisive.high_ns == claim.unrecorded_high_ns
    assert claim.unrecorded_high_ns == pytest.approx(claim.high_ns, rel=0.05)


@pytest.mark.parametrize(
    ("decisive_step", "steps_differ", "expected"),
    [
        ("recorded", False, "saves 2.00–8.00 ms per step (2.0–8.0 %)"),
        (
            "recorded",
            True,
            "saves 2.00–8.00 ms per step (2.0–8.0 %); in a step without the profiler 1.00–6.00 ms",
        ),
        (
            "unrecorded",
            True,
            "saves 1.00–6.00 ms per unrecorded step (1.3–7.5 %); as recorded 2.00–8.00 ms",
        ),
    ],
)
def test_the_decisive_saving_is_said_first_then_another_one_that_differs(
    decisive_step: TimedStep,
    steps_differ: bool,  # noqa: FBT001
    expected: str,
) -> None:
    claim = ClaimReport(
        low_ns=2_000_000,
        high_ns=8_000_000,
        share=0.08,
        net_low_ns=1_000_000,
        net_high_ns=5_000_000,
        net_share=0.05,
        method="",
        unrecorded_low_ns=1_000_000,
        unrecorded_high_ns=6_000_000,
        unrecorded_share=0.075,
        steps_differ=steps_differ,
        decisive_step=decisive_step,
    )
    trace = on_device()
    outcome = msgspec.structs.replace(advised(trace, gaps(trace)), claim=claim)
    assert advice_phrases.savings(AdviceItem(outcome=outcome), "per step") == expected
