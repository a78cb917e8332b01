"""Search for slices by name or by the value of an argument: plain text, or a regular expression."""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.linear_expression import LinearExpression
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.base.errors import UsageError
from stepscope.ingest import ArgumentColumn
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace

BINS = 1000
MOST_HITS = 10_000
KEY_AND_VALUE = re.compile(r"^(?P<key>[^:]{1,100}):\s*(?P<value>.*)$", re.DOTALL)
MOST_LETTERS = 400
MOST_SECONDS = 2.0
"""For a whole search."""
Predicate = Callable[[str], bool]


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search request."""

    text: str
    is_exact: bool = False
    """Whether small and capital letters differ."""
    is_expression: bool = False
    limit: int = 1000
    first: int = 0
    """Number of hits, by time, to skip."""
    from_ns: int = 0
    """Hits that begin earlier are skipped, too."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hits:
    """Matching slices, by time."""

    total: int
    first: int
    """Number of hits before the listed ones."""
    slices: Ints
    """The listed ones."""
    density: Ints
    """Number of hits that begin in each of `BINS` equal parts of the trace."""


def search(trace: Trace, request: Search) -> Hits:
    """Find slices by their names, or for `key:value` by an argument.

    Raises:
        UsageError: the text is empty or too long, or an expression is invalid or takes too long.
    """
    if not request.text or not 0 <= request.limit <= MOST_HITS or request.first < 0:
        msg = f"q is the text to search for; limit is 0 to {MOST_HITS}, offset 0 or more"
        raise UsageError(msg)
    layout = timeline(trace)
    predicate_of = partial(
        predicate,
        is_exact=request.is_exact,
        is_expression=request.is_expression,
        check_time=time_limit(),
    )
    is_hit = _mask(predicate_of(request.text), layout.names)[layout.slices.name]
    by_argument = _by_argument(trace, layout, request.text, predicate_of)
    if by_argument is not None:
        is_hit[by_argument] = True
    for track in layout.tracks:  # a step is on its thread as well
        if track.kind == "steps":
            for row in layout.slices.rows_of(track.id):
                is_hit[slice(*layout.slices.times.row_first[row : row + 2].tolist())] = False
    hits = np.flatnonzero(is_hit)
    start_ns = layout.slices.times.start_ns[hits]
    width_ns = layout.end_ns // BINS + 1
    first = min(request.first + int(np.count_nonzero(start_ns < request.from_ns)), len(hits))
    return Hits(
        total=len(hits),
        first=first,
        slices=hits[_earliest(start_ns, first, request.limit)],
        density=np.bincount(np.minimum(start_ns // width_ns, BINS - 1), minlength=BINS),
    )


def _mask(is_match: Predicate, texts: Iterable[str]) -> Mask:
    return np.array([is_match(text) for text in texts], dtype=bool)


def _by_argument(
    trace: Trace, layout: Timeline, text: str, predicate_of: Callable[[str], Predicate]
) -> NDArray[np.int32] | None:
    """Return the slices with the requested argument value; None for a search by name alone."""
    match = KEY_AND_VALUE.match(text)
    if match is None:
        return None
    key = match["key"].strip().casefold()
    arguments = trace.columns.arguments
    columns = [column for name, column in arguments.items() if name.casefold() == key]
    events = [_events_with(column, match["value"].strip(), predicate_of) for column in columns]
    slices = layout.slice_of_event[np.concatenate([np.zeros(0, dtype=np.int32), *events])]
    return np.asarray(slices[slices != NONE])


def _events_with(
    column: ArgumentColumn, value: str, predicate_of: Callable[[str], Predicate]
) -> NDArray[np.int32]:
    """Return the events with this value: numbers are equal to it, texts contain it."""
    if not value:
        return column.rows
    texts, values = column.texts, column.values
    if texts is not None:
        return np.asarray(column.rows[_mask(predicate_of(value), texts)[values]])
    try:
        number = float(value)
    except ValueError:
        return column.rows[:0]
    return np.asarray(column.rows[values == number])


def _earliest(start_ns: Ints, first: int, limit: int) -> Ints:
    """Return the indices of the `limit` earliest after the first ones, in order."""
    end = first + limit
    if end < len(start_ns):
        latest = np.partition(start_ns, end)[end]
        candidates = np.flatnonzero(start_ns <= latest)
    else:
        candidates = np.arange(len(start_ns))
    order = np.argsort(start_ns[candidates], kind="stable")
    earliest: Ints = candidates[order[first:end]]
    return earliest


def predicate(
    text: str, *, is_exact: bool, is_expression: bool, check_time: Callable[[], None]
) -> Predicate:
    """Return a function that checks whether a name contains the searched text.

    `check_time` is called during long searches, and raises to end them.

    Raises:
        UsageError: the text is too long, or an invalid or unsupported expression.
    """
    if len(text) > MOST_LETTERS:
        msg = f"the text to search for has up to {MOST_LETTERS} characters"
        raise UsageError(msg)
    if is_expression:
        expression = LinearExpression(text, is_exact=is_exact)
        return lambda name: expression.is_in(name, check_time)
    if is_exact:
        return lambda name: text in name
    folded = text.casefold()
    return lambda name: folded in name.casefold()


def time_limit() -> Callable[[], None]:
    """Return a function that raises `UsageError` once `MOST_SECONDS` have passed."""
    until = time.monotonic() + MOST_SECONDS

    def check_time() -> None:
        if time.monotonic() > until:
            msg = f"the search took longer than {MOST_SECONDS:.0f} s: make the expression simpler"
            raise UsageError(msg)

    return check_time
