"""Reports of claims: the savings of a finding in the recorded step and without the profiler."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stepscope.advice.example_times import example_times
from stepscope.advice.rule_finding import RuleFinding
from stepscope.analyses.core.window import Window, complete_steps, window
from stepscope.base.findings import ClaimReport
from stepscope.base.formatting import RANGES_SHOWN, Ranges, duration, ranges_of, shown_ranges
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim
from stepscope.rules.shared import step_savings
from stepscope.rules.shared.claimable_time import unchanged, usable_times
from stepscope.rules.shared.step_savings import StepShares, unrecorded_reference_ns

ROUNDING_NS = 1


class StepSaving(NamedTuple):
    """Saving per step: alone, and without what earlier findings save; in nanoseconds."""

    low_ns: int
    high_ns: int
    net_low_ns: int
    net_high_ns: int


@dataclass(frozen=True, kw_only=True)
class Saving:
    """Saving of a finding in the window, in nanoseconds."""

    alone_ns: float
    """The most that it saves without the other findings."""
    low_ns: float
    high_ns: float
    """The least and the most after the fixes of the earlier findings; at most `alone_ns`."""
    alone_low_ns: float = 0.0
    """The least that it saves without the other findings."""
    earlier_ns: float = 0.0
    """The most that counts for the earlier findings."""
    after_fixes_ns: float = 0.0
    """The most that it saves once the earlier findings are fixed: more than `high_ns` where only
    the fixes together shorten the step."""

    def per_step(self, span: Window) -> StepSaving:
        """Return the saving per step.

        Rounding is such that the greatest net savings of all findings sum to that of their sum.
        """
        total_ns = span.per_step(self.earlier_ns + self.high_ns)
        high_ns = total_ns - span.per_step(self.earlier_ns)
        low_ns = min(high_ns, span.per_step(self.low_ns))
        if self.is_all(span):
            return StepSaving(low_ns, high_ns, low_ns, high_ns)
        alone_ns = max(high_ns, span.per_step(self.alone_ns))
        alone_low_ns = min(alone_ns, max(low_ns, span.per_step(self.alone_low_ns)))
        return StepSaving(alone_low_ns, alone_ns, low_ns, high_ns)

    def is_all(self, span: Window) -> bool:
        """Return whether no earlier finding saves some of it; a nanosecond per step is rounding."""
        return span.per_step(self.alone_ns - self.high_ns) <= ROUNDING_NS


@dataclass(frozen=True, kw_only=True, eq=False)
class StepSavings:
    """Savings of a finding in the window as recorded, and without the profiler."""

    shares: StepShares
    """The greatest savings alone, as fractions of either step."""
    net_shares: StepShares
    """The same of the net savings."""
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

    def shares(saved_ns: Callable[[Saving], float]) -> StepShares:
        without_profiler_ns = saved_ns(unrecorded) if unrecorded else None
        return step_savings.shares(trace, saved_ns(recorded), without_profiler_ns)

    return StepSavings(
        shares=shares(lambda saving: max(saving.alone_ns, saving.high_ns)),
        net_shares=shares(lambda saving: saving.high_ns),
        recorded=recorded,
        unrecorded=unrecorded,
    )


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
    span, claims = window(trace), finding.finding.claims
    recorded = savings.recorded.per_step(span)
    unrecorded = savings.unrecorded.per_step(span) if savings.unrecorded else None
    methods = [claim.method for claim in claims if claim.method]
    takers: dict[str, None] = {}
    if earlier and not savings.decisive.is_all(span):
        takers = _takers(trace, claims, earlier)
        lost_ns = savings.decisive.alone_ns - savings.decisive.high_ns
        lost = duration(span.per_step(lost_ns))
        methods.append(f"{lost} of it is counted under {', '.join(takers)}.")
    methods += _after_fixes(trace, savings, earlier)
    steps = _steps(trace, times)
    if reason := unchanged(trace).reason:
        methods.append(f"Not simulated, and therefore at most this sum of times: {reason}.")
    return ClaimReport(
        low_ns=recorded.low_ns,
        high_ns=recorded.high_ns,
        share=savings.shares.recorded,
        net_low_ns=recorded.net_low_ns,
        net_high_ns=recorded.net_high_ns,
        net_share=savings.net_shares.recorded,
        method=" ".join(methods),
        steps=shown_ranges(steps),
        counted_under=tuple(takers),
        unrecorded_low_ns=unrecorded and unrecorded.low_ns,
        unrecorded_high_ns=unrecorded and unrecorded.high_ns,
        unrecorded_share=savings.shares.unrecorded,
        unrecorded_net_low_ns=unrecorded and unrecorded.net_low_ns,
        unrecorded_net_high_ns=unrecorded and unrecorded.net_high_ns,
        unrecorded_net_share=savings.net_shares.unrecorded,
        is_measured=savings.shares.is_measured,
        steps_differ=savings.shares.differ,
        decisive_step=savings.shares.decisive_step,
        holds_in=finding.holds_in(trace),
        example_times=example_times(trace, finding),
        step_ranges=steps if len(steps) <= RANGES_SHOWN else (),
    )


def _after_fixes(
    trace: Trace, savings: StepSavings, earlier: Sequence[tuple[str, Intervals]]
) -> list[str]:
    """Return a sentence on what only the fixes together save, where that is worth one."""
    saving, is_recorded = savings.decisive, savings.decisive is savings.recorded
    whole_ns = window(trace).reference_ns if is_recorded else unrecorded_reference_ns(trace)
    if not earlier or saving.after_fixes_ns - saving.high_ns < INFO_SHARE * whole_ns:
        return []
    names = ", ".join(dict.fromkeys(rule for rule, _ in earlier))
    most = duration(window(trace).per_step(saving.after_fixes_ns))
    where = "" if is_recorded else " of an unrecorded step"
    return [f"After the fixes of {names}, it saves at most {most}{where}."]


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


def _steps(trace: Trace, times: Intervals) -> Ranges:
    """Return the numbers of the steps that contain some of the times."""
    complete = complete_steps(trace)
    if not len(complete):
        return ()
    is_covered = intervals.covered_ns(times, complete.start_ns, complete.end_ns) > 0
    return ranges_of(complete.steps["number"].to_numpy()[is_covered].tolist())
