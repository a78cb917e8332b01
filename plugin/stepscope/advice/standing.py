"""Where a recording stands when all rules have spoken: four states, each with its numbers."""

from collections.abc import Sequence

from stepscope import intervals
from stepscope.analyses.devices.activity import main_device
from stepscope.analyses.health import doubts
from stepscope.analyses.steps.window import window
from stepscope.quantities import count, share
from stepscope.report import Outcome, Standing
from stepscope.trace import Trace

SERIOUS = ("critical", "warning")


def standing(trace: Trace, outcomes: Sequence[Outcome]) -> Standing:
    """Return whether there is something to change, nothing, nothing to judge, or no telling."""
    found = [each for each in outcomes if each.status == "found"]
    serious = [each for each in found if each.severity in SERIOUS]
    if serious:
        return Standing(state="found", message=f"{count(len(serious), 'thing')} to change.")
    looked = _with(outcomes, "passed", "rejected", "found", "suppressed")
    blind = _with(outcomes, "cannot-tell", "failed")
    if not looked and not blind:
        return Standing(
            state="not-applicable",
            message="The recording has nothing that any rule is about.",
        )
    damage = doubts(trace, ("device times", "steps"), "withheld")
    if damage or len(blind) > len(looked):
        return Standing(
            state="cannot-tell",
            message=(
                f"{count(len(looked), 'rule')} could look and found nothing that costs 5 % or "
                f"more; {count(len(blind), 'rule')} could not"
                f"{f': {damage[0].message}' if damage else ', for what was not recorded'}."
            ),
        )
    aside = sum(each.status == "suppressed" for each in outcomes)
    text = _healthy(trace, len(looked), len(blind), len(found))
    if aside:
        text += (
            f" Beside that, {count(aside, 'finding')} {'was' if aside == 1 else 'were'} put aside."
        )
    return Standing(state="healthy", message=text)


def _with(outcomes: Sequence[Outcome], *statuses: str) -> set[str]:
    return {each.rule for each in outcomes if each.status in statuses}


def _healthy(trace: Trace, looked: int, blind: int, hints: int) -> str:
    text = f"{count(looked, 'rule')} looked and found nothing that costs 5 % or more."
    device, within = main_device(trace), window(trace)
    if device is not None and within.device_duration_ns > 0:
        busy = intervals.duration_ns(device.busy) / within.device_duration_ns
        text += f" The {trace.dialect.device} is busy {share(busy)}."
    if hints:
        text += f" {count(hints, 'smaller thing')} would still help."
    if blind:
        text += f" {count(blind, 'rule')} could not look, for what was not recorded."
    return text
