"""One recording's advice: what is kept of it when its events are let go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from stepscope.advice.budget import budget
from stepscope.advice.outcomes import asked
from stepscope.advice.standing import standing
from stepscope.advice.workers import worker_report
from stepscope.analyses.communication.rank_part import RankPart, rank_part
from stepscope.analyses.steps.verdict import verdict
from stepscope.report import Outcome, WorkerReport
from stepscope.rules import Rule
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordingAdvice:
    """What the analyses and the rules say of one recording."""

    worker: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankPart | None = None
    """What it has to say beside the others of its run."""


def advice_of(trace: Trace, rules: Sequence[Rule[Any]]) -> RecordingAdvice:
    """Return the advice on one recording."""
    others, found = asked(trace, rules)
    outcomes = (*others, *(each.outcome for each in found))
    worker = msgspec.structs.replace(
        worker_report(trace, rules),
        budget=budget(trace, found),
        standing=standing(trace, outcomes),
        verdict=verdict(trace),
    )
    return RecordingAdvice(worker=worker, outcomes=outcomes, part=rank_part(trace))
