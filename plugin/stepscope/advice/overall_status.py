"""The overall status of a trace after all rules: one of four states, with its numbers."""

from collections.abc import Iterable, Sequence
from typing import Any

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.health import doubts
from stepscope.analyses.health.incidents import lost_events
from stepscope.analyses.host.phase_costs import largest_phase
from stepscope.analyses.host.phase_names import COLLECTIVES, COMPILING, LOADING
from stepscope.analyses.settings.tensor_values import RECORD as RECORD_VALUES
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, share
from stepscope.base.report import OverallStatus
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import WARNING_SHARE, Rule
from stepscope.rules.shared.step_phases import phase_takes

JUDGED = (LOADING, COLLECTIVES, COMPILING, "numpy", "pandas", "garbage")
"""Phases that have rules of their own: where these find nothing, nothing is to be saved."""
SERIOUS = ("critical", "warning")


def overall_status(
    trace: Trace, outcomes: Sequence[Outcome], rules: Iterable[Rule[Any]]
) -> OverallStatus:
    """Return whether a trace has findings, is healthy, inconclusive, or nothing applies."""
    findings = [outcome for outcome in outcomes if outcome.status == "found"]
    serious = sum(outcome.severity in SERIOUS for outcome in findings)
    if serious:
        return OverallStatus(state="found", message=f"{count(serious, 'thing')} to change.")
    judged = _rules_with(outcomes, "passed", "rejected", "found", "suppressed")
    open_rules = _rules_with(outcomes, "cannot-tell", "failed")
    if not judged and not open_rules:
        return OverallStatus(state="not-applicable", message="No rule applies to this trace.")
    if message := _inconclusive(trace, judged, open_rules - _without_values(outcomes), rules):
        return OverallStatus(state="cannot-tell", message=message)
    text = _healthy(trace, len(judged), len(open_rules), findings)
    if suppressed := sum(outcome.status == "suppressed" for outcome in outcomes):
        verb = "is" if suppressed == 1 else "are"
        text += f" {count(suppressed, 'more finding')} {verb} suppressed."
    return OverallStatus(state="healthy", message=text)


def _rules_with(outcomes: Sequence[Outcome], *statuses: str) -> set[str]:
    return {outcome.rule for outcome in outcomes if outcome.status in statuses}


def _without_values(outcomes: Sequence[Outcome]) -> set[str]:
    """Return the rules that need values of tensors, which most recordings lack."""
    return {outcome.rule for outcome in outcomes if outcome.remedy == RECORD_VALUES}


def _inconclusive(
    trace: Trace, judged: set[str], open_rules: set[str], rules: Iterable[Rule[Any]]
) -> str:
    """Return why the trace cannot be called healthy; empty where it can."""
    if reason := _inconclusive_reason(trace, judged, open_rules, rules):
        return (
            f"{count(len(judged), 'check')} found nothing that costs 5 % or more; "
            f"{count(len(open_rules), 'check')} could not be made{reason}."
        )
    phase = largest_phase(trace)
    if phase is None or phase.phase in JUDGED:
        return ""
    return (
        f"{count(len(judged), 'check')} found no cause that costs 5 % or more, but "
        f"{phase_takes(trace, phase)}."
    )


def _inconclusive_reason(
    trace: Trace, judged: set[str], open_rules: set[str], rules: Iterable[Rule[Any]]
) -> str:
    """Return the reason that the trace as a whole is inconclusive; empty where it is not."""
    withheld = doubts(trace, ("device times", "steps"), "withheld")
    if damage := (*withheld, *lost_events(trace)):
        return f": {damage[0].message}"
    steps = step_breakdown(trace)
    for rule in rules:
        part = steps.mean_parts_ns.get(rule.judges, 0) / max(1, steps.mean_ns)
        if rule.id in open_rules and part >= WARNING_SHARE:
            return f", including {rule.id}: {rule.judges} is {share(part)} of the time"
    return ": data was not recorded" if len(open_rules) > len(judged) else ""


def _healthy(trace: Trace, judged: int, open_count: int, hints: Sequence[Outcome]) -> str:
    is_sure = all(hint.claim is None or hint.claim.decisive.share < WARNING_SHARE for hint in hints)
    certainty = "costs" if is_sure else "certainly costs"
    text = f"{count(judged, 'check')} found nothing that {certainty} 5 % or more."
    device, span = main_device(trace), window(trace)
    if device is not None and span.duration_ns > 0:
        busy = intervals.duration_ns(device.busy) / span.duration_ns
        text += f" The {trace.dialect.device} is busy {share(busy)}."
    if hints:
        size = "smaller" if is_sure else "smaller or less certain"
        text += f" {count(len(hints), f'{size} finding')} would still help."
    if open_count:
        text += f" {count(open_count, 'check')} could not be made: data was not recorded."
    return text
