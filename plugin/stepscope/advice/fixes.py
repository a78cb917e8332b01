"""Fixes of a trace's findings as changes of its replay."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgspec import structs

from stepscope.advice.advised_findings import AdvisedFindings, advised_findings
from stepscope.advice.savings import ResolvedFinding
from stepscope.advice.settings import DEFAULT, AdviceSettings, available_rules, find_rule
from stepscope.base.errors import UsageError
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change
from stepscope.replay.graph import ReplayGraph
from stepscope.replay.simulation import Simulation, simulate
from stepscope.replay.what_if import Prediction, WhatIf, changes_of, predict
from stepscope.rules import Claim, Rule
from stepscope.rules.shared.claimable_time import alone, fixes_at_least, fixes_at_most, usable_times


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
    unsure_ns: float = 0.0
    """What `least` saves in the window beyond the sum of the fixes' sure times: of a time that
    several fixes claim the greatest fraction goes, but the others may save nothing of the rest.
    The advice counts sure times only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FixSaving:
    """Saving of one fix on top of other changes, in the window, in nanoseconds."""

    rule: Rule[Any]
    is_applied: bool
    """Whether it is one of the other changes; then the time that they save less without it."""
    low_ns: int
    high_ns: int


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedWindow:
    """A trace's window with fixes; no time is changed by two of them."""

    least: Simulation
    """The fixes save as little as they can."""
    most: Simulation
    """They save as much as they can."""
    times: Intervals
    """Recorded times that the fixes change."""


def fixes_of(findings: Iterable[ResolvedFinding]) -> tuple[Fix, ...]:
    """Return the fix of each rule whose findings save time, in the order of the findings."""
    claims: dict[str, list[Claim]] = {}
    rules: dict[str, Rule[Any]] = {}
    for finding in findings:
        if finding.claims:
            rules[finding.rule.id] = finding.rule
            claims.setdefault(finding.rule.id, []).extend(finding.claims)
    return tuple(Fix(rule=rules[name], claims=tuple(claims[name])) for name in rules)


def fixes(trace: Trace, settings: AdviceSettings = DEFAULT) -> tuple[Fix, ...]:
    """Return the fixes of the findings that the advice shows, in the rules' `claim_order`.

    `settings` are those of the trace's run (`for_run`).

    Raises:
        UsageError: the settings name an unknown rule or option.
    """
    return fixes_of(advised_findings(trace, settings).findings)


def fixed_window(trace: Trace, fixes: Iterable[Fix], begin: Simulation) -> FixedWindow:
    """Return a simulated window with all of these fixes.

    `begin` is the window without fixes, as recorded or without the profiler.
    """
    claims = [claim for fix in fixes for claim in fix.claims]
    return FixedWindow(
        least=begin.with_changes(fixes_at_least(trace, claims, begin)),
        most=begin.with_changes(fixes_at_most(trace, claims, begin)),
        times=intervals.merged(intervals.EMPTY, *(usable_times(trace, claim) for claim in claims)),
    )


def fix_changes(
    trace: Trace, rule_ids: Collection[str], settings: AdviceSettings = DEFAULT
) -> FixChanges:
    """Return the changes of the fixes of these rules' findings.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: there is no such rule, or it has no finding that saves time.
    """
    if not rule_ids:
        return FixChanges()
    advised = advised_findings(trace, settings)
    if unknown := set(rule_ids) - {fix.rule.id for fix in fixes_of(advised.findings)}:
        find_rule(min(unknown), available_rules(has_packages=settings.has_packages))
        msg = f"{min(unknown)} has no finding in this trace that saves time"
        raise UsageError(msg)
    key, cache = (advised, frozenset(rule_ids)), _last_changes(trace)
    changes = cache.get(key)
    if changes is None:
        changes = _changes(trace, key[1], advised)
        cache.clear()
        cache[key] = changes
    return changes


@computed
def _last_changes(
    trace: Trace,  # noqa: ARG001 (the key)
) -> dict[tuple[AdvisedFindings, frozenset[str]], FixChanges]:
    """Return the changes of the last set of fixes: a slider asks for the same ones again."""
    return {}


def _changes(trace: Trace, rule_ids: Collection[str], advised: AdvisedFindings) -> FixChanges:
    fixes = [fix for fix in fixes_of(advised.findings) if fix.rule.id in rule_ids]
    begin = simulate(trace, ())
    window = fixed_window(trace, fixes, begin)
    saved_ns = begin.simulated_ns - window.least.simulated_ns
    sure = alone(trace, [claim for fix in fixes for claim in fix.claims], "recorded")
    return FixChanges(
        least=(Weights(weight_ns=window.least.weight_ns),),
        most=(Weights(weight_ns=window.most.weight_ns),),
        unsure_ns=max(0.0, saved_ns - sure.low_ns),
    )


def predict_fixes(
    trace: Trace,
    rule_ids: Collection[str],
    what_if: WhatIf,
    changes: Sequence[Change] = (),
    settings: AdviceSettings = DEFAULT,
) -> Prediction:
    """Return the step that a simulation of fixes, changes, then those of `what_if`, predicts.

    Raises:
        MissingDataError: the model does not describe this trace, or it lacks data on its workers.
        UsageError: a rule has no finding that saves time, or a scale matches no event.
    """
    least, most, unsure_ns = fix_changes(trace, rule_ids, settings)
    prediction = predict(trace, what_if, [*most, *changes])
    if not rule_ids:
        return prediction
    slowest = simulate(trace, [*least, *changes, *changes_of(trace, what_if)])
    slowest_ns = round((slowest.simulated_ns + unsure_ns) / max(1, slowest.step_count))
    return structs.replace(prediction, slowest_ns=max(slowest_ns, prediction.simulated_ns))


def fix_savings(
    trace: Trace,
    rule_ids: Collection[str],
    others: Sequence[Change],
    settings: AdviceSettings = DEFAULT,
) -> tuple[FixSaving, ...]:
    """Return the saving of each fix on top of those of `rule_ids`, and of further changes.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: there is no such rule, or it has no finding that saves time.
    """
    applied, advised = frozenset(rule_ids), advised_findings(trace, settings)
    base = _simulated_ns(trace, fix_changes(trace, applied, settings), others)
    savings = []
    for fix in fixes_of(advised.findings):
        is_applied = fix.rule.id in applied
        other = _simulated_ns(trace, _changes(trace, applied ^ {fix.rule.id}, advised), others)
        sign = -1 if is_applied else 1
        low_ns, high_ns = sorted(sign * (one - two) for one, two in zip(base, other, strict=True))
        savings.append(
            FixSaving(rule=fix.rule, is_applied=is_applied, low_ns=low_ns, high_ns=high_ns)
        )
    return tuple(savings)


def _simulated_ns(trace: Trace, fix: FixChanges, others: Sequence[Change]) -> tuple[int, int]:
    """Return the simulated time of the window where fixes save least, and most."""
    least, most = (simulate(trace, [*of, *others]).simulated_ns for of in (fix.least, fix.most))
    return round(least + fix.unsure_ns), most
