"""What the rules over a run have in common: whose recordings there are, and how they are called."""

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
    """The recordings of several ranks."""

    recordings: tuple[Recording, ...]
    parts: tuple[RankSummary, ...]

    def recording(self, row: Mapping[Any, Any]) -> Recording:
        """Return the recording that a row of a table of ranks is of."""
        return self._by_name[row["worker"], row["span"]]

    @cached_property
    def _by_name(self) -> dict[tuple[str, str], Recording]:
        return {(each.worker, each.span): each for each in self.recordings}

    def confidence(self, stated: Confidence) -> Confidence:
        """Return how sure a finding is: less with two ranks, or fewer than three steps."""
        steps = min(part.totals.step_count for part in self.parts)
        workers = {part.evidence.worker for part in self.parts}
        is_few = steps < STEPS_FOR_HIGH_CONFIDENCE or len(workers) < STEPS_FOR_HIGH_CONFIDENCE
        return "medium" if stated == "high" and is_few else stated


def several(evidence: RunEvidence) -> Ranks:
    """Return the recordings, where they are of several ranks.

    Raises:
        NotApplicableError: the program is a single process.
        MissingDataError: others took part, and were not recorded.
    """
    parts = tuple(each.part for each in evidence.recordings)
    if len({part.evidence.worker for part in parts}) > 1:
        return Ranks(recordings=evidence.recordings, parts=parts)
    if all((part.world_size or 1) < 2 for part in parts) and not any(
        len(part.collectives) for part in parts
    ):
        msg = "the run is of a single process"
        raise NotApplicableError(msg)
    msg = "only one rank was recorded"
    raise MissingDataError(msg, REMEDY)


def called(row: Mapping[Any, Any]) -> str:
    """Return what to call the rank of a row: `rank 3`, else the worker's name."""
    rank = row["rank"]
    return f"rank {int(rank)}" if isinstance(rank, float) and rank == rank else str(row["worker"])  # noqa: PLR0124 (NaN)
