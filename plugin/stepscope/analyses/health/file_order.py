"""Events whose order in the file differs from their order in time."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import examples
from stepscope.base.formatting import duration
from stepscope.base.report import HealthItem
from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.trace import Trace

MANY_SHARE = 0.05
"""Fraction of neighbours: a few are usual. Traces of torch 1.8 reach 24 %."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report neighbours in the file, of one kind and thread, of which the later began earlier.

    Profilers write one kind or thread after the other; only events of the same are compared.
    """
    columns, kinds = trace.columns, trace.source.kinds
    start = columns.start_ns
    is_same = (kinds[1:] == kinds[:-1]) & (kinds[1:] != int(Kind.OTHER))
    is_same &= (columns.tid[1:] == columns.tid[:-1]) & (columns.pid[1:] == columns.pid[:-1])
    is_same &= (start[1:] != NO_TIME) & (start[:-1] != NO_TIME)
    events = np.flatnonzero(is_same & (start[1:] < start[:-1])) + 1
    total = int(is_same.sum())
    if not len(events) or len(events) < MANY_SHARE * total:
        return
    yield HealthItem(
        kind="out-of-order",
        severity="info",
        count=len(events),
        of_count=total,
        message=(
            f"{len(events):,} of {total:,} events follow a later one of their thread in the file"
        ),
        action="events were sorted by time",
        examples=examples(
            trace,
            events,
            lambda n: (
                f"begins {duration(int(start[events[n] - 1] - start[events[n]]))} before the event "
                "ahead of it"
            ),
        ),
    )


DAMAGES = {"out-of-order": ()}
