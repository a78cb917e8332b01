"""What `text` and `markdown` both say: savings, evidence, names, and in which order."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepscope import quantities
from stepscope.report import (
    Confidence,
    EventReference,
    Evidence,
    HealthItem,
    HealthReport,
    Outcome,
    Report,
    RunReport,
    Status,
    Unit,
    WorkerReport,
)

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a trace could hold to move a terminal's cursor, or to turn text around."""
AS_TEXT: dict[Unit, Callable[[float], str]] = {
    "ns": quantities.duration,
    "bytes": quantities.size,
    "bytes/s": lambda rate: f"{quantities.size(rate)}/s",
    "share": quantities.share,
}
EVENTS_SHOWN = 3
CONFIDENCE: dict[Confidence, str] = {
    "high": "high confidence",
    "medium": "medium confidence",
    "low": "low confidence",
}
REST: dict[Status, str] = {
    "not-applicable": "Not applicable",
    "failed": "Failed",
    "suppressed": "Suppressed",
}
"""Outcomes that are told in brief, with their reason."""
NOTHING_FOUND = "No rule found anything to fix."


@dataclass(frozen=True, kw_only=True)
class WorkerAdvice:
    """One recording with what was said of it."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]

    def of(self, status: Status) -> tuple[Outcome, ...]:
        """Return the outcomes with this status."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == status)

    @property
    def per(self) -> str:
        """What its savings are counted over."""
        return "a step" if self.worker.step.count else "in all"


def by_worker(run: RunReport) -> tuple[WorkerAdvice, ...]:
    """Return a run's recordings, each with its own outcomes."""
    return tuple(
        WorkerAdvice(
            worker=worker,
            outcomes=tuple(outcome for outcome in run.outcomes if outcome.trace == worker.trace),
        )
        for worker in run.workers
    )


def plain(text: str) -> str:
    """Return text that comes from a trace without what could act on a terminal."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def recording(worker: WorkerReport) -> str:
    """Say which recording this is, and what it holds."""
    rank = f", rank {worker.rank}" if worker.rank is not None else ""
    origin = " · synthetic: written by stepscope, not recorded" if worker.synthetic else ""
    events = quantities.count(worker.events, "event")
    return plain(f"{worker.name}{rank}, span {worker.span} · {events} · {worker.dialect}{origin}")


def breakdown(worker: WorkerReport) -> str:
    """Say where the mean step went, the largest part first."""
    parts = sorted(worker.step.breakdown_ns.items(), key=lambda part: -part[1])
    total = worker.step.mean_ns
    return " · ".join(
        f"{name} {quantities.share(part / total)}" for name, part in parts if part and total
    )


def saving(outcome: Outcome, per: str) -> str:
    """Say what a finding could save; empty where it claims nothing."""
    claim = outcome.claim
    if claim is None or claim.net_high_ns <= 0:
        return ""
    high, low = quantities.duration(claim.net_high_ns), quantities.duration(claim.net_low_ns)
    least = f", at least {low}" if 0 < claim.net_low_ns < claim.net_high_ns else ""
    return f"saves up to {high} {per} ({quantities.share(claim.net_share)}){least}"


def value(value: float | str, unit: Unit) -> str:
    """Return a piece of evidence's value with its unit."""
    if isinstance(value, str):
        return plain(value)
    if unit in AS_TEXT:
        return AS_TEXT[unit](value)
    return f"{value:,}" if isinstance(value, int) else quantities.significant(value)


def evidence(fact: Evidence) -> tuple[str, str]:
    """Return a fact's label and value."""
    return plain(fact.label), value(fact.value, fact.unit)


def event(reference: EventReference) -> str:
    """Name an event: what, how long, where, when."""
    detail = f": {reference.detail}" if reference.detail else ""
    return plain(
        f"{reference.name}, {quantities.duration(reference.duration_ns)} on {reference.track} "
        f"at {quantities.duration(reference.start_ns)}{detail}"
    )


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why some rules have no answer, and the line of code that would give them one."""

    rules: tuple[str, ...]
    text: str
    remedy: str


def reasons(outcomes: Iterable[Outcome]) -> tuple[Reason, ...]:
    """Return each reason once, with all rules that give it."""
    rules: dict[tuple[str, str], list[str]] = {}
    for outcome in outcomes:
        rules.setdefault((outcome.reason or "", outcome.remedy or ""), []).append(outcome.rule)
    return tuple(
        Reason(rules=tuple(names), text=sentences(text), remedy=plain(remedy))
        for (text, remedy), names in rules.items()
    )


def problems(report: Report | HealthReport) -> tuple[str, ...]:
    """Return a line for each file that could not be read."""
    return tuple(
        sentences(f"{problem.path}: {problem.message}", problem.remedy)
        for problem in report.problems
    )


@dataclass(frozen=True, kw_only=True)
class Passed:
    """Rules that found nothing, and what of the recording puts that in doubt."""

    rules: tuple[str, ...]
    why: str
    """Empty where nothing does."""

    @property
    def label(self) -> str:
        """What to call them."""
        return f"Passed{', but doubtful' if self.why else ''} ({len(self.rules)})"


def passed(outcomes: Iterable[Outcome]) -> tuple[Passed, ...]:
    """Return the rules that found nothing, those without a doubt first."""
    rules: dict[str, list[str]] = {"": []}
    for outcome in outcomes:
        rules.setdefault(doubt(outcome), []).append(outcome.rule)
    return tuple(Passed(rules=tuple(names), why=why) for why, names in rules.items() if names)


def doubt(outcome: Outcome) -> str:
    """Say what of the recording is damaged that an answer rests on; empty where nothing is."""
    return sentences(*map(capitalised, outcome.doubts))


def health(item: HealthItem) -> str:
    """Say what was found, what was done about it, and what to do."""
    done = f"; {item.action}" if item.action else ""
    return sentences(f"{item.message}{done}", item.remedy)


def capitalised(text: str) -> str:
    """Return a text that begins as sentences do."""
    return text[:1].upper() + text[1:]


def sentences(*texts: str) -> str:
    """Return texts one after the other, each with a full stop where it ends without."""
    stripped = [plain(text.strip()) for text in texts if text.strip()]
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in stripped)
