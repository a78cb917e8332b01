"""A run's ranks together, as the endpoints of the Distributed view share them: worked out once."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from threading import RLock

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.matched_collectives import matched_of
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.analyses.communication.run_collectives import member_events
from stepscope.analyses.communication.run_groups import RunGroup, run_groups
from stepscope.analyses.communication.run_steps import RunSteps, run_steps
from stepscope.analyses.communication.stragglers import stragglers_of

LOCK = RLock()
"""Held while an answer is made: several are asked at once, and would do the same work twice."""
KEPT_RUNS = 2


class SharedRun:
    """What several answers rest on; each is reckoned when it is first asked for."""

    def __init__(self, run: RankRun) -> None:
        self.run = run

    @cached_property
    def steps(self) -> RunSteps:
        """Where each step of each rank goes."""
        return run_steps(self.run)

    @cached_property
    def groups(self) -> tuple[RunGroup, ...]:
        """The run's process groups."""
        return run_groups(self.run)

    @cached_property
    def matched(self) -> pd.DataFrame:
        """Collectives over all ranks, one row a match."""
        return matched_of(self.run)

    @cached_property
    def stragglers(self) -> pd.DataFrame:
        """Ranks by their lateness."""
        return stragglers_of(self.run)

    @cached_property
    def events(self) -> NDArray[np.int64]:
        """Each member's place in its file."""
        return member_events(self.run)


@lru_cache(maxsize=KEPT_RUNS)
def _shared(parts: tuple[RankSummary, ...]) -> SharedRun:
    return SharedRun(rank_run(parts))


def shared_run(parts: Sequence[RankSummary]) -> SharedRun:
    """Return a run's recordings together; the same object for the same parts."""
    return _shared(tuple(parts))
