"""The traces of several ranks, as the rules over a run use them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import REMEDY
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Confidence
from stepscope.rules import Recording, RunEvidence

STEPS_FOR_HIGH_CONFIDENCE = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranks:
    """The traces of several ranks."""

    recordings: tuple[Recording, ...]
    parts: tuple[RankSummary, ...]

    def recording(self, row: Mapping[Any, Any]) -> Recording:
        """Return the trace of a row of a table of ranks."""
        return self._by_name[row["worker"], row["span"]]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Recording]:
        return {(one.worker, one.span): one for one in self.recordings}

    def confidence(self, stated: Confidence) -> Confidence:
        """Return the confidence of a finding: lower with two ranks, or fewer than three steps."""
        steps = min(part.totals.step_count for part in self.parts)
        workers = {part.evidence.worker for part in self.parts}
        is_few = steps < STEPS_FOR_HIGH_CONFIDENCE or len(workers) < STEPS_FOR_HIGH_CONFIDENCE
        return "medium" if stated == "high" and is_few else stated


def several(evidence: RunEvidence) -> Ranks:
    """Return the traces, where they are of several ranks.

    Raises:
        NotApplicableError: the program is a single process.
        MissingDataError: other ranks took part, and were not recorded.
    """
    parts = tuple(one.part for one in evidence.recordings)
    if len({part.evidence.worker for part in parts}) > 1:
        return Ranks(recordings=evidence.recordings, parts=parts)
    if all((part.world_size or 1) < 2 and not len(part.collectives) for part in parts):
        msg = "the run is of a single process"
        raise NotApplicableError(msg)
    msg = "only one rank was recorded"
    raise MissingDataError(msg, REMEDY)


def rank_number(row: Mapping[Any, Any]) -> int | None:
    """Return the rank of a row of a table of ranks; None where it was not recorded."""
    rank = row["rank"]
    return int(rank) if rank is not None and rank == rank else None  # noqa: PLR0124 (NaN)


def rank_name(row: Mapping[Any, Any]) -> str:
    """Return the name of a row's rank: `rank 3`, else the worker's name."""
    number = rank_number(row)
    return str(row["worker"]) if number is None else f"rank {number}"
