"""Times of the main thread that training does not need, as far as the trace shows it.

Python outside operators, and operators that are certainly no part of the model, its backward pass
or the optimizer. Operators without a phase of their own count too, with the gaps between them: in
`step_phases` they have the phase around them, such as histograms of weights between the backward
pass and the optimizer.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.phase_names import (
    CHECKPOINT,
    COLLECTIVES,
    COMPILING,
    FORWARD_ONLY,
    LOADING,
    NOT_MODEL,
    PHASES,
    RUNTIME,
    TRAINING,
)
from stepscope.analyses.host.phase_operators import LONG_GAP_NS, operator_phases
from stepscope.analyses.host.step_phases import step_phases
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

OF_OTHER_RULES = (LOADING, FORWARD_ONLY, CHECKPOINT, COLLECTIVES, COMPILING, RUNTIME)


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherWork:
    """Times in the window."""

    times: Intervals
    """All, in which no device works."""
    python: Intervals
    """Those outside of operators, without the gaps between operators without a phase."""
    exposed: float
    """Fraction of all in which no device works, from 0 to 1."""
    operators_per_step: float
    """Number of operators in them."""
    operator_part: float
    """Fraction of the times in operators, from 0 to 1."""


@computed
def other_work(trace: Trace) -> OtherWork:
    """Return the times of work that is no training."""
    phases, operators = step_phases(trace), operator_phases(trace)
    names = [name for name in PHASES if name not in (*TRAINING, *OF_OTHER_RULES)]
    python = intervals.merged(
        intervals.EMPTY, *(phases.times(name) for name in names if name != NOT_MODEL)
    )
    whole = intervals.merged(python, phases.times(NOT_MODEL), _without_phase(trace))
    of_others = intervals.merged(intervals.EMPTY, *map(phases.times, OF_OTHER_RULES))
    whole = intervals.difference(whole, of_others)
    times = intervals.difference(whole, all_busy(trace))
    in_operators = intervals.intersection(
        times, intervals.union(operators.start_ns, operators.end_ns)
    )
    inside = intervals.covered_ns(whole, operators.start_ns, operators.start_ns + 1) > 0
    return OtherWork(
        times=times,
        python=intervals.difference(intervals.intersection(python, whole), all_busy(trace)),
        exposed=intervals.duration_ns(times) / max(1, intervals.duration_ns(whole)),
        operator_part=intervals.duration_ns(in_operators) / max(1, intervals.duration_ns(times)),
        operators_per_step=np.count_nonzero(inside) / max(1, window(trace).step_count),
    )


def _without_phase(trace: Trace) -> Intervals:
    """Return operators without a phase of their own, and the gaps between two of them."""
    operators = operator_phases(trace)
    rows = np.flatnonzero(~operators.is_certain)
    start, end = operators.start_ns[rows], operators.end_ns[rows]
    is_next = np.append(np.diff(rows) == 1, False)[: len(rows)]
    following = np.append(start[1:], 0)[: len(rows)]
    is_next &= following - end < LONG_GAP_NS
    times = intervals.union(start, np.where(is_next, following, end))
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.end_ns)
