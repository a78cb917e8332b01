"""Runs of short operators on the host: the cost of a step that is independent of its batch size.

Calling an operator, and the Python before it, take as long for one sample as for many. Long
operators compute, and long gaps between operators are data loading or waits.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortOperatorRuns:
    """The window's short operators on the main thread, with the gaps between them."""

    times: Intervals
    share: float
    """Fraction of the window."""
    operators: int


def short_operator_runs(trace: Trace, long_ns: int) -> ShortOperatorRuns:
    """Return the times in which no operator and no gap takes `long_ns` or more.

    An operator's length is its self time.
    """
    calls, span = trace.host_calls, window(trace)
    is_counted = (calls["thread"] == main_thread(trace)) & calls["is_operator"]
    operators = calls[(is_counted & (calls["start_ns"] < span.end_ns)).to_numpy()]
    operators = operators[(operators["end_ns"] > span.start_ns).to_numpy()]
    start, end = operators["start_ns"].to_numpy(), operators["end_ns"].to_numpy()
    is_long = operators["self_ns"].to_numpy() >= long_ns
    between = intervals.complement(intervals.union(start, end), span.start_ns, span.end_ns)
    between = between[np.diff(between, axis=1)[:, 0] >= long_ns]
    long = intervals.merged(intervals.union(start[is_long], end[is_long]), between)
    times = intervals.complement(long, span.start_ns, span.end_ns)
    return ShortOperatorRuns(
        times=times,
        share=intervals.duration_ns(times) / max(1, span.duration_ns),
        operators=int((~is_long).sum()),
    )
