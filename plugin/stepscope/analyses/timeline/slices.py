"""All slices of some tracks, row after row: the source of tiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.detail_levels import Level, Times, levels
from stepscope.model.arrays import NONE, Ints

MOST_ROWS = 1000
"""Limit of rows per track: deeper slices are counted, not drawn."""
LATEST_NS = 2**53 - 1
"""Largest number that JSON holds exactly: 104 days. Later ends are drawn until then."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UnsortedSlices:
    """Slices with their track and row; those of a row are ordered by time."""

    track: NDArray[np.int32]
    row: NDArray[np.int32]
    parent: Ints
    """Index of the innermost slice that contains each; -1: none, or they do not nest."""
    event: NDArray[np.uint32]
    """Index in the file; `NO_EVENT` for slices without an event."""
    start_ns: Ints
    end_ns: Ints
    name: NDArray[np.int32]
    category: NDArray[np.uint8]


@dataclass(frozen=True, kw_only=True, eq=False)
class Slices:
    """Slices by track, row and time; arrays of one length are parallel."""

    row_track: NDArray[np.int32]
    """Each row's track."""
    row_number: NDArray[np.int32]
    """Each row's number in its track, from 0 at the top."""
    times: Times
    parent: NDArray[np.int32]
    """The innermost slice of the track that contains each; -1: none, or they do not nest."""
    event: NDArray[np.uint32]
    name: NDArray[np.int32]
    category: NDArray[np.uint8]
    levels: tuple[Level, ...]

    def __len__(self) -> int:
        """Return the number of slices."""
        return len(self.event)

    def rows_of(self, track: int) -> range:
        """Return the rows of a track."""
        low, high = np.searchsorted(self.row_track, [track, track + 1]).tolist()
        return range(low, high)

    def row_of(self, indices: NDArray[np.integer]) -> Ints:
        """Return the row of each slice."""
        rows: Ints = np.searchsorted(self.times.row_first, indices, side="right") - 1
        return rows


NO_EVENT = 2**32 - 1


def clipped(start_ns: Ints, duration_ns: Ints) -> tuple[Ints, Ints]:
    """Return starts and ends inside the drawable range: from 0 to `LATEST_NS`."""
    if len(start_ns) and start_ns.min() >= 0 and duration_ns.min() >= 0:
        end = start_ns + duration_ns  # of sums beyond 64 bits one is below its start
        if end.max() <= LATEST_NS and end.min() >= 0 and duration_ns.max() <= LATEST_NS:
            return start_ns, end
    start = np.clip(start_ns, 0, LATEST_NS)
    end = np.clip(start_ns, -LATEST_NS, LATEST_NS) + np.clip(duration_ns, 0, LATEST_NS)
    return start, np.clip(end, start, LATEST_NS)


def sort_slices(parts: Sequence[UnsortedSlices]) -> Slices:
    """Return the slices in order, without those in too deep rows."""
    placed = _joined(parts)
    first_row = np.append(0, np.cumsum(row_counts(placed.track, placed.row)))
    row = first_row[placed.track] + placed.row
    narrow = row.astype(np.uint16) if first_row[-1] <= np.iinfo(np.uint16).max else row
    order = np.argsort(narrow, kind="stable")
    used, row_count = np.flatnonzero(np.bincount(row, minlength=1)), np.bincount(row)
    track = np.searchsorted(first_row, used, side="right") - 1
    start_ns = placed.start_ns[order]
    duration_ns = placed.end_ns[order] - start_ns
    times = Times(
        start_ns=start_ns,
        busy_before_ns=np.append(0, np.cumsum(duration_ns)),
        row_first=np.append(0, np.cumsum(row_count[used])) if len(order) else np.zeros(1, int),
    )
    used = used if len(order) else used[:0]
    return Slices(
        row_track=track[: len(used)].astype(np.int32),
        row_number=(used - first_row[track[: len(used)]]).astype(np.int32),
        times=times,
        parent=_new_indices(placed.parent, order),
        event=placed.event[order],
        name=placed.name[order],
        category=placed.category[order],
        levels=levels(times),
    )


def row_counts(track: NDArray[np.integer], row: NDArray[np.integer]) -> Ints:
    """Return the number of rows of each track, up to `MOST_ROWS`."""
    if not len(track):
        return np.zeros(0, dtype=np.int64)
    key = track.astype(np.int64) * MOST_ROWS + np.minimum(row, MOST_ROWS - 1)
    used = np.flatnonzero(np.bincount(key))
    counts: Ints = np.zeros(int(track.max()) + 1, dtype=np.int64)
    counts[used // MOST_ROWS] = used % MOST_ROWS + 1  # of a track the last stays
    return counts


def _new_indices(parent: Ints, order: Ints) -> NDArray[np.int32]:
    """Return parents, given by their indices before sorting, by those after it."""
    index_of = np.full(len(order) + 1, NONE, dtype=np.int32)
    index_of[order] = np.arange(len(order), dtype=np.int32)
    indices: NDArray[np.int32] = index_of[parent[order]]
    return indices


def _joined(parts: Sequence[UnsortedSlices]) -> UnsortedSlices:
    shallow = [(part, np.flatnonzero(part.row < MOST_ROWS)) for part in parts]

    def column(name: str, dtype: type[np.generic]) -> NDArray[Any]:
        columns = [_selected(getattr(part, name), rows) for part, rows in shallow]
        return np.concatenate([np.zeros(0, dtype=dtype), *columns])

    return UnsortedSlices(
        track=column("track", np.int32),
        row=column("row", np.int32),
        parent=_parents(shallow),
        event=column("event", np.uint32),
        start_ns=column("start_ns", np.int64),
        end_ns=column("end_ns", np.int64),
        name=column("name", np.int32),
        category=column("category", np.uint8),
    )


def _selected(values: NDArray[Any], rows: Ints) -> NDArray[Any]:
    return values if len(rows) == len(values) else values[rows]


def _parents(shallow: Sequence[tuple[UnsortedSlices, Ints]]) -> Ints:
    """Return the parents as indices into all shallow slices; -1 for a deeper parent."""
    parents = [np.zeros(0, dtype=np.int64)]
    first = 0
    for part, rows in shallow:
        number = np.full(len(part.row) + 1, NONE, dtype=np.int64)
        number[rows] = np.arange(first, first + len(rows))
        parents.append(number[part.parent[rows]])
        first += len(rows)
    return np.concatenate(parents)
