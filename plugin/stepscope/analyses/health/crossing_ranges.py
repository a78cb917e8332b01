"""Host ranges of one thread that cross: each begins inside another and ends after it."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stepscope.analyses.health._check import UNLIKELY_SHARE, by_share, examples
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

BLUR_NS = 1_000
"""Stamps of torch before 2.3 are whole microseconds: a child may stick out by one."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report operators and annotations that end after the range that they began in."""
    frame = trace.host_calls
    if len(frame) < 2:
        return
    rows, beyond_ns = _crossing(frame)
    if not len(rows):
        return
    yield HealthItem(
        kind="crossing-ranges",
        severity=by_share(len(rows) / len(frame), UNLIKELY_SHARE),
        count=len(rows),
        of_count=len(frame),
        nature="damage",
        message=(
            f"{count(len(rows), 'host range')} of {len(frame):,} "
            f"{'begins' if len(rows) == 1 else 'begin'} inside another and "
            f"{'ends' if len(rows) == 1 else 'end'} after it"
        ),
        action="they are nested as siblings of the range that they cross",
        examples=examples(
            trace,
            frame["event"].to_numpy()[rows],
            lambda n: f"ends {duration(int(beyond_ns[n]))} after the range that it begins in",
        ),
    )


def _crossing(frame: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the rows that begin inside the one before, and by how much they end after it.

    Of two that cross, the later has the same parent as the earlier, or none.
    """
    parent, thread = frame["parent"].to_numpy(), frame["thread"].cat.codes.to_numpy()
    family = np.where(parent >= 0, parent, -1 - thread.astype(np.int64)).astype(np.int32)
    order = np.argsort(family, kind="stable")
    family = family[order]
    start, end = frame["start_ns"].to_numpy()[order], frame["end_ns"].to_numpy()[order]
    beyond_ns = np.where(end[:-1] - start[1:] > BLUR_NS, end[1:] - end[:-1], 0)
    rows = np.flatnonzero((beyond_ns > BLUR_NS) & (family[1:] == family[:-1]))
    return order[rows + 1], beyond_ns[rows]


DAMAGES = {"crossing-ranges": {"nesting"}}
