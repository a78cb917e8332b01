"""Python loops that index a tensor element by element: repeating patterns of operators.

A loop is a repeating pattern of at most `LONGEST` operators under one caller. It indexes a tensor
with an `aten::select` per iteration (`x[i]`), or with an `aten::unbind` in front (`for row in x`)
if each iteration reads a value. Operators that C++ calls in its own loop (`aten::unbind`, the
autograd engine) do not count.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

SELECT = "aten::select"
UNBIND = "aten::unbind"
READS = frozenset({"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense"})
"""Operators that return a tensor's value to Python. After `aten::unbind` they show that the loop
needs only values; other operators may be a model's work, row by row."""
LONGEST = 8
"""As in torch's `ForLoopIndexingPattern`."""
OF_CPP = re.compile(r"::|Backward\d+$")
"""Callers in C++: an operator of a library, or an autograd node of torch."""
WORKS = re.compile(
    r"^torch[.:]+distributed\b|^c10d::|^aten::(?:linear|\w*mm\w*|matmul|\w*conv\w*|\w*lstm\w*|\w*gru\w*|\w*rnn\w*|einsum|"
    r"scaled_dot_product\w*|embedding\w*|bilinear)$"
)
"""Operators of a model, whose loop is a recurrence or necessary; and those of
DistributedDataParallel, which loops over its parameters in C++."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexingLoops:
    """Loops in no particular order; all arrays are parallel."""

    first: Ints
    """First operator (`host_calls` row): an `aten::select`, or the `aten::unbind` in front."""
    repeats: Ints
    start_ns: Ints
    end_ns: Ints
    operator_ns: Floats
    """Mean duration of its operators."""
    pattern: Ints
    """Index into `patterns`."""
    patterns: tuple[tuple[str, ...], ...]
    """Operators of one iteration."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Siblings:
    """Operators by caller, in start order."""

    rows: Ints
    caller: Ints
    name: Ints
    taken_apart: Ints
    """Number of rows that an `aten::unbind` returns; 0 for other operators."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Repeats:
    """Repeating patterns of one length, by index among siblings; all arrays are parallel."""

    first: Ints
    """Start of the loop: its first iteration, or an `aten::unbind` right before it."""
    begin: Ints
    """Start of the first iteration."""
    times: Ints


def indexing_loops(trace: Trace, least_repeats: int) -> IndexingLoops:
    """Return the loops of at least `least_repeats` (2 or more) iterations."""
    siblings = _siblings(trace, least_repeats)
    is_taken = np.zeros(len(siblings.rows), dtype=bool)
    parts, lengths = [], []
    for length in range(1, LONGEST + 1):
        repeats = _repeated(trace, siblings, length, least_repeats)
        until = repeats.begin + length * repeats.times
        taken = np.append(0, np.cumsum(is_taken))
        free = taken[until] == taken[repeats.begin]
        repeats, until = _selected(repeats, free), until[free]
        edges = np.zeros(len(is_taken) + 1, dtype=np.int64)
        np.add.at(edges, repeats.begin, 1)
        np.add.at(edges, until, -1)
        is_taken |= np.cumsum(edges)[:-1] > 0
        parts.append(repeats)
        lengths.append(np.full(len(until), length))
    return _loops(trace, siblings, _concatenated(parts), np.concatenate(lengths).astype(np.int64))


def _selected(repeats: _Repeats, which: Mask) -> _Repeats:
    return _Repeats(
        first=repeats.first[which], begin=repeats.begin[which], times=repeats.times[which]
    )


def _concatenated(parts: list[_Repeats]) -> _Repeats:
    return _Repeats(
        first=np.concatenate([repeats.first for repeats in parts]),
        begin=np.concatenate([repeats.begin for repeats in parts]),
        times=np.concatenate([repeats.times for repeats in parts]),
    )


def _codes(trace: Trace, names: frozenset[str]) -> list[int]:
    categories = enumerate(trace.host_calls["name"].cat.categories)
    return [code for code, name in categories if name in names]


def _siblings(trace: Trace, least_repeats: int) -> _Siblings:
    """Return the operators of Python callers that select, or read values, often enough."""
    calls = trace.host_calls
    codes = calls["name"].cat.codes.to_numpy()
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    parent = calls["parent"].to_numpy()
    is_cpp = name_mask(calls["name"], OF_CPP.search) & calls["is_operator"].to_numpy()
    caller = np.where(parent >= 0, parent, len(calls) + thread)
    is_select = np.isin(codes, _codes(trace, frozenset({SELECT})))
    is_read = np.isin(codes, _codes(trace, READS))
    selecting = caller[(is_select | is_read) & ~np.append(is_cpp, False)[parent]]
    size = len(calls) + int(thread.max(initial=-1)) + 1
    often = np.bincount(selecting, minlength=size) >= least_repeats
    if not often.any():
        rows = np.empty(0, dtype=np.int64)
    else:
        rows = np.flatnonzero(often[caller] & calls["is_operator"].to_numpy())
        rows = rows[np.argsort(caller[rows], kind="stable")]
    is_unbind = np.isin(codes[rows], _codes(trace, frozenset({UNBIND})))
    selects = np.bincount(caller[is_select], minlength=size)
    return _Siblings(
        rows=rows,
        caller=caller[rows],
        name=codes[rows].astype(np.int64),
        taken_apart=np.where(is_unbind, selects[rows], 0),
    )


def _repeated(trace: Trace, of: _Siblings, length: int, least_repeats: int) -> _Repeats:
    """Return the repeating patterns of one length that index a tensor."""
    name, caller = of.name, of.caller
    same = (name[length:] == name[:-length]) & (caller[length:] == caller[:-length])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    begin, until = edges[0::2], edges[1::2] + length
    long_enough = until - begin >= length * least_repeats
    begin, until = begin[long_enough], until[long_enough]
    turn = name[begin[:, np.newaxis] + np.arange(length)]
    is_select = np.isin(turn, _codes(trace, frozenset({SELECT})))
    has_select = np.asarray(is_select.any(axis=1), dtype=bool)
    has_read = np.asarray(np.isin(turn, _codes(trace, READS)).any(axis=1), dtype=bool)
    first_select = begin + is_select.argmax(axis=1)
    selecting = _Repeats(
        first=first_select, begin=first_select, times=(until - first_select) // length
    )
    reading = _behind_unbind(of, begin, (until - begin) // length)
    repeats = _concatenated(
        [_selected(selecting, has_select), _selected(reading, has_read & ~has_select)]
    )
    return _selected(repeats, repeats.times >= least_repeats)


def _behind_unbind(of: _Siblings, begin: Ints, times: Ints) -> _Repeats:
    """Return the repeats that follow an `aten::unbind`, starting at it.

    There are at most as many iterations as rows: an `.item()` after the loop looks like one more.
    `zip(x, y)` unbinds several tensors before its first iteration.
    """
    follows = np.append(False, of.caller[1:] == of.caller[:-1])
    apart_before = np.where(follows, np.roll(of.taken_apart, 1), 0)
    is_first = (of.taken_apart > 0) & (apart_before == 0)
    first_of_row = np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), 0))
    times = np.minimum(times, apart_before[begin])
    return _Repeats(first=first_of_row[begin - 1], begin=begin, times=times)


def _loops(trace: Trace, siblings: _Siblings, repeats: _Repeats, length: Ints) -> IndexingLoops:
    calls = trace.host_calls
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    begin = repeats.begin
    count = length * repeats.times
    spent = np.append(0, np.cumsum((end - start)[siblings.rows]))
    names = calls["name"].cat.categories
    padded = np.append(siblings.name, np.full(LONGEST, -1))
    turns = padded[begin[:, np.newaxis] + np.arange(LONGEST)]
    turns[np.arange(LONGEST) >= length[:, np.newaxis]] = -1
    distinct, pattern = np.unique(turns, axis=0, return_inverse=True)
    first = siblings.rows[repeats.first]
    return IndexingLoops(
        first=first,
        repeats=repeats.times,
        start_ns=start[first],
        end_ns=end[siblings.rows[begin + count - 1]],
        operator_ns=(spent[begin + count] - spent[begin]) / np.maximum(1, count),
        pattern=pattern.reshape(-1),
        patterns=tuple(
            tuple(str(names[code]) for code in turn if code >= 0) for turn in distinct.tolist()
        ),
    )
