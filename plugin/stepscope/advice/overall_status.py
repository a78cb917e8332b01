"""Where a recording stands when all rules have spoken: four states, each with its numbers."""

from collections.abc import Sequence

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.health import doubts
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count, share
from stepscope.base.report import OverallStatus
from stepscope.model import intervals
from stepscope.model.trace import Trace

SERIOUS = ("critical", "warning")
WORTH_FIXING = 0.05
"""Of the time: from here on a finding is a warning."""
JUDGES = {"communication": "exposed-communication", "dataloader": "dataloader-bound"}
"""Category of the step to the rule that tells whether its time is lost."""


def overall_status(trace: Trace, outcomes: Sequence[Outcome]) -> OverallStatus:
    """Return whether there is something to change, nothing, nothing to judge, or no telling."""
    found = [each for each in outcomes if each.status == "found"]
    serious = [each for each in found if each.severity in SERIOUS]
    if serious:
        return OverallStatus(state="found", message=f"{count(len(serious), 'thing')} to change.")
    looked = _with(outcomes, "passed", "rejected", "found", "suppressed")
    blind = _with(outcomes, "cannot-tell", "failed")
    if not looked and not blind:
        return OverallStatus(
            state="not-applicable",
            message="The recording has nothing that any rule is about.",
        )
    if reason := _blinding(trace, looked, blind):
        return OverallStatus(
            state="cannot-tell",
            message=(
                f"{count(len(looked), 'rule')} could look and found nothing that costs 5 % or "
                f"more; {count(len(blind), 'rule')} could not{reason}."
            ),
        )
    aside = sum(each.status == "suppressed" for each in outcomes)
    text = _healthy(trace, len(looked), len(blind), found)
    if aside:
        text += (
            f" Beside that, {count(aside, 'finding')} {'was' if aside == 1 else 'were'} put aside."
        )
    return OverallStatus(state="healthy", message=text)


def _with(outcomes: Sequence[Outcome], *statuses: str) -> set[str]:
    return {each.rule for each in outcomes if each.status in statuses}


def _blinding(trace: Trace, looked: set[str], blind: set[str]) -> str:
    """Say why nothing can be told on the whole; empty where it can."""
    if damage := doubts(trace, ("device times", "steps"), "withheld"):
        return f": {damage[0].message}"
    steps = step_breakdown(trace)
    for category, time_ns in steps.mean_parts_ns.items():
        part = time_ns / max(1, steps.mean_ns)
        if JUDGES.get(category) in blind and part >= WORTH_FIXING:
            return f", {JUDGES[category]} among them: {category} is {share(part)} of the time"
    return ", for what was not recorded" if len(blind) > len(looked) else ""


def _healthy(trace: Trace, looked: int, blind: int, hints: Sequence[Outcome]) -> str:
    is_sure = all(each.claim is None or each.claim.net_share < WORTH_FIXING for each in hints)
    text = f"{count(looked, 'rule')} looked and found nothing that "
    text += "costs 5 % or more." if is_sure else "is sure to cost 5 % or more."
    device, within = main_device(trace), window(trace)
    if device is not None and within.device_duration_ns > 0:
        busy = intervals.duration_ns(device.busy) / within.device_duration_ns
        text += f" The {trace.dialect.device} is busy {share(busy)}."
    if hints:
        smaller = "smaller" if is_sure else "smaller or less certain"
        text += f" {count(len(hints), f'{smaller} thing')} would still help."
    if blind:
        text += f" {count(blind, 'rule')} could not look, for what was not recorded."
    return text
