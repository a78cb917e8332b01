"""The advice on one trace: all that remains of it when its events are released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from stepscope.advice.advised_findings import findings_by
from stepscope.advice.outcome_order import order
from stepscope.advice.outlook import outlook, outlook_withheld, potential_saving
from stepscope.advice.overall_status import SERIOUS, overall_status
from stepscope.advice.parts import Parts
from stepscope.advice.savings import ResolvedFinding, Share
from stepscope.advice.settings import (
    DEFAULT,
    AdviceSettings,
    Changes,
    available_rules,
    selected_rules,
)
from stepscope.advice.step_summary import (
    is_device_bound,
    is_processor_bound,
    step_summary,
    summary_with_ending,
)
from stepscope.advice.trace_report import worker_report
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.health._check import shorten
from stepscope.analyses.health.incidents import lost_events
from stepscope.analyses.host.breakdown import cpu_compute_time
from stepscope.analyses.host.phase_costs import PhaseCost, largest_phase
from stepscope.analyses.host.phase_names import COLLECTIVES, LOADING
from stepscope.analyses.steps.step_breakdown import (
    CATEGORIES,
    exclusive_times,
    step_breakdown,
    whole_parts,
)
from stepscope.base.findings import Outcome
from stepscope.base.formatting import duration, duration_range, share
from stepscope.base.report import BudgetLine, PotentialSaving, WorkerReport
from stepscope.base.urls import redacted
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Rule
from stepscope.rules.shared.step_phases import phase_takes

OPERATORS_NAMED = 2
CATEGORIZED = (LOADING, COLLECTIVES)
"""Phases that are categories of the step as well, which the summary names."""


def advised_verdict(trace: Trace, findings: Sequence[ResolvedFinding]) -> str:
    """Return the first sentence of the advice on a trace.

    It names the first cause of the advice. Without a serious finding it names a phase
    that training does not need; without one, where the device (or the processor) is the limit, it
    says so and names what takes most of its time.
    """
    costly = [finding for finding in findings if _saving_ns(finding) and finding.rule.culprit]
    serious = [finding for finding in costly if finding.outcome.severity in SERIOUS]
    phase = largest_phase(trace)
    if (
        phase is None
        and is_device_bound(trace)
        and all(_is_device_work(finding) for finding in serious)
    ):
        limit = "the loop keeps it busy, and only its own work can become faster"
        return summary_with_ending(trace, f"{limit}: {_device_work(trace, costly)}")
    if serious:
        worst = min(serious, key=lambda finding: order(finding.outcome))
        return summary_with_ending(trace, f"{worst.rule.culprit} alone costs {_cost(worst)} of it")
    return _verdict_without_findings(trace, phase)


def _verdict_without_findings(trace: Trace, phase: PhaseCost | None) -> str:
    if phase is not None and phase.phase not in CATEGORIZED:
        takes = phase_takes(trace, phase)
        passes = "forward, backward and optimizer" if is_training(trace) else "the model"
        return summary_with_ending(trace, f"besides {passes}, {takes}")
    if phase is None and is_processor_bound(trace):
        healthy = "" if lost_events(trace) else ", and the loop is healthy"
        limit = f"computing on the CPU is the limit{healthy}"
        return summary_with_ending(trace, f"{limit}: {_operators(trace)}")
    return step_summary(trace)


def _operators(trace: Trace) -> str:
    """Return the operators that compute most, with their fraction of the time."""
    (name, part), *more = list(cpu_compute_time(trace).shares.items())[:OPERATORS_NAMED]
    others = "".join(f", {shorten(other)} {share(fraction)}" for other, fraction in more)
    return f"{shorten(name)} takes {share(part)} of it{others}"


def _cost(finding: ResolvedFinding) -> str:
    claim = finding.outcome.claim
    return duration_range(claim.decisive.low_ns, claim.decisive.high_ns) if claim else duration(0)


def _is_device_work(finding: ResolvedFinding) -> bool:
    return all(part.is_device_work for part in finding.shares if part.high_ns)


def _saving_ns(finding: ResolvedFinding) -> int:
    claim = finding.outcome.claim
    return claim.decisive.high_ns if claim is not None else 0


def _device_work(trace: Trace, hints: Sequence[ResolvedFinding]) -> str:
    """Return the largest hint's cost, or the device's largest kernel."""
    if hints:
        best = max(hints, key=_saving_ns)
        return f"{best.rule.culprit} costs {_cost(best)}"
    table = kernel_table(trace, "name")
    top = table.iloc[int(table["total_ns"].to_numpy().argmax())]
    name, fraction = shorten(str(top["name"])), share(float(top["kernel_share"]))
    return f"{name} takes {fraction} of its kernels' time"


NO_CHANGES = Changes()


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceAdvice:
    """The report and outcomes of one trace, and its summary for rules over the run."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankSummary | None = None


