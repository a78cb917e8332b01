"""What became of advice between two sides, and of the savings that it promised."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.base.findings import Outcome, Severity
from stepscope.comparison.messages import AdviceChange, AdviceStatus, Saving
from stepscope.comparison.samples import Sample
from stepscope.comparison.side import Together, together

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
CHANGED = 0.25
"""Of the larger saving: less is the same advice still."""
ORDER: tuple[AdviceStatus, ...] = ("fixed", "new", "worse", "better", "still", "not-checked")
Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class _Told:
    """A piece of advice on one side: of several recordings, the worst severity, the mean saving."""

    title: str
    severity: Severity
    low_ns: int
    high_ns: int


def subject(outcome: Outcome) -> str:
    """Return what a finding is about, so that it is found again in another recording.

    That is the first piece of its evidence that names something and is linked to it: an operator,
    a kernel, a device.
    """
    for fact in outcome.evidence:
        if fact.link is not None and fact.link.search:
            return fact.link.search
    return ""


def advice_changes(before: Together, after: Together) -> tuple[AdviceChange, ...]:
    """Return every piece of advice that one of the sides has, what was fixed first."""
    told = _told(before), _told(after)
    unchecked = _unchecked(after)
    keys = {**told[0], **told[1]}
    found = [_change(key, told[0].get(key), told[1].get(key), unchecked) for key in keys]
    return tuple(sorted(found, key=_place))


def _place(change: AdviceChange) -> tuple[int, int, str, str]:
    saving = max(change.high_before_ns, change.high_after_ns)
    return ORDER.index(change.status), -saving, change.rule, change.subject


def _told(side: Together) -> dict[Key, _Told]:
    by_rule: dict[str, list[Outcome]] = {}
    for each in side.recordings:
        for outcome in each.advice.outcomes:
            if outcome.status == "found":
                by_rule.setdefault(outcome.rule, []).append(outcome)
    found: dict[Key, list[Outcome]] = {}
    for rule, outcomes in by_rule.items():
        has_many = len({outcome.trace for outcome in outcomes}) < len(outcomes)
        for outcome in outcomes:
            found.setdefault((rule, subject(outcome) if has_many else ""), []).append(outcome)
    count = len(side.recordings)
    return {key: _summary(outcomes, count) for key, outcomes in found.items()}


def _summary(outcomes: Sequence[Outcome], recordings: int) -> _Told:
    claims = [outcome.claim for outcome in outcomes if outcome.claim is not None]
    severities = [outcome.severity or "info" for outcome in outcomes]
    return _Told(
        title=outcomes[0].title,
        severity=max(severities, key=SEVERITIES.index),
        low_ns=round(sum(claim.net_low_ns for claim in claims) / recordings),
        high_ns=round(sum(claim.net_high_ns for claim in claims) / recordings),
    )


def _unchecked(side: Together) -> Mapping[str, str]:
    """Return the rules that no recording of a side could answer, and why."""
    reasons: dict[str, str] = {}
    answered = set()
    for each in side.recordings:
        for outcome in each.advice.outcomes:
            if outcome.status in {"not-applicable", "failed"}:
                reasons.setdefault(outcome.rule, outcome.reason or "")
            else:
                answered.add(outcome.rule)
    return {rule: reason for rule, reason in reasons.items() if rule not in answered}


def _change(
    key: Key, before: _Told | None, after: _Told | None, unchecked: Mapping[str, str]
) -> AdviceChange:
    told = before or after
    rule, about = key
    is_unchecked = after is None and rule in unchecked
    return AdviceChange(
        rule=rule,
        title=told.title if told else "",
        subject=about,
        status="not-checked" if is_unchecked else _status(before, after),
        severity_before=before.severity if before else None,
        severity_after=after.severity if after else None,
        low_before_ns=before.low_ns if before else 0,
        high_before_ns=before.high_ns if before else 0,
        low_after_ns=after.low_ns if after else 0,
        high_after_ns=after.high_ns if after else 0,
        reason=unchecked[rule] if is_unchecked else "",
    )


def _status(before: _Told | None, after: _Told | None) -> AdviceStatus:
    if before is None or after is None:
        return "new" if before is None else "fixed"
    largest = max(before.high_ns, after.high_ns)
    change = after.high_ns - before.high_ns
    if not largest:
        change = SEVERITIES.index(after.severity) - SEVERITIES.index(before.severity)
        largest = 1
    if abs(change) <= CHANGED * largest:
        return "still"
    return "worse" if change > 0 else "better"


def savings(before: Together, after: Together) -> tuple[Saving, ...]:
    """Return what was promised and what came of it: together, then for each pair of recordings."""
    pairs = list(_pairs(before, after))
    single = pairs if len(pairs) > 1 else []
    return tuple(_saving(*each) for each in [("", "", before, after), *single])


def _pairs(before: Together, after: Together) -> Iterable[tuple[str, str, Together, Together]]:
    """Yield recordings of the same worker and span, each as a side of its own."""
    names = {(each.worker, each.span): each for each in after.recordings}
    for each in before.recordings:
        other = names.get((each.worker, each.span))
        if other is not None:
            yield each.worker, each.span, _alone(before, each), _alone(after, other)


def _alone(side: Together, recording: Sample) -> Together:
    return together(side.name, [recording])


def _saving(worker: str, span: str, before: Together, after: Together) -> Saving:
    fixed = [each for each in advice_changes(before, after) if each.status == "fixed"]
    means = [float(side.durations().mean()) for side in (before, after)]
    middles = [float(np.median(side.loops())) for side in (before, after)]
    return Saving(
        worker=worker,
        span=span,
        rules=tuple(each.rule for each in fixed),
        predicted_low_ns=sum(each.low_before_ns for each in fixed),
        predicted_high_ns=sum(each.high_before_ns for each in fixed),
        realised_mean_ns=round(means[0] - means[1]),
        realised_median_ns=round(middles[0] - middles[1]),
    )
