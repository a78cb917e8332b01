"""Time that a processor computes without a device: self time of long operators.

Calling an operator costs some microseconds of Python, dispatch and profiler. Self time of a call
that takes many times as long is computing, except for an operator that reads a single value: a long
one waits for a device that was not recorded.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.window import window
from stepscope.model.trace import Trace, computed

LONG_NS = 20_000
"""Of a call's self time: calls cost 2 to 5 µs each in the traces of sample_logs."""
READING = "aten::_local_scalar_dense"


@dataclass(frozen=True, kw_only=True)
class CpuComputeTime:
    """Of the thread that computes most, in the window."""

    share: float
    """Fraction of the window in self time of long operator calls; 0 without any."""
    shares: Mapping[str, float]
    """The same by operator name, in descending order."""


@computed
def cpu_compute_time(trace: Trace) -> CpuComputeTime:
    """Return the fraction of the window in which a thread computes in operators."""
    span, calls = window(trace), trace.host_calls
    start, self_ns = calls["start_ns"].to_numpy(), calls["self_ns"].to_numpy()
    is_long = calls["is_operator"].to_numpy() & (self_ns >= LONG_NS)
    is_long &= (calls["name"] != READING).to_numpy()
    is_long &= (start >= span.start_ns) & (start < span.end_ns)
    rows = np.flatnonzero(is_long)
    thread = calls["thread"].cat.codes.to_numpy()[rows]
    if not len(rows):
        return CpuComputeTime(share=0.0, shares={})
    busiest = np.bincount(thread - thread.min(), self_ns[rows]).argmax() + thread.min()
    rows = rows[thread == busiest]
    names = calls["name"].astype(object).to_numpy()[rows]
    fractions = pd.Series(self_ns[rows]).groupby(names, sort=False).sum() / max(1, span.duration_ns)
    largest = fractions.sort_values(ascending=False, kind="stable")
    return CpuComputeTime(
        share=float(fractions.sum()),
        shares={str(name): float(share) for name, share in largest.items()},
    )
