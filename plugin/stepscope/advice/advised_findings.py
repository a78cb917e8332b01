"""Outcomes and findings of a trace by the user's settings."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stepscope.advice.savings import ResolvedFinding
from stepscope.advice.settings import AdviceSettings, Changes, available_rules, selected_rules
from stepscope.advice.suppression import apply_changes, program_suppressions
from stepscope.advice.trace_rules import apply_rules
from stepscope.analyses.core.training_detection import is_training
from stepscope.base.findings import Outcome
from stepscope.model.trace import Trace, computed
from stepscope.rules import Rule


@dataclass(frozen=True, kw_only=True, eq=False)
class AdvisedFindings:
    """The advice of some rules, before its report."""

    outcomes: tuple[Outcome, ...]
    findings: tuple[ResolvedFinding, ...]
    """Those that are neither suppressed nor hidden, in the rules' `claim_order`."""


def advised_findings(trace: Trace, settings: AdviceSettings) -> AdvisedFindings:
    """Return the findings of one trace; `settings` are those of its run (`for_run`).

    Raises:
        UsageError: the settings name an unknown rule or option.
    """
    rules = available_rules(has_packages=settings.has_packages)
    changes = settings.for_trace(is_training=is_training(trace))
    return findings_by(trace, selected_rules(changes, rules), changes)


def findings_by(trace: Trace, rules: Sequence[Rule[Any]], changes: Changes) -> AdvisedFindings:
    """Return the findings of some rules on one trace; those of the last settings are cached."""
    names = trace.worker, trace.span, trace.id
    key: _Key = names, tuple((rule.id, rule.check, rule.options) for rule in rules), changes
    cache = _last_findings(trace)
    for cached_key, findings in cache:
        if cached_key == key:
            return findings
    findings = _findings(trace, rules, changes)
    cache[:] = [(key, findings)]
    return findings


_Key = tuple[tuple[str, ...], tuple[tuple[str, Any, Any], ...], Changes]
"""Names of the trace, which its outcomes have, and what the user set."""


@computed
def _last_findings(trace: Trace) -> list[tuple[_Key, AdvisedFindings]]:  # noqa: ARG001
    return []


def _findings(trace: Trace, rules: Sequence[Rule[Any]], changes: Changes) -> AdvisedFindings:
    others, findings = apply_rules(trace, rules)
    suppressions = (*changes.suppressions, *program_suppressions(trace))
    changes = replace(changes, suppressions=suppressions)
    shown = apply_changes((finding.outcome for finding in findings), changes, rules)
    return AdvisedFindings(
        outcomes=(*others, *(outcome for outcome in shown if outcome is not None)),
        findings=tuple(
            replace(finding, outcome=outcome)
            for finding, outcome in zip(findings, shown, strict=True)
            if outcome is not None and outcome.status == "found"
        ),
    )
