"""Python loops over the elements of a tensor: repeating patterns of short operators.

A loop is a pattern of operators that repeats under one caller. Each iteration takes an element or a
part of a tensor (`x[i]`: `aten::select`; `x == i`), or joins small tensors (`aten::cat`); or the
loop follows an `aten::unbind` (`for row in x`) and each iteration reads a value. Patterns nest:
inside, of at most `LONGEST` operators, from two iterations on; around them, of at most
`LONGEST_AROUND` operators and inner loops. Operators that C++ calls in its own loop
(`aten::unbind`, the autograd engine) do not count, nor those of DataLoaders and optimizers.
"""

import re
from dataclasses import dataclass, fields, replace

import numpy as np

from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

SELECT = "aten::select"
UNBIND = "aten::unbind"
PARTS = frozenset(
    {SELECT, "aten::slice", "aten::narrow", "aten::cat", "aten::stack", "aten::lift_fresh"}
)
"""Operators that take a part of a tensor, join parts, or make one of Python's numbers."""
COMPARES = frozenset({"aten::eq", "aten::ne"})
WITH_NUMBER = re.compile(r"^\[\[[^\[\]]+\],\[\]\]$")
"""Shapes of a tensor and a number: `x == i` takes the part of class or sample `i`."""
READS = frozenset({"aten::item", "aten::is_nonzero", "aten::_local_scalar_dense"})
"""Operators that return a tensor's value to Python. After `aten::unbind` they show that the loop
needs only values; other operators may be a model's work, row by row."""
LONGEST = 16
"""Operators of an iteration of an inner loop; torch's `ForLoopIndexingPattern` has up to 8."""
LONGEST_AROUND = 48
"""Operators and inner loops of an iteration: matching boxes to anchors takes some forty."""
MOST_SHOWN = 8
"""Operators of an iteration that are shown."""
MORE = "…"
OF_CPP = re.compile(r"::|Backward\d+$")
"""Callers in C++: an operator of a library, or an autograd node of torch."""
OF_TORCH = re.compile(r"^enumerate\(DataLoader\)|^Optimizer\.")
"""Torch's annotations around loops that other rules are about."""
WORKS = re.compile(
    r"^(?!aten::)|^aten::(?:linear|\w*mm\w*|matmul|\w*conv\w*|\w*lstm\w*|\w*gru\w*|\w*rnn\w*|einsum|"
    r"\w*attention\w*|\w*(?:batch|layer|group|instance)_norm\w*|embedding\w*|bilinear)$"
)
"""Operators of a model, whose loop is a recurrence or necessary; those of other libraries; of the
backward pass; and of DistributedDataParallel, which loops over its parameters in C++."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IndexingLoops:
    """Loops in no particular order; all arrays are parallel."""

    first: Ints
    """First operator (`host_calls` row): of the first iteration, or the `aten::unbind` in front."""
    repeats: Ints
    start_ns: Ints
    second_ns: Ints
    """Start of the second iteration."""
    end_ns: Ints
    pattern: Ints
    """Index into `patterns`."""
    patterns: tuple[tuple[str, ...], ...]
    """Operators of one iteration, once those of its inner loops; beyond `MOST_SHOWN`: `MORE`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Siblings:
    """Operators by caller, in start order; or these with inner loops in place of operators."""

    rows: Ints
    """The operators (`host_calls` rows); inner loops do not change them."""
    start: Ints
    """Index of each item's first operator among `rows`, and the number of operators."""
    caller: Ints
    name: Ints
    """Code of the operator's name; of inner loops, of their pattern."""
    is_part: Mask
    """Whether the item takes or joins parts of a tensor."""
    is_read: Mask
    taken_apart: Ints
    """Number of rows that an `aten::unbind` returns; 0 for other operators."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Repeats:
    """Repeating patterns, by index among items or operators; all arrays are parallel."""

    first: Ints
    """Start of the loop: its first iteration, or an `aten::unbind` right before it."""
    begin: Ints
    """Start of the first iteration."""
    second: Ints
    """Start of the second one."""
    until: Ints
    """Index behind the last one."""
    times: Ints


def indexing_loops(
    trace: Trace, least_repeats: int, most_operator_ns: float = np.inf
) -> IndexingLoops:
    """Return the outermost loops of at least `least_repeats` (2 or more) iterations.

    Loops over a model's work are left out, and those whose operators take longer on average than
    `most_operator_ns`.
    """
    operators = _siblings(trace, least_repeats)
    inner = _repeats(operators, 2, LONGEST)
    items = _with_loops(operators, inner)
    later = replace(inner, begin=inner.second)
    around = _by_operator(items, _repeats(items, least_repeats, LONGEST_AROUND))
    inner = _selected(inner, inner.times >= least_repeats)
    inner, around = (
        _selected(repeats, _is_overhead(trace, operators.rows, repeats, most_operator_ns))
        for repeats in (inner, around)
    )
    is_around = _is_inside(len(operators.rows), around)
    loops = _concatenated([around, _selected(inner, ~is_around[inner.begin])])
    return _loops(trace, operators, loops, ~_is_inside(len(operators.rows), later))


def _selected(repeats: _Repeats, which: Mask) -> _Repeats:
    return _Repeats(
        **{field.name: getattr(repeats, field.name)[which] for field in fields(repeats)}
    )


def _concatenated(parts: list[_Repeats]) -> _Repeats:
    names = [field.name for field in fields(_Repeats)]
    return _Repeats(
        **{
            name: np.concatenate([getattr(part, name) for part in parts]).astype(np.int64)
            for name in names
        }
    )


def _codes(trace: Trace, names: frozenset[str]) -> list[int]:
    categories = enumerate(trace.host_calls["name"].cat.categories)
    return [code for code, name in categories if name in names]


def _siblings(trace: Trace, least_repeats: int) -> _Siblings:
    """Return the operators of Python callers that take parts, or read values, often enough."""
    calls = trace.host_calls
    codes = calls["name"].cat.codes.to_numpy()
    thread = calls["thread"].cat.codes.to_numpy().astype(np.int64)
    parent = calls["parent"].to_numpy()
    is_cpp = name_mask(calls["name"], OF_CPP.search) & calls["is_operator"].to_numpy()
    is_cpp |= name_mask(calls["name"], OF_TORCH.search)
    caller = np.where(parent >= 0, parent, len(calls) + thread)
    is_part, is_read, compares = (
        np.isin(codes, _codes(trace, names)) for names in (PARTS, READS, COMPARES)
    )
    is_part |= compares & name_mask(calls["input_dims"], WITH_NUMBER.match)
    indexing = caller[(is_part | is_read) & ~np.append(is_cpp, False)[parent]]
    size = len(calls) + int(thread.max(initial=-1)) + 1
    often = np.bincount(indexing, minlength=size) >= least_repeats
    rows = np.flatnonzero(often[caller] & calls["is_operator"].to_numpy())
    rows = rows[np.argsort(caller[rows], kind="stable")]
    is_unbind = np.isin(codes[rows], _codes(trace, frozenset({UNBIND})))
    is_select = np.isin(codes, _codes(trace, frozenset({SELECT})))
    selects = np.bincount(caller[is_select], minlength=size)
    return _Siblings(
        rows=rows,
        start=np.arange(len(rows) + 1),
        caller=caller[rows],
        name=codes[rows].astype(np.int64),
        is_part=is_part[rows],
        is_read=is_read[rows],
        taken_apart=np.where(is_unbind, selects[rows], 0),
    )


def _repeats(of: _Siblings, least_repeats: int, longest: int) -> _Repeats:
    """Return disjoint repeating patterns; the shortest that explains a stretch counts."""
    is_taken = np.zeros(len(of.name), dtype=bool)
    parts = []
    for length in range(1, longest + 1):
        repeats = _repeated(of, length, least_repeats, is_taken)
        is_taken |= _is_inside(len(is_taken), repeats)
        parts.append(repeats)
    return _concatenated(parts)


def _is_inside(count: int, repeats: _Repeats) -> Mask:
    """Return which of `count` indexes are in an iteration."""
    edges = np.zeros(count + 1, dtype=np.int64)
    np.add.at(edges, repeats.begin, 1)
    np.add.at(edges, repeats.until, -1)
    return np.asarray(np.cumsum(edges)[:-1] > 0)


def _repeated(of: _Siblings, length: int, least_repeats: int, is_taken: Mask) -> _Repeats:
    """Return the repeating patterns of one length that go through parts of a tensor."""
    name, caller = of.name, of.caller
    same = (name[length:] == name[:-length]) & (caller[length:] == caller[:-length])
    same &= ~is_taken[length:] & ~is_taken[:-length]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    begin, until = edges[0::2], edges[1::2] + length
    long_enough = until - begin >= length * least_repeats
    begin, until = begin[long_enough], until[long_enough]
    turn = begin[:, np.newaxis] + np.arange(length)
    has_part, has_read = of.is_part[turn].any(axis=1), of.is_read[turn].any(axis=1)
    first_part = begin + of.is_part[turn].argmax(axis=1)
    parting = _of_length(length, first_part, first_part, (until - first_part) // length)
    first_unbind, rows = _unbind_before(of, begin)
    reading = _of_length(length, first_unbind, begin, np.minimum((until - begin) // length, rows))
    repeats = _concatenated(
        [_selected(parting, has_part), _selected(reading, has_read & ~has_part)]
    )
    return _selected(repeats, repeats.times >= least_repeats)


def _of_length(length: int, first: Ints, begin: Ints, times: Ints) -> _Repeats:
    return _Repeats(
        first=first,
        begin=begin,
        second=begin + length,
        until=begin + length * times,
        times=times,
    )


def _unbind_before(of: _Siblings, begin: Ints) -> tuple[Ints, Ints]:
    """Return the first `aten::unbind` right before each loop, and the rows that the last gave.

    There are at most as many iterations as rows: an `.item()` after the loop looks like one more.
    `zip(x, y)` unbinds several tensors before its first iteration.
    """
    follows = np.append(False, of.caller[1:] == of.caller[:-1])
    apart_before = np.where(follows, np.roll(of.taken_apart, 1), 0)
    is_first = (of.taken_apart > 0) & (apart_before == 0)
    first_of_row = np.maximum.accumulate(np.where(is_first, np.arange(len(is_first)), 0))
    return first_of_row[begin - 1], apart_before[begin]


def _with_loops(of: _Siblings, inner: _Repeats) -> _Siblings:
    """Return operators with one item in place of each inner loop, whatever its iterations."""
    is_first = ~_is_inside(len(of.name), inner)
    is_first[inner.begin] = True
    start = np.flatnonzero(is_first)
    name, is_part = of.name.copy(), of.is_part.copy()
    name[inner.begin] = of.name.max(initial=0) + 1 + _distinct(_turns(of.name, inner, LONGEST))[1]
    is_part[inner.begin] = True
    return _Siblings(
        rows=of.rows,
        start=np.append(start, len(of.rows)),
        caller=of.caller[start],
        name=name[start],
        is_part=is_part[start],
        is_read=of.is_read[start],
        taken_apart=of.taken_apart[start],
    )


def _turns(name: Ints, repeats: _Repeats, longest: int) -> Ints:
    """Return the names of each loop's first iteration, `longest` at most; -1: none."""
    index = repeats.begin[:, np.newaxis] + np.arange(longest)
    turns = np.append(name, np.full(longest, -1))[index]
    turns[index >= repeats.second[:, np.newaxis]] = -1
    return np.asarray(turns)


