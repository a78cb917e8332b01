"""How long a loop stood waiting for DataLoader workers; the rest is taking their batches over."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.frame_times import ALL, times
from stepscope.model import call_tree, intervals
from stepscope.model.frames.name_masks import named
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace

WAITING = re.compile(
    r"^<built-in (?:method (?:poll of select|acquire of _thread)|function (?:select|Wait\w+)>)"
)
"""Python waits for a pipe (Unix, Windows) or, behind the thread that pins memory, for a lock."""


def waiting_share(trace: Trace, rows: NDArray[np.int64]) -> float | None:
    """Return the share of some calls (`host_calls` rows) in a wait; None: stacks do not tell."""
    loading = spans(trace.host_calls.iloc[rows])
    calls = trace.python_calls
    is_inside = call_tree.enclosing(loading, spans(calls)) >= 0
    if not is_inside.any():
        return None
    waits = calls[is_inside & named(calls["name"], WAITING.search)]
    return intervals.duration_ns(times(waits, ALL)) / max(1, int((loading[2] - loading[1]).sum()))
