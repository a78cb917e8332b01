"""Results of all ranks of a run, shared by the endpoints of the Distributed view."""

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
"""Held during a request: concurrent ones would compute the same results twice."""
CACHED_RUNS = 2


class SharedRun:
    """Results of a run, computed on first use."""

    def __init__(self, run: RankRun) -> None:
        self.run = run

    @cached_property
    def steps(self) -> RunSteps:
        """Time of each rank's steps by category."""
        return run_steps(self.run)

    @cached_property
    def groups(self) -> tuple[RunGroup, ...]:
        """The run's process groups."""
        return run_groups(self.run)

    @cached_property
    def matched(self) -> pd.DataFrame:
        """Collectives over all ranks, one row per match."""
        return matched_of(self.run)

    @cached_property
    def stragglers(self) -> pd.DataFrame:
        """Ranks by their lateness."""
        return stragglers_of(self.run)

    @cached_property
    def events(self) -> NDArray[np.int64]:
        """Index of each collective's event in its file."""
        return member_events(self.run)


@lru_cache(maxsize=CACHED_RUNS)
def _shared(parts: tuple[RankSummary, ...]) -> SharedRun:
    return SharedRun(rank_run(parts))


def shared_run(parts: Sequence[RankSummary]) -> SharedRun:
    """Return the shared results of a run; the same object for the same parts."""
    return _shared(tuple(parts))