def advise_trace(trace: Trace, settings: AdviceSettings = DEFAULT) -> TraceAdvice:
    """Return the advice on one trace; `settings` are those of its run (`for_run`).

    Raises:
        UsageError: the settings name an unknown rule or option.
    """
    rules = available_rules(has_packages=settings.has_packages)
    changes = settings.for_trace(is_training=is_training(trace))
    return advise_trace_by(trace, selected_rules(changes, rules), changes)


def advise_trace_by(
    trace: Trace, rules: Sequence[Rule[Any]], changes: Changes = NO_CHANGES
) -> TraceAdvice:
    """Return the advice of some rules on one trace."""
    advised = findings_by(trace, rules, changes)
    findings = advised.findings
    parts = Parts(redacted(trace.path) or trace.worker)
    saving = parts.of(
        "The saving of all findings together", lambda: potential_saving(trace, findings), None
    )
    withheld = partial(outlook_withheld, trace, findings)
    worker = msgspec.structs.replace(
        worker_report(trace, rules),
        budget=parts.of("The time budget", lambda: time_budget(trace, findings, saving), ()),
        saving=saving,
        standing=parts.of(
            "The overall status", lambda: overall_status(trace, advised.outcomes, rules), None
        ),
        verdict=parts.of("The first sentence", lambda: advised_verdict(trace, findings), ""),
        is_training=is_training(trace),
        outlook=parts.of("The outlook", lambda: outlook(trace, findings), None),
        outlook_withheld=parts.of("The reason for no outlook", withheld, ""),
    )
    part = parts.of("The comparison with other ranks", lambda: rank_summary(trace), None)
    return TraceAdvice(worker=parts.with_failures(worker), outcomes=advised.outcomes, part=part)


# The time budget

Saving = tuple[float, float]
"""Least and most nanoseconds."""


def time_budget(
    trace: Trace, findings: Sequence[ResolvedFinding], saving: PotentialSaving | None
) -> tuple[BudgetLine, ...]:
    """Return the parts of the mean step, which sum to it, with the potential saving of each.

    The savings of the parts sum to `saving`, that of all findings.
    """
    steps, times = step_breakdown(trace), exclusive_times(trace)
    parts_ns = {category: ns for category, ns in steps.mean_parts_ns.items() if ns}
    savings = [_savings(findings, times[category]) for category in parts_ns]
    room = np.array(list(parts_ns.values()), dtype=np.int64)
    high_ns = _spread(saving.high_ns if saving else 0, [_sum(of, 1) for of in savings], room)
    low_ns = _spread(saving.low_ns if saving else 0, [_sum(of, 0) for of in savings], high_ns)
    return tuple(
        BudgetLine(
            category=category,
            label=CATEGORIES[category][0],
            meaning=CATEGORIES[category][1],
            time_ns=time_ns,
            share=time_ns / steps.mean_ns,
            recoverable_low_ns=int(low),
            recoverable_high_ns=int(high),
            rules=tuple(sorted(of, key=lambda rule, of=of: -of[rule][1])),  # type: ignore[misc]
        )
        for (category, time_ns), of, low, high in zip(
            parts_ns.items(), savings, low_ns, high_ns, strict=True
        )
    )


def _sum(savings: Mapping[str, Saving], end: int) -> int:
    return round(sum(saving[end] for saving in savings.values()))


def _spread(total_ns: int, weights: Sequence[int], room_ns: Ints) -> Ints:
    """Divide a total by weights, at most each part's room.

    What exceeds it goes to the other parts with a weight, then to all.
    """
    weight, total_ns = np.array(weights, dtype=np.int64), min(total_ns, int(room_ns.sum()))
    parts = np.minimum(whole_parts(weight, total_ns), room_ns)
    for has_room in (weight > 0, weight >= 0):
        room = np.where(has_room, room_ns - parts, 0)
        parts = parts + whole_parts(room, min(total_ns - int(parts.sum()), int(room.sum())))
    return np.asarray(parts)


def _savings(findings: Sequence[ResolvedFinding], times: Intervals) -> dict[str, Saving]:
    """Return, for each rule, the saving within some times."""
    savings: dict[str, Saving] = {}
    for finding in findings:
        for part in finding.shares:
            low, high = savings.get(finding.rule.id, (0.0, 0.0))
            more_low, more_high = _saving(part, times)
            savings[finding.rule.id] = (low + more_low, high + more_high)
    return {rule: saving for rule, saving in savings.items() if saving[1] > 0}


def _saving(share: Share, times: Intervals) -> Saving:
    high = share.high * intervals.duration_ns(intervals.intersection(share.times, times))
    low = share.low * intervals.duration_ns(intervals.intersection(share.low_times, times))
    return min(low, high), high
