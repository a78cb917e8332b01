"""What the advisor says of each run of the sample logs."""

from functools import cache

from loading import SAMPLE_LOGS
from stepscope.advice import AdviceSettings, advise_with_settings
from stepscope.base.findings import Outcome
from stepscope.base.report import RunReport
from stepscope.library import load_all

SERIOUS = ("critical", "warning")


@cache
def report(run: str) -> RunReport:
    """Return what is said of a run, over all its recordings, with nothing configured.

    Rules of other packages that may be installed are not asked: it is the same on any machine.
    """
    [found_there] = load_all(SAMPLE_LOGS / run)
    told, problems = advise_with_settings(found_there, AdviceSettings(has_packages=False))
    for problem in problems:
        raise problem
    return told


def serious(of: RunReport) -> list[Outcome]:
    """Return the findings at warning or above, in the order in which they are listed."""
    return [each.outcome for each in of.merged if each.outcome.severity in SERIOUS]


def first_cause(of: RunReport) -> Outcome | None:
    """Return the first finding that names a cause, however serious; None where there is none."""
    return next((each.outcome for each in of.merged if not each.outcome.is_symptom), None)


def statuses(run: str, rule: str) -> set[str]:
    """Return what a rule says of the recordings of a run."""
    return {outcome.status for outcome in report(run).outcomes if outcome.rule == rule}


def saving_ns(of: RunReport, rules: frozenset[str] | None = None) -> tuple[int, int]:
    """Return what findings could save a step, at least and at most; None: all findings."""
    claims = [
        each.outcome.claim
        for each in of.merged
        if each.outcome.claim is not None and (rules is None or each.outcome.rule in rules)
    ]
    return sum(each.net_low_ns for each in claims), sum(each.net_high_ns for each in claims)


def claimed_ns(of: RunReport, rules: frozenset[str]) -> int:
    """Return the most that findings of these rules could save a step, each alone."""
    claims = [each.outcome.claim for each in of.merged if each.outcome.rule in rules]
    return sum(claim.gross_ns for claim in claims if claim is not None)
