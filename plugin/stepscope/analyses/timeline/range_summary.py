"""Summary of a time range of the timeline: slices by name, busy and idle time by track."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.group_statistics import extremes, sums
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slice_neighbors import in_time
from stepscope.analyses.timeline.slices import Slices
from stepscope.analyses.timeline.timeline import Timeline
from stepscope.base.errors import UsageError
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema

NESTED = frozenset({"thread", "annotations"})
SCHEMA: Schema = (
    Column("name", "object", "text", "The slices' name."),
    Column("category", "object", "text", "Their category."),
    Column("slice_count", "int64", "count", "Number of them in the range, wholly or in part."),
    Column("total_ns", "int64", "ns", "Their time in the range; nested slices overlap."),
    Column("share", "float64", "share", "Fraction of the range in which any of them ran."),
    Column("self_ns", "float64", "ns", "Their total without their children; time in two crossing"
           " ranges counts for one of them. NaN if slices do not nest."),
    Column("mean_ns", "float64", "ns", "Mean of their whole durations."),
    Column("min_ns", "int64", "ns", "The shortest of them, as a whole."),
    Column("max_ns", "int64", "ns", "The longest of them, as a whole."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class TrackTime:
    """One track's time in the range."""

    track: int
    busy_ns: int
    idle_ns: int
    """The rest of the range."""
    slice_count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeSummary:
    """Summary of a time range."""

    table: pd.DataFrame
    """In `SCHEMA` columns, the longest first."""
    tracks: tuple[TrackTime, ...]


def summarize(
    layout: Timeline, slices: Slices, tracks: Sequence[int], time: tuple[int, int]
) -> RangeSummary:
    """Summarize the slices of some tracks in a time range.

    Raises:
        UsageError: the range is empty.
    """
    if time[0] >= time[1]:
        msg = "start_ns lies before end_ns"
        raise UsageError(msg)
    parts = [_TrackPart.of(layout, slices, track, time) for track in tracks]
    return RangeSummary(
        table=_table(layout, slices, [part for part in parts if len(part.places)], time),
        tracks=tuple(part.time(*time) for part in parts),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _TrackPart:
    track: int
    places: Ints
    start_ns: Ints
    """Clipped to the range."""
    end_ns: Ints
    nests: bool

    @classmethod
    def of(
        cls, layout: Timeline, slices: Slices, track: int, time: tuple[int, int]
    ) -> "_TrackPart":
        rows = [_in_time(slices, row, time) for row in slices.rows_of(track)]
        none = np.zeros(0, dtype=np.int64)
        return cls(
            track=track,
            places=np.concatenate([none, *(row[0] for row in rows)]),
            start_ns=np.concatenate([none, *(row[1] for row in rows)]),
            end_ns=np.concatenate([none, *(row[2] for row in rows)]),
            nests=layout.tracks[track].kind in NESTED,
        )

    def time(self, start_ns: int, end_ns: int) -> TrackTime:
        busy_ns = intervals.duration_ns(intervals.union(self.start_ns, self.end_ns))
        return TrackTime(
            track=self.track,
            busy_ns=busy_ns,
            idle_ns=end_ns - start_ns - busy_ns,
            slice_count=len(self.places),
        )


_InRow = tuple[Ints, Ints, Ints]


def _in_time(slices: Slices, row: int, time: tuple[int, int]) -> _InRow:
    """Return the slices of a row in the range, and their clipped starts and ends."""
    times, inside = slices.times, in_time(slices, row, time)
    places = np.arange(inside.start, inside.stop, dtype=np.int64)
    start_ns = times.start_ns[places]
    end_ns = start_ns + times.duration_ns(places)
    return places, np.maximum(start_ns, time[0]), np.minimum(end_ns, time[1])


def _self_ns(slices: Slices, part: _TrackPart) -> Floats:
    """Return the time of slices without their children; NaN if slices do not nest."""
    if not part.nests:
        return np.full(len(part.places), np.nan)
    order = np.argsort(part.places)
    parent = slices.parent[part.places]
    parent_index = order[
        np.searchsorted(part.places, parent, sorter=order).clip(max=len(order) - 1)
    ]
    inner = np.flatnonzero(
        part.places[parent_index] == parent
    )  # a parent is in the area when its child is
    parent_index = parent_index[inner]
    inside_ns = (part.end_ns - part.start_ns).astype(np.float64)
    inner_ns = np.bincount(parent_index, weights=inside_ns[inner], minlength=len(part.places))
    for index, rows in _crossing(slices, part, inner, parent_index):
        inner_ns[index] = intervals.duration_ns(
            intervals.union(part.start_ns[rows], part.end_ns[rows])
        )
    left: Floats = inside_ns - inner_ns
    return left


def _crossing(
    slices: Slices, part: _TrackPart, inner: Ints, parent_index: Ints
) -> Iterator[tuple[int, Ints]]:
    """Yield slices whose children lie in several rows, and so may overlap, with the children."""
    row = slices.row_of(part.places[inner])
    one_of_them = np.zeros(len(part.places), dtype=np.int64)
    one_of_them[parent_index] = row
    is_mixed = np.zeros(len(part.places), dtype=bool)
    is_mixed[parent_index[row != one_of_them[parent_index]]] = True
    mixed = np.flatnonzero(is_mixed[parent_index])
    mixed = mixed[np.argsort(parent_index[mixed], kind="stable")]
    parents, first = np.unique(parent_index[mixed], return_index=True)
    if len(parents):
        yield from zip(parents.tolist(), np.split(inner[mixed], first[1:]), strict=True)


def _busy_ns(group: Ints, count: int, start_ns: Ints, end_ns: Ints) -> Ints:
    """Return the time in which any interval of each group lies."""
    order = np.lexsort((start_ns, group))
    group, start_ns = group[order], start_ns[order]
    latest = pd.Series(end_ns[order]).groupby(group).cummax()
    before = latest.groupby(group).shift(fill_value=0).to_numpy()
    return sums(np.maximum(latest.to_numpy() - np.maximum(start_ns, before), 0), group, count)


def _table(
    layout: Timeline, slices: Slices, parts: Sequence[_TrackPart], time: tuple[int, int]
) -> pd.DataFrame:
    none = np.zeros(0, dtype=np.int64)
    places = np.concatenate([none, *(part.places for part in parts)])
    start_ns = np.concatenate([none, *(part.start_ns for part in parts)])
    end_ns = np.concatenate([none, *(part.end_ns for part in parts)])
    inside_ns = end_ns - start_ns
    self_ns = np.concatenate([np.zeros(0), *(_self_ns(slices, part) for part in parts)])
    whole = slices.times.duration_ns(places)
    key = slices.name[places].astype(np.int64) * len(CATEGORIES) + slices.category[places]
    group, keys = pd.factorize(key, sort=True)
    count = len(keys)
    calls = np.bincount(group, minlength=count)
    shortest, longest = extremes(whole, group, count)
    labels = list(CATEGORIES)
    table = pd.DataFrame(
        {
            "name": np.array([layout.names[key // len(labels)] for key in keys.tolist()], object),
            "category": np.array([labels[key % len(labels)] for key in keys.tolist()], object),
            "slice_count": calls,
            "total_ns": sums(inside_ns, group, count),
            "share": _busy_ns(group, count, start_ns, end_ns) / (time[1] - time[0]),
            "self_ns": np.bincount(group, weights=self_ns, minlength=count),
            "mean_ns": sums(whole, group, count) / np.maximum(calls, 1),
            "min_ns": shortest,
            "max_ns": longest,
        }
    )
    return table.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
