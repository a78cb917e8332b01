"""What was said, held against what is true: by run, and by rule."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from score.answers import SERIOUS, first_cause, report, serious
from score.stories import Recording


def rules_said(run: str) -> frozenset[str]:
    """Return the rules that say something of a run at warning or above."""
    return frozenset(outcome.rule for outcome in serious(report(run)))


def right_first(truth: Recording) -> bool:
    """Return whether the first cause that is named is a true one, at warning or above."""
    first = first_cause(report(truth.run))
    return first is not None and first.rule in truth.causes and first.severity in SERIOUS


def is_missed(truth: Recording) -> bool:
    """Return whether any cause of a run is not said at warning or above."""
    return not set(truth.causes) <= rules_said(truth.run) or not (truth.causes or truth.healthy)


def false_alarms(truth: Recording) -> tuple[str, ...]:
    """Return the rules that say at warning or above what is not true, by name."""
    return tuple(sorted(rules_said(truth.run) - truth.true_rules))


@dataclass(frozen=True, kw_only=True)
class RuleRecord:
    """How one rule fared, in runs."""

    rule: str
    found: tuple[str, ...]
    """Runs whose cause it names, and it was said."""
    missed: tuple[str, ...]
    """Runs whose cause it names, and it was not said at warning or above."""
    also_true: tuple[str, ...]
    """Runs of which it was said, and is true without being the cause."""
    false: tuple[str, ...]
    """Runs of which it was said, and is not true."""

    @property
    def is_tested(self) -> bool:
        """True where it was to be said, or was rightly said, of any run."""
        return bool(self.found or self.missed or self.also_true)

    @property
    def has_something(self) -> bool:
        """True where it was said, or was to be said, of any run."""
        return self.is_tested or bool(self.false)


def records(rules: Iterable[str], truths: Sequence[Recording]) -> tuple[RuleRecord, ...]:
    """Return how each rule fared on these runs, in the order of the rules."""
    said = {truth.run: rules_said(truth.run) for truth in truths}
    return tuple(
        RuleRecord(
            rule=rule,
            found=tuple(e.run for e in truths if rule in e.causes and rule in said[e.run]),
            missed=tuple(e.run for e in truths if rule in e.causes and rule not in said[e.run]),
            also_true=tuple(e.run for e in truths if rule in e.also and rule in said[e.run]),
            false=tuple(e.run for e in truths if rule in said[e.run] - e.true_rules),
        )
        for rule in rules
    )
