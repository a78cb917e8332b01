"""Fixes of a trace's findings as changes of its replay."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import structs

from stepscope.advice.settings import DEFAULT, available_rules, selected_rules
from stepscope.advice.trace_rules import findings_of
from stepscope.analyses.core.training_detection import is_training
from stepscope.base.errors import UsageError
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change
from stepscope.replay.graph import ReplayGraph
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import Prediction, WhatIf, changes_of, predict
from stepscope.rules import Claim, Rule, claim_order
from stepscope.rules.shared.claimable_time import fixes_at_least, fixes_at_most


@dataclass(frozen=True, kw_only=True, eq=False)
class Fix:
    """The fix of one rule's findings."""

    rule: Rule[Any]
    claims: tuple[Claim, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights(Change):
    """Changes that were applied to the recorded weights before."""

    weight_ns: Ints
    """Weights of the graph's edges; shape (m,)."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:  # noqa: ARG002 (it is the first)
        """Return the weights."""
        return self.weight_ns


class FixChanges(NamedTuple):
    """The first change of a simulation with fixes.

    Of a time that several of them change, the greatest fraction goes.
    """

    least: tuple[Change, ...] = ()
    """The fixes save as little as they can; empty without fixes."""
    most: tuple[Change, ...] = ()
    """They save as much as they can."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FixSaving:
    """Saving of one fix on top of other changes, in the window, in nanoseconds."""

    rule: Rule[Any]
    is_applied: bool
    """Whether it is one of the other changes; then the time that they save less without it."""
    low_ns: int
    high_ns: int


@computed
def fixes(trace: Trace) -> tuple[Fix, ...]:
    """Return the fixes of a trace's findings that save time, in the rules' `claim_order`.

    Rules and their options are the default ones.
    """
    claims: dict[str, list[Claim]] = {}
    settings = DEFAULT.for_trace(is_training=is_training(trace))
    available = available_rules(has_packages=DEFAULT.has_packages)
    rules = {rule.id: rule for rule in selected_rules(settings, available)}
    for item in findings_of(trace, tuple(rules.values())):
        claims.setdefault(item.rule.id, []).extend(item.finding.claims)
    order = claim_order(rules.values())
    return tuple(
        Fix(rule=rules[name], claims=tuple(claims[name]))
        for name in sorted(claims, key=order.__getitem__)
        if claims[name]
    )


def fix_changes(trace: Trace, rule_ids: Collection[str]) -> FixChanges:
    """Return the changes of the fixes of these rules' findings.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: a rule has no finding that saves time.
    """
    if not rule_ids:
        return FixChanges()
    if unknown := set(rule_ids) - {fix.rule.id for fix in fixes(trace)}:
        msg = f"{min(unknown)} has no finding in this trace that saves time"
        raise UsageError(msg)
    key, cache = frozenset(rule_ids), _last_changes(trace)
    changes = cache.get(key)
    if changes is None:
        changes = _changes(trace, key)
        cache.clear()
        cache[key] = changes
    return changes


@computed
def _last_changes(trace: Trace) -> dict[frozenset[str], FixChanges]:  # noqa: ARG001 (the key)
    """Return the changes of the last set of fixes: a slider asks for the same ones again."""
    return {}


def _changes(trace: Trace, rule_ids: Collection[str]) -> FixChanges:
    claims = [claim for fix in fixes(trace) if fix.rule.id in rule_ids for claim in fix.claims]
    recorded = simulate(trace, ())
    least, most = (
        recorded.with_changes(changes(trace, claims, recorded))
        for changes in (fixes_at_least, fixes_at_most)
    )
    return FixChanges(
        least=(Weights(weight_ns=least.weight_ns),), most=(Weights(weight_ns=most.weight_ns),)
    )


def predict_fixes(
    trace: Trace, rule_ids: Collection[str], what_if: WhatIf, changes: Sequence[Change] = ()
) -> Prediction:
    """Return the step that a simulation of fixes, changes, then those of `what_if`, predicts.

    Raises:
        MissingDataError: the model does not describe this trace, or it lacks data on its workers.
        UsageError: a rule has no finding that saves time, or a scale matches no event.
    """
    least, most = fix_changes(trace, rule_ids)
    prediction = predict(trace, what_if, [*most, *changes])
    if not rule_ids:
        return prediction
    slowest = simulate(trace, [*least, *changes, *changes_of(trace, what_if)])
    slowest_ns = round(slowest.simulated_ns / max(1, slowest.step_count))
    return structs.replace(prediction, slowest_ns=max(slowest_ns, prediction.simulated_ns))


def fix_savings(
    trace: Trace, rule_ids: Collection[str], others: Sequence[Change]
) -> tuple[FixSaving, ...]:
    """Return the saving of each fix on top of those of `rule_ids`, and of further changes.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: a rule has no finding that saves time.
    """
    applied = frozenset(rule_ids)
    base = _simulated_ns(trace, fix_changes(trace, applied), others)
    savings = []
    for fix in fixes(trace):
        is_applied = fix.rule.id in applied
        other = _simulated_ns(trace, _changes(trace, applied ^ {fix.rule.id}), others)
        sign = -1 if is_applied else 1
        low_ns, high_ns = sorted(sign * (one - two) for one, two in zip(base, other, strict=True))
        savings.append(
            FixSaving(rule=fix.rule, is_applied=is_applied, low_ns=low_ns, high_ns=high_ns)
        )
    return tuple(savings)


def _simulated_ns(trace: Trace, fix: FixChanges, others: Sequence[Change]) -> tuple[int, int]:
    """Return the simulated time of the window where fixes save least, and most."""
    least, most = (simulate(trace, [*first, *others]).simulated_ns for first in fix)
    return least, most
