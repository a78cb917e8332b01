"""How long allocations live: within their step, beyond it, or to the recording's end."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.memory.allocation_pairs import FREED, HELD, NONE, memory_pairs
from stepscope.model.trace import Trace, computed

LIFETIMES = (
    "freed in the step that allocated it",
    "freed in a later step",
    "freed while recording",
    "held to the recording's end",
    "release not recorded",
)
"""The third is of what was allocated outside of all steps."""
WITHIN, LATER, RECORDED, TO_END, LOST = range(len(LIFETIMES))


@computed
def lifetimes(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory` that allocates, how long that lives; missing for others.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    time_ns = trace.memory["start_ns"].to_numpy()
    codes = np.full(len(time_ns), NONE, dtype=np.int64)
    for pairs in memory_pairs(trace):
        known = np.flatnonzero(pairs.allocated_at != NONE)
        rows, freed = pairs.allocated_at[known], pairs.freed_at[known]
        step = _step_of(trace, time_ns[rows])
        is_within = (step != NONE) & (step == _step_of(trace, time_ns[freed]))
        of_freed = np.select([is_within, step != NONE], [WITHIN, LATER], RECORDED)
        state = pairs.state[known]
        codes[rows] = np.select([state == FREED, state == HELD], [of_freed, TO_END], LOST)
    return pd.Categorical.from_codes(codes, categories=pd.Index(LIFETIMES, dtype=object))


def _step_of(trace: Trace, time_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the step in which the host was at these times, or -1."""
    steps = trace.steps
    if not len(steps):
        return np.full(len(time_ns), NONE, dtype=np.int64)
    place = np.searchsorted(steps["start_ns"].to_numpy(), time_ns, side="right") - 1
    is_in = (place != NONE) & (time_ns < steps["end_ns"].to_numpy()[place])
    return np.where(is_in, place, NONE)
