"""The potential saving of all fixes together, and the step with the first ones and its limit then.

The first fixes are those that the advice lists first. Both are ranges, as savings are: the changes
of all fixes that save most, and those that save least. Where the recorder measured unrecorded
steps, they are of the unrecorded step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from stepscope.advice.fixes import Fix, FixedWindow, fixed_window, fixes_of
from stepscope.advice.outcome_order import order
from stepscope.advice.outlook_sentences import with_message
from stepscope.advice.savings import ResolvedFinding
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.findings import ClaimReport, DecisiveSaving
from stepscope.base.report import Outlook, PotentialSaving
from stepscope.model.trace import Trace
from stepscope.replay.limits import limit_of
from stepscope.replay.simulation import Simulation
from stepscope.rules import INFO_SHARE
from stepscope.rules.shared.claimable_time import alone, unchanged, unrecorded

MOST_FIXES = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class _World:
    """The step without fixes, as recorded or without the profiler."""

    name: Literal["recorded", "unrecorded"]
    now_ns: int
    begin: Simulation

    @property
    def scale(self) -> float:
        """Nanoseconds of a step for a nanosecond of the simulated window."""
        return self.now_ns / max(1, self.begin.simulated_ns)


def outlook(trace: Trace, findings: Sequence[ResolvedFinding]) -> Outlook | None:
    """Return the outlook of a trace with these findings; see `WorkerReport.outlook`."""
    fixes = _costly_fixes(findings)
    world = _world(trace) if fixes else None
    if world is None:
        return None
    first = fixes[:MOST_FIXES]
    window = fixed_window(trace, first, world.begin)
    limit = limit_of(trace, window.most, window.times)
    if limit is None:
        return None
    least_ns, most_ns = _saved_together(trace, findings, first, world)
    rule, saving_low_ns, saving_ns = _next(trace, fixes, window, world)
    predicted = Outlook(
        rules=tuple(fix.rule.id for fix in first),
        world=world.name if world.now_ns < step_breakdown(trace).mean_ns else "recorded",
        now_ns=world.now_ns,
        low_ns=world.now_ns - most_ns,
        high_ns=world.now_ns - least_ns,
        limit=limit.part,
        limit_share=limit.share,
        next_rule=rule,
        next_saving_ns=saving_ns,
        next_saving_low_ns=saving_low_ns,
    )
    return with_message(
        predicted,
        {fix.rule.id: fix.rule.title for fix in fixes},
        has_steps=step_breakdown(trace).step_count > 0,
        has_device=main_device(trace) is not None,
    )


def potential_saving(trace: Trace, findings: Sequence[ResolvedFinding]) -> PotentialSaving | None:
    """Return what all fixes save together; None where nothing is saved."""
    savings = [finding.outcome.claim.decisive for finding in findings if finding.outcome.claim]
    saving_rules = {
        finding.rule.id
        for finding in findings
        if finding.outcome.claim and finding.outcome.claim.decisive.high_ns
    }
    fixes = [fix for fix in fixes_of(findings) if fix.rule.id in saving_rules]
    world = _world(trace)
    if not any(saving.high_ns for saving in savings):
        return None
    if world is None:
        low_ns, high_ns = (sum(of) for of in zip(*map(_net, savings), strict=True))
        high_share = min(1.0, sum(saving.net_share for saving in savings))
    else:
        first = _costly_fixes(findings)[:MOST_FIXES]
        sets = (fixes, first) if first else (fixes,)  # more fixes save no less
        together = [_saved_together(trace, findings, of, world) for of in sets]
        low_ns, high_ns = (max(of) for of in zip(*together, strict=True))
        high_share = high_ns / world.now_ns if world.now_ns else 0.0
    if not high_ns:
        return None
    low_share = high_share * low_ns / high_ns
    return PotentialSaving(
        low_ns=low_ns, high_ns=high_ns, low_share=low_share, high_share=high_share
    )


def _saved_together(
    trace: Trace, findings: Sequence[ResolvedFinding], fixes: Sequence[Fix], world: _World
) -> tuple[int, int]:
    """Return the least and the most that fixes save of a step together.

    Of one finding it is its saving. Where a finding's saving is of the other step, because that is
    less, they are the sums of the net savings.
    """
    rules = {fix.rule.id for fix in fixes}
    outcomes = [finding.outcome for finding in findings if finding.rule.id in rules]
    claims = [outcome.claim for outcome in outcomes if outcome.claim is not None]
    if len(claims) == 1 or any(claim.decisive_step != world.name for claim in claims):
        nets = [_net(claim.decisive) for claim in claims]
        low_ns, high_ns = (sum(of) for of in zip(*nets, strict=True))
    else:
        ordered = [fix for fix in fixes_of(findings) if fix.rule.id in rules]  # one order for all
        together = alone(trace, [of for fix in ordered for of in fix.claims], world.name)
        low_ns, high_ns = (round(of * world.scale) for of in together)
    high_ns = min(world.now_ns, high_ns)
    return min(low_ns, high_ns), high_ns


def _net(saving: DecisiveSaving) -> tuple[int, int]:
    return saving.net_low_ns, saving.net_high_ns


def outlook_withheld(trace: Trace, findings: Sequence[ResolvedFinding]) -> str:
    """Return the reason for withholding the outlook although findings save time."""
    reason = unchanged(trace).reason
    return reason if reason and _costly_fixes(findings) else ""


def _costly_fixes(findings: Sequence[ResolvedFinding]) -> list[Fix]:
    """Return the fixes that save enough for a finding, in the order of the advice."""
    fixes = {fix.rule.id: fix for fix in fixes_of(findings)}
    saved: dict[str, float] = {}
    for claim, rule in _claims_in_order(findings):
        saved[rule] = saved.get(rule, 0.0) + claim.decisive.ranked_share
    return [fixes[rule] for rule, share in saved.items() if share >= INFO_SHARE]


def _claims_in_order(findings: Sequence[ResolvedFinding]) -> Iterator[tuple[ClaimReport, str]]:
    for outcome in sorted((finding.outcome for finding in findings), key=order):
        if outcome.claim is not None:
            yield outcome.claim, outcome.rule


def _world(trace: Trace) -> _World | None:
    recorded, measured = unchanged(trace).simulation, measured_steps(trace)
    if recorded is None:
        return None
    without_profiler = unrecorded(trace) if measured else None
    mean_ns = step_breakdown(trace).mean_ns
    if measured is None or without_profiler is None:
        return _World(name="recorded", now_ns=mean_ns, begin=recorded)
    now_ns = min(measured.step_ns, mean_ns)  # longer than recorded by chance: that is simulated
    return _World(name="unrecorded", now_ns=now_ns, begin=without_profiler)


def _next(
    trace: Trace, fixes: Sequence[Fix], window: FixedWindow, world: _World
) -> tuple[str, int, int]:
    """Return the fix after the first ones, if it saves enough, and the least and most it saves."""
    if len(fixes) <= MOST_FIXES:
        return "", 0, 0
    more = fixed_window(trace, fixes[: MOST_FIXES + 1], world.begin)
    saved_ns = round((window.most.simulated_ns - more.most.simulated_ns) * world.scale)
    least_ns = round((window.least.simulated_ns - more.least.simulated_ns) * world.scale)
    if saved_ns < max(1, INFO_SHARE * world.now_ns):
        return "", 0, 0
    return fixes[MOST_FIXES].rule.id, min(max(0, least_ns), saved_ns), saved_ns
