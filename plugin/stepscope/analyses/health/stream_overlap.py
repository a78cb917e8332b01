"""Work of one stream that overlaps, though a stream runs one thing after the other.

Programmatic dependent launch (Hopper and later) lets a kernel begin while the one before it winds
down: a few microseconds, on purpose. Longer overlaps are wrong durations, which a union of times
hides and which make a device look busy (AMD-AGI/TraceLens#669: 7 of 55,423 events made up 62 % of
the device's time).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.health._check import by_share, examples, on_device, shorten
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

SMALL_NS = 20_000
"""On a B200 dependent launches overlap by 3.7 µs at most; microsecond stamps blur 13 µs."""
DOUBTFUL_SHARE = 0.01
DAMAGED_SHARE = 0.10
"""Fraction of the work that could overlap, by events or by time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Overlaps:
    rows: Ints
    """Rows of `device_events` that begin before one ahead of them on their stream ends."""
    beneath: Ints
    """For each, the row of the earlier one that ends last."""
    overlap_ns: Ints
    total_count: int
    total_ns: int

    def longer(self) -> "_Overlaps":
        """Return those that no dependent launch explains."""
        is_long = self.overlap_ns > SMALL_NS
        return replace(
            self,
            rows=self.rows[is_long],
            beneath=self.beneath[is_long],
            overlap_ns=self.overlap_ns[is_long],
        )

    @property
    def share(self) -> float:
        """The larger of two fractions: of the events, and of their time."""
        of_time = int(self.overlap_ns.sum()) / max(1, self.total_ns)
        return max(len(self.rows) / self.total_count, of_time)


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report overlaps on a stream: short ones as a note, long ones as damage."""
    overlaps = _find_overlaps(trace)
    if overlaps is None or not len(overlaps.rows):
        return
    long = overlaps.longer()
    yield _damage(trace, long) if len(long.rows) else _note(trace, overlaps)


def _note(trace: Trace, overlaps: _Overlaps) -> HealthItem:
    names = trace.device_events["name"]
    return HealthItem(
        kind="same-stream-overlap",
        severity="info",
        count=len(overlaps.rows),
        of_count=overlaps.total_count,
        message=_message(overlaps),
        action="unchanged: programmatic dependent launches and rounding to microseconds do this",
        examples=examples(
            trace,
            trace.device_events["event"].to_numpy()[overlaps.rows],
            lambda n: (
                f"{on_device(trace, int(overlaps.rows[n]))}, "
                f"{duration(int(overlaps.overlap_ns[n]))} before the end of "
                f"{shorten(str(names.iloc[overlaps.beneath[n]]))}"
            ),
        ),
    )


def _damage(trace: Trace, overlaps: _Overlaps) -> HealthItem:
    stuck, counts = np.unique(overlaps.beneath, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return HealthItem(
        kind="same-stream-overlap",
        severity=by_share(overlaps.share, DOUBTFUL_SHARE, DAMAGED_SHARE),
        count=len(overlaps.rows),
        of_count=overlaps.total_count,
        nature="damage",
        message=f"{_message(overlaps)}: durations are wrong",
        action="busy time counts each nanosecond once; sums of durations count the overlap twice",
        remedy="Record it again, with a newer driver and torch.",
        examples=examples(
            trace,
            trace.device_events["event"].to_numpy()[stuck[order]],
            lambda n: (
                f"{on_device(trace, int(stuck[order[n]]))}; "
                f"{count(int(counts[order[n]]), 'later event begins', 'later events begin')} "
                "before it ends"
            ),
        ),
    )


def _message(overlaps: _Overlaps) -> str:
    verb = "begins" if len(overlaps.rows) == 1 else "begin"
    return (
        f"{count(len(overlaps.rows), 'device event')} of {overlaps.total_count:,} {verb} before "
        f"the one ahead on the same stream ends, "
        f"by up to {duration(int(overlaps.overlap_ns.max()))}"
    )


def _find_overlaps(trace: Trace) -> _Overlaps | None:
    frame = trace.device_events
    stream = frame["stream"].to_numpy()
    graph = trace.source.whole("graph id", frame["event"].to_numpy())
    # a graph's branches run concurrently, on whatever stream it was launched
    rows = np.flatnonzero((stream >= 0) & (graph < 0))
    if len(rows) < 2:
        return None
    lane = _lanes(frame["device"].to_numpy()[rows], stream[rows])
    order = np.argsort(lane, kind="stable")
    rows, lane = rows[order], lane[order]
    start, end = frame["start_ns"].to_numpy()[rows], frame["end_ns"].to_numpy()[rows]
    ended = pd.Series(end).groupby(lane).cummax().to_numpy()
    last = np.maximum.accumulate(np.where(end == ended, np.arange(len(rows)), 0))
    overlap = np.minimum(ended[:-1], end[1:]) - start[1:]
    overlap[lane[1:] != lane[:-1]] = 0
    late = np.flatnonzero(overlap > 0)
    return _Overlaps(
        rows=rows[late + 1],
        beneath=rows[last[late]],
        overlap_ns=overlap[late],
        total_count=len(rows),
        total_ns=int((end - start).sum()),
    )


def _lanes(device: Ints, stream: Ints) -> NDArray[np.integer[Any]]:
    """Return a small number for each stream of each device; small integers sort fast."""
    devices, streams = pd.factorize(device)[0], pd.factorize(stream)[0]
    lane = pd.factorize(devices.astype(np.int64) << 32 | streams)[0]
    return lane.astype(np.int16) if lane.max() < 2**15 else lane


DAMAGES = {"same-stream-overlap": {"device times", "clocks"}}
