"""Findings compared with the true causes: by run, and by rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from score.answers import SERIOUS, first_cause, report, serious
from score.stories import Recording


def reported_rules(run: str) -> frozenset[str]:
    """Return the rules with a finding on a run at warning or above."""
    return frozenset(outcome.rule for outcome in serious(report(run)))


def right_first(truth: Recording) -> bool:
    """Return whether the first named cause is a true one, at warning or above."""
    first = first_cause(report(truth.run))
    return first is not None and first.rule in truth.causes and first.severity in SERIOUS


def is_missed(truth: Recording) -> bool:
    """Return whether any cause of a run is not reported at warning or above."""
    return not set(truth.causes) <= reported_rules(truth.run) or not (truth.causes or truth.healthy)


def false_alarms(truth: Recording) -> tuple[str, ...]:
    """Return the rules with an untrue finding at warning or above, by name."""
    return tuple(sorted(reported_rules(truth.run) - truth.true_rules))


@dataclass(frozen=True, kw_only=True)
class RuleRecord:
    """Runs with correct, missed and false findings of one rule."""

    rule: str
    hits: tuple[str, ...]
    """Runs whose cause it names and reports."""
    missed: tuple[str, ...]
    """Runs whose cause it names, but does not report at warning or above."""
    also_true: tuple[str, ...]
    """Runs on which its finding is true, but not the cause."""
    false: tuple[str, ...]
    """Runs on which its finding is not true."""

    @property
    def is_tested(self) -> bool:
        """True if any run should have its finding, or correctly has it."""
        return bool(self.hits or self.missed or self.also_true)

    @property
    def has_something(self) -> bool:
        """True if any run has its finding, or should have it."""
        return self.is_tested or bool(self.false)


def records(rules: Iterable[str], truths: Sequence[Recording]) -> tuple[RuleRecord, ...]:
    """Return the record of each rule on these runs, in the order of the rules."""
    reported = {truth.run: reported_rules(truth.run) for truth in truths}
    return tuple(
        RuleRecord(
            rule=rule,
            hits=tuple(e.run for e in truths if rule in e.causes and rule in reported[e.run]),
            missed=tuple(e.run for e in truths if rule in e.causes and rule not in reported[e.run]),
            also_true=tuple(e.run for e in truths if rule in e.also and rule in reported[e.run]),
            false=tuple(e.run for e in truths if rule in reported[e.run] - e.true_rules),
        )
        for rule in rules
    )
