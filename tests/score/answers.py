"""Advice on each run of the sample logs."""

from functools import cache

from loading import SAMPLE_LOGS
from stepscope.advice import AdviceSettings, advise_with_settings
from stepscope.base.findings import Outcome
from stepscope.base.report import RunReport
from stepscope.library import load_all

SERIOUS = ("critical", "warning")


@cache
def report(run: str) -> RunReport:
    """Return the report on a run, over all its traces, with default settings.

    It excludes rules of other packages, so that it is the same on any machine.
    """
    [traces] = load_all(SAMPLE_LOGS / run)
    advice, problems = advise_with_settings(traces, AdviceSettings(has_packages=False))
    for problem in problems:
        raise problem
    return advice


def serious(of: RunReport) -> list[Outcome]:
    """Return the findings at warning or above, in the order of the report."""
    return [merged.outcome for merged in of.merged if merged.outcome.severity in SERIOUS]


def first_cause(of: RunReport) -> Outcome | None:
    """Return the first finding that names a cause, at any severity; None without one."""
    return next((merged.outcome for merged in of.merged if not merged.outcome.is_symptom), None)


def statuses(run: str, rule: str) -> set[str]:
    """Return the statuses of a rule on the traces of a run."""
    return {outcome.status for outcome in report(run).outcomes if outcome.rule == rule}


def saving_ns(of: RunReport, rules: frozenset[str] | None = None) -> tuple[int, int]:
    """Return the bounds of the estimated saving per step, ns; of all findings without `rules`."""
    claims = [
        merged.outcome.claim
        for merged in of.merged
        if merged.outcome.claim is not None and (rules is None or merged.outcome.rule in rules)
    ]
    return sum(claim.net_low_ns for claim in claims), sum(claim.net_high_ns for claim in claims)


def claimed_ns(of: RunReport, rules: frozenset[str]) -> int:
    """Return the potential saving per step of the findings of these rules, each alone, ns."""
    claims = [merged.outcome.claim for merged in of.merged if merged.outcome.rule in rules]
    return sum(claim.high_ns for claim in claims if claim is not None)