def _distinct(turns: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows, and the index of each row among them."""
    distinct, index = np.unique(turns, axis=0, return_inverse=True)
    return distinct, index.reshape(-1)


def _by_operator(items: _Siblings, repeats: _Repeats) -> _Repeats:
    """Return loops by index of operators."""
    start = items.start
    return _Repeats(
        first=start[repeats.first],
        begin=start[repeats.begin],
        second=start[repeats.second],
        until=start[repeats.until],
        times=repeats.times,
    )


def _is_overhead(trace: Trace, rows: Ints, repeats: _Repeats, most_ns: float) -> Mask:
    """Return which loops do no model's work, in operators of at most `most_ns` on average."""
    is_work = name_mask(trace.host_calls["name"], WORKS.search)[rows]
    works = _sums(is_work.astype(np.int64), repeats)
    return np.asarray((works == 0) & (_operator_ns(trace, rows, repeats) <= most_ns))


def _operator_ns(trace: Trace, rows: Ints, repeats: _Repeats) -> Floats:
    """Return the mean duration of each loop's operators."""
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[rows]
    count = np.maximum(1, repeats.until - repeats.begin)
    return np.asarray(_sums(duration_ns, repeats) / count, dtype=np.float64)


def _sums(values: Ints, repeats: _Repeats) -> Ints:
    before = np.append(0, np.cumsum(values))
    return np.asarray(before[repeats.until] - before[repeats.begin])


def _loops(trace: Trace, operators: _Siblings, repeats: _Repeats, is_shown: Mask) -> IndexingLoops:
    calls, rows = trace.host_calls, operators.rows
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    shown = np.flatnonzero(is_shown)
    begin, second = (np.searchsorted(shown, index) for index in (repeats.begin, repeats.second))
    turns = _turns(
        operators.name[shown], replace(repeats, begin=begin, second=second), MOST_SHOWN + 1
    )
    names = (*map(str, calls["name"].cat.categories), MORE)
    turns[turns[:, -1] >= 0, -1] = len(names) - 1
    distinct, pattern = _distinct(turns)
    first = rows[repeats.first]
    return IndexingLoops(
        first=first,
        repeats=repeats.times,
        start_ns=start[first],
        second_ns=start[rows[repeats.second]],
        end_ns=end[rows[repeats.until - 1]],
        pattern=pattern,
        patterns=tuple(
            tuple(names[code] for code in turn if code >= 0) for turn in distinct.tolist()
        ),
    )
