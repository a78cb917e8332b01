"""Graphs whose replays left too few records: the device looks idle, but worked.

AMD-AGI/TraceLens#728: such a trace shows 26 to 99 % idle time on a busy device.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.analyses.health._check import examples
from stepscope.base.findings import Severity
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.dialects import GRAPH_LAUNCH_NAME
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

DAMAGED_SHARE = 0.2
"""Fraction of the graph launches."""


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report launches of graphs with fewer device events than the same graph's other replays."""
    calls = trace.runtime_calls
    is_graph = name_mask(calls["name"], GRAPH_LAUNCH_NAME.search)
    launches = np.flatnonzero(is_graph & (calls["correlation"].to_numpy() >= 0))
    if not len(launches) or not len(trace.device_events):
        return
    recorded, full = _replays(trace, launches)
    short = np.flatnonzero(recorded < full)
    if not len(short):
        return
    rows = launches[short]
    yield HealthItem(
        kind="graph-replay-under-recorded",
        severity=_severity(short, len(launches)),
        count=len(rows),
        of_count=len(launches),
        nature="damage",
        message=(
            f"{count(len(rows), 'replay')} of {len(launches):,} of a graph left fewer device "
            f"events than {'it' if len(rows) == 1 else 'they'} should: the device worked in "
            "apparently idle time"
        ),
        action="missing events count as idle time",
        remedy="Record with a newer driver and torch, or without graphs.",
        examples=examples(
            trace,
            calls["event"].to_numpy()[rows],
            lambda n: _description(int(recorded[short[n]]), int(full[short[n]])),
        ),
    )


def _description(recorded: int, full: int) -> str:
    if not recorded:
        return "no device event"
    return f"{recorded:,} device events; other replays have {full:,}"


def _severity(short: Ints, launch_count: int) -> Severity:
    if len(short) == 1 and launch_count > 1 and short[0] == launch_count - 1:
        return "info"  # the trace ends in the middle of it
    return "critical" if len(short) >= DAMAGED_SHARE * launch_count else "warning"


def _replays(trace: Trace, launches: Ints) -> tuple[Ints, Ints]:
    """Return, for each launch, its number of device events, and the expected number.

    If the vendor does not number the graphs, at least one is expected.
    """
    frame, call = trace.device_events, links(trace).call_of_device_event
    linked = np.flatnonzero(call >= 0)
    counts = np.bincount(call[linked], minlength=len(trace.runtime_calls))
    graphs = np.full(len(trace.runtime_calls), -1, dtype=np.int64)
    graphs[call[linked]] = trace.source.whole("graph id", frame["event"].to_numpy()[linked])
    recorded, graph = counts[launches], graphs[launches]
    most = pd.Series(recorded).groupby(graph).transform("max").to_numpy()
    return recorded, np.where(graph >= 0, most, 1)


DAMAGES = {"graph-replay-under-recorded": {"device times", "launches", "clocks"}}
