"""Loops of Python that take a tensor apart: operators that follow each other again and again.

A loop is a pattern of at most `LONGEST` operators, one of which is `aten::select` (`x[i]`), that
follow each other under one caller. Operators that C++ calls in a loop of its own (`aten::unbind`,
the engine of autograd) are no Python.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.frames.naming import named
from stepscope.trace import Trace

Rows = NDArray[np.int64]
SELECT = "aten::select"
LONGEST = 8
"""As torch's own `ForLoopIndexingPattern` has it."""
OF_CPP = re.compile(r"::|Backward\d+$")
"""Callers that are no Python: an operator of a library, a node of autograd that torch has."""
WORKS = re.compile(
    r"^torch[.:]+distributed\b|^c10d::|^aten::(?:linear|\w*mm\w*|matmul|\w*conv\w*|\w*lstm\w*|\w*gru\w*|\w*rnn\w*|einsum|"
    r"scaled_dot_product\w*|embedding\w*|bilinear)$"
)
"""Operators that do a model's work, whose loop is a recurrence or has its reason; and those of
DistributedDataParallel, which loops over its parameters in C++."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexingLoops:
    """Loops, in no order; all arrays are parallel."""

    first: Rows
    """The first operator (`host_calls` row): an `aten::select`."""
    repeats: Rows
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    operator_ns: NDArray[np.float64]
    """Mean duration of its operators."""
    pattern: Rows
    """Index into `patterns`."""
    patterns: tuple[tuple[str, ...], ...]
    """The operators of one turn."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Siblings:
    """Operators by caller, in the order they began."""

    rows: Rows
    caller: Rows
    name: Rows


def indexing_loops(trace: Trace, least_repeats: int) -> IndexingLoops:
    """Return the loops of at least `least_repeats` turns (2 at least)."""
    siblings = _siblings(trace, least_repeats)
    select = _code(trace, SELECT)
    is_taken = np.zeros(len(siblings.rows), dtype=bool)
    begins, lengths, repeats = [], [], []
    for length in range(1, LONGEST + 1):
        begin, times = _repeated(siblings, length, select, least_repeats)
        until = begin + length * times
        taken = np.append(0, np.cumsum(is_taken))
        free = taken[until] == taken[begin]
        begin, times, until = begin[free], times[free], until[free]
        edges = np.zeros(len(is_taken) + 1, dtype=np.int64)
        np.add.at(edges, begin, 1)
        np.add.at(edges, until, -1)
        is_taken |= np.cumsum(edges)[:-1] > 0
        begins.append(begin)
        repeats.append(times)
        lengths.append(np.full(len(begin), length))
    found = (np.concatenate(each).astype(np.int64) for each in (begins, lengths, repeats))
    return _loops(trace, siblings, *found)


def _code(trace: Trace, name: str) -> int:
    names = list(trace.host_calls["name"].cat.categories)
    return names.index(name) if name in names else -1


def _siblings(trace: Trace, least_repeats: int) -> _Siblings:
    """Return the operators of callers in Python that select often enough."""
    calls = trace.host_calls
    codes = calls["name"].cat.codes.to_numpy()
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    parent = calls["parent"].to_numpy()
    is_cpp = named(calls["name"], OF_CPP.search) & calls["is_operator"].to_numpy()
    caller = np.where(parent >= 0, parent, len(calls) + thread)
    selects = caller[(codes == _code(trace, SELECT)) & ~np.append(is_cpp, False)[parent]]
    size = len(calls) + int(thread.max(initial=-1)) + 1
    often = np.bincount(selects, minlength=size) >= least_repeats
    if not often.any():
        rows = np.empty(0, dtype=np.int64)
    else:
        rows = np.flatnonzero(often[caller] & calls["is_operator"].to_numpy())
        rows = rows[np.argsort(caller[rows], kind="stable")]
    return _Siblings(rows=rows, caller=caller[rows], name=codes[rows].astype(np.int64))


def _repeated(
    of: _Siblings, length: int, select: int, least_repeats: int
) -> tuple[Rows, NDArray[np.int64]]:
    """Return where a pattern of a length begins (with `select`) that repeats, and how often."""
    name, caller = of.name, of.caller
    same = (name[length:] == name[:-length]) & (caller[length:] == caller[:-length])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    begin, until = edges[0::2], edges[1::2] + length
    long_enough = until - begin >= length * least_repeats
    begin, until = begin[long_enough], until[long_enough]
    turn = begin[:, np.newaxis] + np.arange(length)
    is_select = name[turn] == select
    begin = begin + is_select.argmax(axis=1)
    times = (until - begin) // length
    chosen = is_select.any(axis=1) & (times >= least_repeats)
    return begin[chosen], times[chosen]


def _loops(
    trace: Trace, siblings: _Siblings, begin: Rows, length: Rows, repeats: Rows
) -> IndexingLoops:
    calls = trace.host_calls
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    count = length * repeats
    spent = np.append(0, np.cumsum((end - start)[siblings.rows]))
    names = calls["name"].cat.categories
    padded = np.append(siblings.name, np.full(LONGEST, -1))
    turns = padded[begin[:, np.newaxis] + np.arange(LONGEST)]
    turns[np.arange(LONGEST) >= length[:, np.newaxis]] = -1
    distinct, pattern = np.unique(turns, axis=0, return_inverse=True)
    first = siblings.rows[begin]
    return IndexingLoops(
        first=first,
        repeats=repeats,
        start_ns=start[first],
        end_ns=end[siblings.rows[begin + count - 1]],
        operator_ns=(spent[begin + count] - spent[begin]) / np.maximum(1, count),
        pattern=pattern.reshape(-1),
        patterns=tuple(
            tuple(str(names[code]) for code in turn if code >= 0) for turn in distinct.tolist()
        ),
    )
