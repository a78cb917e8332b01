"""Runs of short operators on the host, and the part of a step that does not grow with its batch.

Calling an operator, and the Python before it, take as long for one sample as for many. Long
operators compute, and long gaps between operators are data loading or waits.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortOperatorRuns:
    """The window's short operators on the main thread, with the gaps between them."""

    times: Intervals
    share: float
    """Fraction of the window."""
    operators: int


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorCalls:
    """The beginnings of the main thread's operators, and the short gaps between operators.

    Fractions are of the window without long gaps.
    """

    times: Intervals
    share: float
    short_share: float
    """Fraction of runs of short operators."""
    operators: int


def short_operator_runs(trace: Trace, long_ns: int) -> ShortOperatorRuns:
    """Return the times in which no operator and no gap takes `long_ns` or more.

    An operator's length is its self time.
    """
    span, operators = window(trace), _operators(trace)
    start, end = operators["start_ns"].to_numpy(), operators["end_ns"].to_numpy()
    is_long = operators["self_ns"].to_numpy() >= long_ns
    between = _between(trace, start, end)
    between = between[np.diff(between, axis=1)[:, 0] >= long_ns]
    long = intervals.merged(intervals.union(start[is_long], end[is_long]), between)
    times = intervals.complement(long, span.start_ns, span.end_ns)
    return ShortOperatorRuns(
        times=times,
        share=intervals.duration_ns(times) / max(1, span.duration_ns),
        operators=int((~is_long).sum()),
    )


def operator_calls(trace: Trace, call_ns: int, long_ns: int) -> OperatorCalls:
    """Return the first `call_ns` of each operator, and gaps of less than `long_ns` between them."""
    span, operators = window(trace), _operators(trace)
    start, end = operators["start_ns"].to_numpy(), operators["end_ns"].to_numpy()
    between = _between(trace, start, end)
    is_long = np.diff(between, axis=1)[:, 0] >= long_ns
    calls = intervals.union(start, np.minimum(end, start + call_ns))
    times = intervals.merged(calls, between[~is_long])
    times = intervals.clip(times, span.start_ns, span.end_ns)
    whole_ns = max(1, span.host_duration_ns - intervals.duration_ns(between[is_long]))
    short_ns = intervals.duration_ns(short_operator_runs(trace, long_ns).times)
    return OperatorCalls(
        times=times,
        share=intervals.duration_ns(times) / whole_ns,
        short_share=short_ns / whole_ns,
        operators=len(operators),
    )


def _operators(trace: Trace) -> pd.DataFrame:
    calls, span = trace.host_calls, window(trace)
    is_counted = (calls["thread"] == main_thread(trace)) & calls["is_operator"]
    operators = calls[(is_counted & (calls["start_ns"] < span.end_ns)).to_numpy()]
    return operators[(operators["end_ns"] > span.start_ns).to_numpy()]


def _between(trace: Trace, start_ns: Ints, end_ns: Ints) -> Intervals:
    span = window(trace)
    return intervals.complement(intervals.union(start_ns, end_ns), span.start_ns, span.end_ns)
