"""Slices of the whole recording that are called something, or have an argument of some value."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.search_patterns import Predicate, matches, predicate
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.base.errors import UsageError
from stepscope.ingest import ArgumentColumn
from stepscope.model.trace import Trace

BINS = 1000
MOST_HITS = 10_000
KEY_AND_VALUE = re.compile(r"^(?P<key>[^:]{1,100}):\s*(?P<value>.*)$", re.DOTALL)
NONE = -1


@dataclass(frozen=True, kw_only=True)
class Search:
    """What is searched for."""

    text: str
    is_exact: bool = False
    """Whether small and capital letters differ."""
    is_expression: bool = False
    limit: int = 1000
    first: int = 0
    """How many hits, by time, are left out at the beginning."""
    from_ns: int = 0
    """Hits that begin before are left out, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hits:
    """What was found, by time."""

    total: int
    first: int
    """How many come before those that are listed."""
    slices: NDArray[np.int64]
    """The listed ones."""
    density: NDArray[np.int64]
    """How many begin in each of `BINS` equal times of the recording."""


def search(trace: Trace, wanted: Search) -> Hits:
    """Find slices by their names, or where `key:value` is asked for, by an argument.

    Raises:
        UsageError: nothing is asked for, too much, or an expression that may take for ever.
    """
    if not wanted.text or not 0 <= wanted.limit <= MOST_HITS or wanted.first < 0:
        msg = f"q is what to search for; limit is 0 to {MOST_HITS}, offset 0 or more"
        raise UsageError(msg)
    found = timeline(trace)
    is_hit = _by_name(found, wanted)
    by_argument = _by_argument(trace, found, wanted)
    if by_argument is not None:
        is_hit[by_argument] = True
    for track in found.tracks:  # a step is found on its thread
        if track.kind == "steps":
            for row in found.slices.rows_of(track.id):
                is_hit[slice(*found.slices.times.row_first[row : row + 2].tolist())] = False
    hits = np.flatnonzero(is_hit)
    start_ns = found.slices.times.start_ns[hits]
    width_ns = found.end_ns // BINS + 1
    first = min(wanted.first + int(np.count_nonzero(start_ns < wanted.from_ns)), len(hits))
    return Hits(
        total=len(hits),
        first=first,
        slices=hits[_earliest(start_ns, first, wanted.limit)],
        density=np.bincount(start_ns // width_ns, minlength=BINS),
    )


def _by_name(found: Timeline, wanted: Search) -> NDArray[np.bool_]:
    is_found = _question(wanted, wanted.text)
    is_wanted = np.array(matches(is_found, found.names), dtype=bool)
    return np.asarray(is_wanted[found.slices.name])


def _question(wanted: Search, text: str) -> Predicate:
    return predicate(text, is_exact=wanted.is_exact, is_expression=wanted.is_expression)


def _by_argument(trace: Trace, found: Timeline, wanted: Search) -> NDArray[np.int32] | None:
    """Return the slices with an argument of that value; None where no argument is asked for."""
    match = KEY_AND_VALUE.match(wanted.text)
    if match is None:
        return None
    key = match["key"].strip().casefold()
    arguments = trace.columns.arguments
    columns = [column for name, column in arguments.items() if name.casefold() == key]
    events = [_events_of(column, wanted, match["value"].strip()) for column in columns]
    places = found.slice_of_event[np.concatenate([np.zeros(0, dtype=np.int32), *events])]
    return np.asarray(places[places != NONE])


def _events_of(column: ArgumentColumn, wanted: Search, value: str) -> NDArray[np.int32]:
    """Return the events whose value it is: numbers equal it, texts hold it."""
    if not value:
        return column.rows
    texts, values = column.texts, column.values
    if texts is not None:
        is_wanted = np.array(matches(_question(wanted, value), texts), dtype=bool)
        return np.asarray(column.rows[is_wanted[values]])
    try:
        number = float(value)
    except ValueError:
        return column.rows[:0]
    return np.asarray(column.rows[values == number])


def _earliest(start_ns: NDArray[np.int64], first: int, limit: int) -> NDArray[np.int64]:
    """Return which are the earliest, in order, some left out at the beginning."""
    behind = first + limit
    if behind < len(start_ns):
        latest = np.partition(start_ns, behind)[behind]
        some = np.flatnonzero(start_ns <= latest)
    else:
        some = np.arange(len(start_ns))
    order = np.argsort(start_ns[some], kind="stable")
    found: NDArray[np.int64] = some[order[first:behind]]
    return found
