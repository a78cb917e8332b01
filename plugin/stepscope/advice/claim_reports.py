"""Reports of claims: the savings of a finding in the recorded step and without the profiler."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.advice.rule_finding import RuleFinding
from stepscope.analyses.core.window import complete_steps, window
from stepscope.base.findings import ClaimReport
from stepscope.base.formatting import duration, number_ranges
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim
from stepscope.rules.shared import step_savings
from stepscope.rules.shared.claimable_time import unchanged, usable_times
from stepscope.rules.shared.step_savings import StepShares


@dataclass(frozen=True, kw_only=True)
class Saving:
    """Saving of a finding in the window, in nanoseconds."""

    alone_ns: float
    """The most that it saves without the other findings."""
    low_ns: float
    high_ns: float
    """The least and the most after the fixes of the earlier findings; at most `alone_ns`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StepSavings:
    """Savings of a finding in the window as recorded, and without the profiler."""

    shares: StepShares
    """The greatest savings, as fractions of either step."""
    recorded: Saving
    unrecorded: Saving | None
    """None where no replay describes the trace."""

    @property
    def decisive(self) -> Saving:
        """The saving in the decisive step."""
        is_recorded = self.shares.decisive_step == "recorded"
        return self.recorded if is_recorded or self.unrecorded is None else self.unrecorded


def step_savings_of(trace: Trace, recorded: Saving, unrecorded: Saving | None) -> StepSavings:
    """Return savings in both steps with their fractions."""
    without_profiler_ns = unrecorded and unrecorded.high_ns
    shares = step_savings.shares(trace, recorded.high_ns, without_profiler_ns)
    return StepSavings(shares=shares, recorded=recorded, unrecorded=unrecorded)


def claim_report(
    trace: Trace,
    finding: RuleFinding,
    savings: StepSavings,
    times: Intervals,
    earlier: Sequence[tuple[str, Intervals]],
) -> ClaimReport:
    """Return the report of a finding's claims.

    `times` are those that no earlier finding claims; `earlier` has the times of each earlier rule.
    """
    span, recorded, unrecorded = window(trace), savings.recorded, savings.unrecorded
    claims, per_step = finding.finding.claims, span.per_step
    methods = [claim.method for claim in claims if claim.method]
    takers: dict[str, None] = {}
    lost_ns = savings.decisive.alone_ns - savings.decisive.high_ns
    if round(savings.decisive.high_ns) < round(savings.decisive.alone_ns):
        takers = _takers(trace, claims, earlier)
        methods.append(f"{duration(per_step(lost_ns))} of it is counted under {', '.join(takers)}.")
    if reason := unchanged(trace).reason:
        methods.append(f"Not simulated, and therefore at most this sum of times: {reason}.")
    return ClaimReport(
        gross_ns=per_step(recorded.alone_ns),
        net_low_ns=per_step(recorded.low_ns),
        net_high_ns=per_step(recorded.high_ns),
        net_share=savings.shares.recorded,
        method=" ".join(methods),
        steps=_steps(trace, times),
        counted_under=tuple(takers),
        unrecorded_gross_ns=unrecorded and per_step(unrecorded.alone_ns),
        unrecorded_low_ns=unrecorded and per_step(unrecorded.low_ns),
        unrecorded_high_ns=unrecorded and per_step(unrecorded.high_ns),
        unrecorded_share=savings.shares.unrecorded,
        is_measured=savings.shares.is_measured,
        steps_differ=savings.shares.differ,
        decisive_step=savings.shares.decisive_step,
        holds_in=finding.holds_in(trace),
    )


def one_step_only(trace: Trace, finding: RuleFinding) -> str:
    """Return a sentence on a finding that saves time in one of the two steps only, else nothing."""
    holds_in, claims = finding.holds_in(trace), finding.finding.claims
    if holds_in == "recorded":
        return " Holds only as recorded: without the profiler, it saves less than 1 % of the step."
    if holds_in != "unrecorded":
        return ""
    if all(claim.is_device_work for claim in claims):
        reason = f"the host hardly waits for the {trace.dialect.device}"
    else:
        reason = "it saves less than 1 % of the step"
    return f" Holds only without the profiler: as recorded, {reason}."


def _takers(
    trace: Trace, claims: Iterable[Claim], earlier: Sequence[tuple[str, Intervals]]
) -> dict[str, None]:
    """Return the earlier rules whose claims share time with these; else all of them."""
    whole = intervals.merged(*(usable_times(trace, claim) for claim in claims))
    sharing = {rule: None for rule, times in earlier if len(intervals.intersection(whole, times))}
    return sharing or {rule: None for rule, _ in earlier}


def _steps(trace: Trace, times: Intervals) -> str:
    """Return the numbers of the steps that contain some of the times: `3-9, 12`."""
    steps = complete_steps(trace).steps
    starts = steps["start_ns"].to_numpy()
    if not len(starts):
        return ""
    ends = np.append(starts[1:], window(trace).device_end_ns)
    is_covered = intervals.covered_ns(times, starts, ends) > 0
    return number_ranges(steps["number"].to_numpy()[is_covered].tolist())
