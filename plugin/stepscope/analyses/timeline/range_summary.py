"""What runs in a part of the timeline, by name, and how long each track is busy and idle in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.slice_neighbors import in_time
from stepscope.analyses.timeline.slices import Slices
from stepscope.analyses.timeline.timeline import Timeline
from stepscope.base.errors import UsageError
from stepscope.model import intervals
from stepscope.model.frames import Column, Schema

NESTED = frozenset({"thread", "annotations"})
SCHEMA: Schema = (
    Column("name", "object", "text", "The slices' name."),
    Column("category", "object", "text", "What they are."),
    Column("slice_count", "int64", "count", "How many of them are in the time, wholly or in part."),
    Column("total_ns", "int64", "ns", "Their time within it; overlaps where they nest."),
    Column(
        "self_ns",
        "float64",
        "ns",
        "The same without what they contain: where ranges cross, what is in both is taken from one"
        " of them. NaN where slices do not nest.",
    ),
    Column("mean_ns", "float64", "ns", "Mean of their whole durations."),
    Column("max_ns", "int64", "ns", "The longest of them, as a whole."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class TrackTime:
    """One track's time in the area."""

    track: int
    busy_ns: int
    idle_ns: int
    """The rest of the area's time."""
    slice_count: int


@dataclass(frozen=True, kw_only=True, eq=False)
class RangeSummary:
    """What is in an area."""

    table: pd.DataFrame
    """In `SCHEMA` columns, the longest first."""
    tracks: tuple[TrackTime, ...]


def summarize(
    found: Timeline, slices: Slices, tracks: Sequence[int], time: tuple[int, int]
) -> RangeSummary:
    """Sum up what some tracks show in a time.

    Raises:
        UsageError: the time is empty.
    """
    if time[0] >= time[1]:
        msg = "start_ns lies before end_ns"
        raise UsageError(msg)
    parts = [_Part.of(found, slices, track, time) for track in tracks]
    return RangeSummary(
        table=_table(found, slices, [part for part in parts if len(part.places)]),
        tracks=tuple(part.time(*time) for part in parts),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    track: int
    places: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    """Within the area."""
    end_ns: NDArray[np.int64]
    nests: bool

    @classmethod
    def of(cls, found: Timeline, slices: Slices, track: int, time: tuple[int, int]) -> "_Part":
        rows = [_in_time(slices, row, time) for row in slices.rows_of(track)]
        none = np.zeros(0, dtype=np.int64)
        return cls(
            track=track,
            places=np.concatenate([none, *(row[0] for row in rows)]),
            start_ns=np.concatenate([none, *(row[1] for row in rows)]),
            end_ns=np.concatenate([none, *(row[2] for row in rows)]),
            nests=found.tracks[track].kind in NESTED,
        )

    def time(self, start_ns: int, end_ns: int) -> TrackTime:
        busy_ns = intervals.duration_ns(intervals.union(self.start_ns, self.end_ns))
        return TrackTime(
            track=self.track,
            busy_ns=busy_ns,
            idle_ns=end_ns - start_ns - busy_ns,
            slice_count=len(self.places),
        )


_InRow = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _in_time(slices: Slices, row: int, time: tuple[int, int]) -> _InRow:
    """Return the slices of a row that are in the time, and from when to when they are."""
    times, within = slices.times, in_time(slices, row, time)
    places = np.arange(within.start, within.stop, dtype=np.int64)
    start_ns = times.start_ns[places]
    end_ns = start_ns + times.duration_ns(places)
    return places, np.maximum(start_ns, time[0]), np.minimum(end_ns, time[1])


def _self_ns(slices: Slices, part: _Part) -> NDArray[np.float64]:
    """Return the time of slices without those that they contain; NaN where slices do not nest."""
    if not part.nests:
        return np.full(len(part.places), np.nan)
    order = np.argsort(part.places)
    parent = slices.parent[part.places]
    at = order[np.searchsorted(part.places, parent, sorter=order).clip(max=len(order) - 1)]
    inner = np.flatnonzero(part.places[at] == parent)  # a parent is in the area when its child is
    at = at[inner]
    within_ns = (part.end_ns - part.start_ns).astype(np.float64)
    inner_ns = np.bincount(at, weights=within_ns[inner], minlength=len(part.places))
    for place, rows in _crossing(slices, part, inner, at):
        inner_ns[place] = intervals.duration_ns(
            intervals.union(part.start_ns[rows], part.end_ns[rows])
        )
    left: NDArray[np.float64] = within_ns - inner_ns
    return left


def _crossing(
    slices: Slices, part: _Part, inner: NDArray[np.int64], at: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield slices whose children may overlap, since they lie in several rows, and the children."""
    row = slices.row_of(part.places[inner])
    one_of_them = np.zeros(len(part.places), dtype=np.int64)
    one_of_them[at] = row
    is_mixed = np.zeros(len(part.places), dtype=bool)
    is_mixed[at[row != one_of_them[at]]] = True
    chosen = np.flatnonzero(is_mixed[at])
    chosen = chosen[np.argsort(at[chosen], kind="stable")]
    places, first = np.unique(at[chosen], return_index=True)
    if len(places):
        yield from zip(places.tolist(), np.split(inner[chosen], first[1:]), strict=True)


def _table(found: Timeline, slices: Slices, parts: Sequence[_Part]) -> pd.DataFrame:
    places = np.concatenate([np.zeros(0, dtype=np.int64), *(part.places for part in parts)])
    within = np.concatenate([np.zeros(0, dtype=np.int64), *(p.end_ns - p.start_ns for p in parts)])
    own = np.concatenate([np.zeros(0), *(_self_ns(slices, part) for part in parts)])
    whole = slices.times.duration_ns(places)
    key = slices.name[places].astype(np.int64) * len(CATEGORIES) + slices.category[places]
    group, keys = pd.factorize(key, sort=True)
    count = len(keys)
    calls = np.bincount(group, minlength=count)
    longest = np.zeros(count, dtype=np.int64)
    np.maximum.at(longest, group, whole)
    labels = list(CATEGORIES)
    table = pd.DataFrame(
        {
            "name": np.array([found.names[each // len(labels)] for each in keys.tolist()], object),
            "category": np.array([labels[each % len(labels)] for each in keys.tolist()], object),
            "slice_count": calls,
            "total_ns": sums(within, group, count),
            "self_ns": np.bincount(group, weights=own, minlength=count),
            "mean_ns": sums(whole, group, count) / np.maximum(calls, 1),
            "max_ns": longest,
        }
    )
    return table.sort_values("total_ns", ascending=False, kind="stable").reset_index(drop=True)
