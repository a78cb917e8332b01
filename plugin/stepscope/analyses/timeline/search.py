"""Search for slices by name or by the value of an argument: plain text, or a regular expression.

Python's own engine may take very long on some expressions: those are refused. Its effort grows with
the length of the text to the power of the repeats, so texts are cut if there are several repeats,
and repeats must not nest.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from re import _constants as codes
from re import _parser as parser
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.base.errors import UsageError
from stepscope.ingest import ArgumentColumn
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace

BINS = 1000
MOST_HITS = 10_000
KEY_AND_VALUE = re.compile(r"^(?P<key>[^:]{1,100}):\s*(?P<value>.*)$", re.DOTALL)
MOST_LETTERS = 400
MOST_REPEATS = 3
MOST_CHOICES = 16
"""Of `|` and `?`."""
LONGEST_BY_REPEATS = (100_000, 10_000, 1_000, 250)
"""Searched length of a text by the number of repeats: some 10^8 steps at the worst."""
MOST_SECONDS = 2.0
"""For all names together."""
REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT})
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
        UsageError: the text is empty or too long, or an expression that may take very long.
    """
    if not request.text or not 0 <= request.limit <= MOST_HITS or request.first < 0:
        msg = f"q is the text to search for; limit is 0 to {MOST_HITS}, offset 0 or more"
        raise UsageError(msg)
    layout = timeline(trace)
    is_match = np.array(matches(_predicate(request, request.text), layout.names), dtype=bool)
    is_hit = is_match[layout.slices.name]
    by_argument = _by_argument(trace, layout, request)
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


def _predicate(request: Search, text: str) -> Predicate:
    return predicate(text, is_exact=request.is_exact, is_expression=request.is_expression)


def _by_argument(trace: Trace, layout: Timeline, request: Search) -> NDArray[np.int32] | None:
    """Return the slices with the requested argument value; None for a search by name alone."""
    match = KEY_AND_VALUE.match(request.text)
    if match is None:
        return None
    key = match["key"].strip().casefold()
    arguments = trace.columns.arguments
    columns = [column for name, column in arguments.items() if name.casefold() == key]
    events = [_events_with(column, request, match["value"].strip()) for column in columns]
    slices = layout.slice_of_event[np.concatenate([np.zeros(0, dtype=np.int32), *events])]
    return np.asarray(slices[slices != NONE])


def _events_with(column: ArgumentColumn, request: Search, value: str) -> NDArray[np.int32]:
    """Return the events with this value: numbers are equal to it, texts contain it."""
    if not value:
        return column.rows
    texts, values = column.texts, column.values
    if texts is not None:
        is_match = np.array(matches(_predicate(request, value), texts), dtype=bool)
        return np.asarray(column.rows[is_match[values]])
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


def predicate(text: str, *, is_exact: bool, is_expression: bool) -> Predicate:
    """Return a function that checks whether a name contains the searched text.

    Raises:
        UsageError: the expression is invalid, or may take very long.
    """
    if len(text) > MOST_LETTERS:
        msg = f"the text to search for has up to {MOST_LETTERS} characters"
        raise UsageError(msg)
    if is_expression:
        return _expression(text, is_exact=is_exact)
    if is_exact:
        return lambda name: text in name
    folded = text.casefold()
    return lambda name: folded in name.casefold()


def matches(is_match: Predicate, texts: Iterable[str]) -> list[bool]:
    """Return the predicate's result for each text.

    Raises:
        UsageError: it takes too long.
    """
    until = time.monotonic() + MOST_SECONDS
    results = []
    for text in texts:
        results.append(is_match(text))
        if time.monotonic() > until:
            msg = f"the expression took longer than {MOST_SECONDS:.0f} s: make it simpler"
            raise UsageError(msg)
    return results


def _expression(text: str, *, is_exact: bool) -> Predicate:
    try:
        tree = parser.parse(text)
        compiled = re.compile(text, 0 if is_exact else re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"{text} is no regular expression: {error}"
        raise UsageError(msg) from error
    complexity = _Complexity()
    complexity.visit(tree, is_repeated=False)
    longest = LONGEST_BY_REPEATS[complexity.repeats]
    return lambda name: compiled.search(name[:longest]) is not None


class _Complexity:
    """Counts the repeats and choices of an expression."""

    def __init__(self) -> None:
        self.repeats = 0
        self.choices = 0

    def visit(self, tree: Any, *, is_repeated: bool) -> None:  # noqa: ANN401 - re's own tree
        for code, argument in tree:
            if code is codes.GROUPREF or code is codes.GROUPREF_EXISTS:
                msg = "a regular expression may not refer to its groups"
                raise UsageError(msg)
            if code in REPEATS or code is codes.POSSESSIVE_REPEAT:
                self._visit_repeat(argument, is_repeated=is_repeated)
                continue
            parts = argument if isinstance(argument, tuple) else (argument,)
            if code is codes.BRANCH:
                parts = argument[1]
                self._count_choices(len(parts) - 1, is_repeated=is_repeated)
            for part in parts:  # of groups and assertions
                if isinstance(part, parser.SubPattern):
                    self.visit(part, is_repeated=is_repeated)

    def _visit_repeat(self, argument: Any, *, is_repeated: bool) -> None:  # noqa: ANN401
        _, most, inner = argument
        if most <= 1:
            self._count_choices(1, is_repeated=is_repeated)
        else:
            self.repeats += 1
            if is_repeated or self.repeats > MOST_REPEATS:
                msg = (
                    f"a regular expression may hold up to {MOST_REPEATS} repeats (*, +, {{n}}),"
                    " and none inside another: that could take very long"
                )
                raise UsageError(msg)
        self.visit(inner, is_repeated=is_repeated or most > 1)

    def _count_choices(self, count: int, *, is_repeated: bool) -> None:
        self.choices += count
        if is_repeated or self.choices > MOST_CHOICES:
            msg = (
                f"a regular expression may hold up to {MOST_CHOICES} choices (|, ?),"
                " and none inside a repeat: that could take very long"
            )
            raise UsageError(msg)
