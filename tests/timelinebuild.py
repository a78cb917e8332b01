"""Slices made of a few numbers, for tests of the timeline."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from stepscope.analyses.timeline.slices import Slices, UnsortedSlices, sort_slices
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.model.trace import Trace

Span = tuple[int, int]
"""Start and end."""
Row = Sequence[Span]

LENGTHS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 3).map(lambda power: 4**power),
    st.integers(0, 10_000),
)
ROW = st.lists(st.tuples(LENGTHS, LENGTHS), max_size=40)
"""Gaps before slices, and the slices' durations."""
ROWS = st.lists(ROW, max_size=4)


def spans(row: Sequence[tuple[int, int]]) -> list[Span]:
    """Return slices of a row from gaps and durations."""
    found, at = [], 0
    for gap, duration in row:
        found.append((at + gap, at + gap + duration))
        at += gap + duration
    return found


def slices_of(rows: Sequence[Row], track: int = 0) -> Slices:
    """Return rows of one track as slices; events count from 0, names are those."""
    flat = [(number, *span) for number, row in enumerate(rows) for span in row]
    row, start, end = (
        np.array([each[place] for each in flat], dtype=np.int64) for place in range(3)
    )
    event = np.arange(len(flat))
    return sort_slices(
        [
            UnsortedSlices(
                track=np.full(len(flat), track, dtype=np.int32),
                row=row.astype(np.int32),
                parent=np.full(len(flat), -1),
                event=event.astype(np.uint32),
                start_ns=start,
                end_ns=end,
                name=event.astype(np.int32),
                category=np.zeros(len(flat), dtype=np.uint8),
            )
        ]
    )


def shown(trace: Trace) -> dict[str, list[list[str]]]:
    """Return the names on each track, row by row; each with its owner before it."""
    found = timeline(trace)
    return {
        _title(found, number): [
            [found.names[code] for code in found.slices.name[_row(found, row)].tolist()]
            for row in found.slices.rows_of(number)
        ]
        for number, track in enumerate(found.tracks)
        if track.kind != "group"
    }


def _row(found: Timeline, row: int) -> slice:
    first, behind = found.slices.times.row_first[row : row + 2].tolist()
    return slice(first, behind)


def _title(found: Timeline, number: int) -> str:
    track = found.tracks[number]
    owner = "" if track.parent is None else f"{found.tracks[track.parent].label}: "
    return owner + track.label
