"""Changes of advice and of recorded settings between two sides, and achieved savings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.base.findings import Outcome, Severity
from stepscope.comparison.messages import AdviceChange, AdviceStatus, Saving, SettingChange
from stepscope.comparison.side import SideSamples, side_samples

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
CHANGED = 0.25
"""Change relative to the larger saving up to which a finding is unchanged."""
ORDER: tuple[AdviceStatus, ...] = ("fixed", "new", "worse", "better", "still", "not-checked")
FOLLOWED: frozenset[AdviceStatus] = frozenset({"fixed", "better"})
Key = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class _SideFinding:
    """A finding on one side: the worst severity and the mean saving of its traces."""

    title: str
    severity: Severity
    low_ns: int
    high_ns: int


def subject(outcome: Outcome) -> str:
    """Return the subject of a finding, which identifies it in other traces.

    It is the first evidence that links to an operator, a kernel or a device.
    """
    for fact in outcome.evidence:
        if fact.link is not None and fact.link.search:
            return fact.link.search
    return ""


def advice_changes(before: SideSamples, after: SideSamples) -> tuple[AdviceChange, ...]:
    """Return all findings of both sides with their changes, fixed ones first."""
    findings = _findings(before), _findings(after)
    unchecked = _unchecked(after)
    changes = [
        _change(key, findings[0].get(key), findings[1].get(key), unchecked)
        for key in {**findings[0], **findings[1]}
    ]
    return tuple(sorted(changes, key=_order))


def _order(change: AdviceChange) -> tuple[int, int, str, str]:
    saving = max(change.high_before_ns, change.high_after_ns)
    return ORDER.index(change.status), -saving, change.rule, change.subject


def _findings(side: SideSamples) -> dict[Key, _SideFinding]:
    by_rule: dict[str, list[Outcome]] = {}
    for trace in side.traces:
        for outcome in trace.advice.outcomes:
            if outcome.status == "found":
                by_rule.setdefault(outcome.rule, []).append(outcome)
    by_key: dict[Key, list[Outcome]] = {}
    for rule, outcomes in by_rule.items():
        has_many = len({outcome.trace for outcome in outcomes}) < len(outcomes)
        for outcome in outcomes:
            by_key.setdefault((rule, subject(outcome) if has_many else ""), []).append(outcome)
    count = len(side.traces)
    return {key: _summary(outcomes, count) for key, outcomes in by_key.items()}


def _summary(outcomes: Sequence[Outcome], trace_count: int) -> _SideFinding:
    claims = [outcome.claim for outcome in outcomes if outcome.claim is not None]
    severities = [outcome.severity or "info" for outcome in outcomes]
    return _SideFinding(
        title=outcomes[0].title,
        severity=max(severities, key=SEVERITIES.index),
        low_ns=round(sum(claim.net_low_ns for claim in claims) / trace_count),
        high_ns=round(sum(claim.net_high_ns for claim in claims) / trace_count),
    )


def _unchecked(side: SideSamples) -> Mapping[str, str]:
    """Return the rules that could check no trace of a side, with the reason."""
    reasons: dict[str, str] = {}
    checked = set()
    for trace in side.traces:
        for outcome in trace.advice.outcomes:
            if outcome.status in {"not-applicable", "failed"}:
                reasons.setdefault(outcome.rule, outcome.reason or "")
            else:
                checked.add(outcome.rule)
    return {rule: reason for rule, reason in reasons.items() if rule not in checked}


def _change(
    key: Key, before: _SideFinding | None, after: _SideFinding | None, unchecked: Mapping[str, str]
) -> AdviceChange:
    finding = before or after
    rule, about = key
    is_unchecked = after is None and rule in unchecked
    return AdviceChange(
        rule=rule,
        title=finding.title if finding else "",
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


def _status(before: _SideFinding | None, after: _SideFinding | None) -> AdviceStatus:
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


def followed_savings(before: SideSamples, after: SideSamples) -> tuple[Saving, ...]:
    """Return estimated and achieved savings: of all traces, then of each pair of traces."""
    pairs = list(_pairs(before, after))
    single = pairs if len(pairs) > 1 else []
    return tuple(_saving(*pair) for pair in [("", "", before, after), *single])


def _pairs(
    before: SideSamples, after: SideSamples
) -> Iterable[tuple[str, str, SideSamples, SideSamples]]:
    """Yield traces of the same worker and span, each as a side."""
    others = {(trace.worker, trace.span): trace for trace in after.traces}
    for trace in before.traces:
        other = others.get((trace.worker, trace.span))
        if other is not None:
            sides = side_samples(before.name, [trace]), side_samples(after.name, [other])
            yield trace.worker, trace.span, *sides


def _saving(worker: str, span: str, before: SideSamples, after: SideSamples) -> Saving:
    changes = advice_changes(before, after)
    followed = [change for change in changes if change.status in FOLLOWED]
    predicted = [_predicted_ns(change) for change in followed]
    means = [float(side.durations().mean()) for side in (before, after)]
    medians = [float(np.median(side.loops())) for side in (before, after)]
    return Saving(
        worker=worker,
        span=span,
        rules=tuple(change.rule for change in followed),
        predicted_low_ns=sum(low_ns for low_ns, _ in predicted),
        predicted_high_ns=sum(high_ns for _, high_ns in predicted),
        realised_mean_ns=round(means[0] - means[1]),
        realised_median_ns=round(medians[0] - medians[1]),
    )


def _predicted_ns(change: AdviceChange) -> tuple[int, int]:
    """Return the part of an estimated saving that is no longer estimated, low and high."""
    parts = (
        change.low_before_ns - change.low_after_ns,
        change.high_before_ns - change.high_after_ns,
    )
    return max(0, min(parts)), max(0, *parts)


NOT_SET = "not recorded"
MOST_SHOWN = 50


def setting_changes(before: SideSamples, after: SideSamples) -> tuple[SettingChange, ...]:
    """Return the recorded settings that differ; empty where one side recorded none."""
    if not all(any(trace.settings for trace in side.traces) for side in (before, after)):
        return ()
    return tuple(_setting_changes(before, after))[:MOST_SHOWN]


def _setting_changes(before: SideSamples, after: SideSamples) -> Iterator[SettingChange]:
    labels = {
        key: label
        for side in (before, after)
        for trace in side.traces
        for key, (label, _) in trace.settings.items()
    }
    for key, label in labels.items():
        was, now = (_setting_value(side, key) for side in (before, after))
        if was != now:
            yield SettingChange(name=key, label=label, before=was, after=now)


def _setting_value(side: SideSamples, key: str) -> str:
    """Return the distinct values of a setting on a side."""
    values = {trace.settings[key][1] for trace in side.traces if key in trace.settings}
    return " or ".join(sorted(values)) or NOT_SET
