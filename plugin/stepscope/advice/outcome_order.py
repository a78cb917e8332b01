"""Order of outcomes in the advice."""

import math
from functools import cache

from stepscope.advice.settings import SEVERITIES
from stepscope.base.findings import Outcome, Status
from stepscope.rules import all_rules

STATUSES: tuple[Status, ...] = (
    "found",
    "rejected",
    "failed",
    "passed",
    "cannot-tell",
    "not-applicable",
    "suppressed",
)


GENERAL_WEIGHT = 0.5
"""Of the saving of a general cause, which a specific one may be the reason for."""


def order(outcome: Outcome) -> tuple[int, bool, bool, int, float, int, str, str, str]:
    """Return a sort key: findings first, causes before related symptoms, then by severity.

    Among these the greatest likely saving comes first, the geometric mean of its two ends: a
    measured wait goes before work that might become several times as fast, and what may save
    nothing comes last. Of a saving that other findings count mostly, only the rest ranks it, and of
    a general cause half of it.
    """
    claim = outcome.claim
    low_ns, high_ns = claim.decisive.ranked_ns if claim else (0, 0)
    weight = GENERAL_WEIGHT if outcome.rule in _general_rules() else 1.0
    return (
        STATUSES.index(outcome.status),
        outcome.is_symptom,
        claim is not None and claim.is_covered,
        SEVERITIES.index(outcome.severity) if outcome.severity else len(SEVERITIES),
        -(math.sqrt(low_ns * high_ns) * weight),
        -high_ns,
        outcome.rule,
        outcome.worker,
        outcome.span,
    )


@cache
def _general_rules() -> frozenset[str]:
    return frozenset(rule.id for rule in all_rules() if rule.is_general)
