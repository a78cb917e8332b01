"""Changes of operators and device work: added, gone, slower or faster.

Rows sum to the compared time: what is too small for a row by shape and module is summed by name,
and what is still too small in a last row, the rest.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stepscope.base.findings import Unit
from stepscope.comparison.messages import Change, MatchedBy, ModuleRow, Row, Status
from stepscope.comparison.samples import Costs, Sample
from stepscope.comparison.side import (
    CostTable,
    SideSamples,
    between_spans,
    cost_table,
    sampled,
    totals,
)
from stepscope.comparison.significance import changes
from stepscope.model.arrays import Ints, Mask

SMALL_SHARE = 0.001
"""Fraction of the mean step below which an operator has no row of its own."""
MOST_ROWS = 2000
MOST_SHAPES = 3
Sides = tuple[SideSamples, SideSamples]


@dataclass(frozen=True, kw_only=True)
class _Scheme:
    costs: Callable[[Sample], Costs]
    levels: tuple[tuple[str, ...], ...]
    matched_by: tuple[MatchedBy, ...]


_OPERATORS = _Scheme(
    costs=lambda sample: sample.operators,
    levels=(
        ("kind", "name", "shape", "module"),
        ("kind", "name", "module"),
        ("kind", "name"),
        ("kind", "stem"),
    ),
    matched_by=("name, shape and module", "name and module", "name", "name without its hash", ""),
)
_DEVICE_WORK = _Scheme(
    costs=lambda sample: sample.device_work,
    levels=(("kind", "name", "operator"), ("kind", "name"), ("kind", "stem")),
    matched_by=("name and operator", "name", "name without its hash", ""),
)

_MODULES = _Scheme(
    costs=lambda sample: sample.operators, levels=(("module",),), matched_by=("name", "")
)


def operator_rows(sides: Sides) -> tuple[Row, ...]:
    """Return operators and annotations, by name, shape and module."""
    return _rows(sides, _OPERATORS)


def device_rows(sides: Sides) -> tuple[Row, ...]:
    """Return kernels, copies and memory sets, by name and the operator that launched them."""
    return _rows(sides, _DEVICE_WORK)


def module_rows(sides: Sides) -> tuple[ModuleRow, ...]:
    """Return the modules of operators; empty where no module was recorded."""
    pair = _matched_costs(sides, _MODULES)
    if not len(pair.groups.summed):
        return ()
    device, host = _changes(sides, pair, ("device_ns", "host_ns"), "ns")
    calls = _changes(sides, pair, ("call_count",), "count")[0]
    names = _first(pair, "module")
    if not any(names):
        return ()
    rows = [
        ModuleRow(
            name=name,
            status=_status(*of),
            calls=of[0],
            device=of[1],
            host=of[2],
            is_rest=is_rest,
            summed_count=summed,
        )
        for name, is_rest, summed, *of in zip(
            names,
            pair.is_rest.tolist(),
            pair.groups.summed.tolist(),
            calls,
            device,
            host,
            strict=True,
        )
    ]
    return tuple(sorted(rows, key=_order))


@dataclass(frozen=True, kw_only=True, eq=False)
class _MatchedCosts:
    """The costs of both sides, matched: each row of their keys belongs to one group."""

    costs: tuple[CostTable, CostTable]
    groups: "RowMatch"
    is_rest: Mask
    """Whether each group sums what is too small for a row: the last one, if any."""


def _rows(sides: Sides, scheme: _Scheme) -> tuple[Row, ...]:
    pair = _matched_costs(sides, scheme)
    if not len(pair.groups.summed):
        return ()
    times = _changes(sides, pair, ("device_ns", "host_ns"), "ns")
    # tested separately, so that they do not weaken the test of self times
    wholes = _changes(sides, pair, ("device_total_ns", "host_total_ns"), "ns")
    calls = _changes(sides, pair, ("call_count",), "count")[0]
    names = [_first(pair, column) for column in pair.costs[0].keys.columns]
    identity = dict(zip(pair.costs[0].keys.columns, names, strict=True))
    shapes = [_shapes(pair, side) for side in (0, 1)]
    rows = [
        Row(
            kind="rest" if is_rest else identity["kind"][row],
            name=identity["name"][row] or identity["stem"][row],
            status=_status(calls[row], times[0][row], times[1][row]),
            matched_by=_matched_by(pair, scheme, row, identity["name"][row]),
            summed_count=int(pair.groups.summed[row]),
            module=identity["module"][row] if "module" in identity else "",
            operator=identity["operator"][row] if "operator" in identity else "",
            shapes_before=shapes[0][row],
            shapes_after=shapes[1][row],
            calls=calls[row],
            device=times[0][row],
            host=times[1][row],
            device_total=wholes[0][row],
            host_total=wholes[1][row],
        )
        for row, is_rest in enumerate(pair.is_rest.tolist())
    ]
    return tuple(sorted(rows, key=_order))


def _matched_by(pair: _MatchedCosts, scheme: _Scheme, row: int, name: str) -> MatchedBy:
    matched_by = scheme.matched_by[pair.groups.level[row]]
    # small rows are summed by name without its hash, which most names lack
    return "name" if matched_by and name and pair.groups.summed[row] > 1 else matched_by


def _order(row: Row | ModuleRow) -> tuple[bool, float, str]:
    main = row.device if row.device.before or row.device.after else row.host
    return row.status in {"same", "untested"}, -abs(main.delta), row.name


def _matched_costs(sides: Sides, scheme: _Scheme) -> _MatchedCosts:
    costs = _cost_tables(sides, scheme)
    keys = pd.concat([of.keys for of in costs], ignore_index=True)
    matched = match_rows(costs[0].keys, costs[1].keys, scheme.levels)
    names = scheme.levels[-1]
    unmatched = len(scheme.levels)
    if unmatched > 1:
        is_small = _is_small(sides, costs, matched)
        level = (unmatched - 1, unmatched)
        matched = _summed(matched, is_small, keys, names, level)
    is_small = _is_small(sides, costs, matched)
    matched = _summed(matched, is_small, keys, (), (unmatched, unmatched))
    is_rest = np.zeros(len(matched.level), dtype=bool)
    is_rest[-1:] = is_small.any()
    return _MatchedCosts(costs=costs, groups=matched, is_rest=is_rest)


def _cost_tables(sides: Sides, scheme: _Scheme) -> tuple[CostTable, CostTable]:
    first, second = (
        cost_table(side, [scheme.costs(trace) for trace in side.traces]) for side in sides
    )
    return first, second


def _is_small(sides: Sides, costs: tuple[CostTable, CostTable], matched: "RowMatch") -> Mask:
    """Return a mask of the groups that have no row: small on both sides, or one of too many."""
    count = len(matched.level)
    means, calls = [], []
    for side, of_side, group in zip(sides, costs, matched.sides, strict=True):
        sums = totals(of_side, group, count)
        means.append(np.maximum(sums["host_ns"], sums["device_ns"]) / float(side.ranks.sum()))
        calls.append(sums["call_count"] > 0)
    larger = np.maximum(*means)
    least_ns = SMALL_SHARE * max(float(side.durations().mean()) for side in sides)
    worth = np.flatnonzero((larger >= least_ns) | (calls[0] != calls[1]))
    is_small = np.ones(count, dtype=bool)
    is_small[worth[np.argsort(-larger[worth], kind="stable")[:MOST_ROWS]]] = False
    return is_small


def _summed(
    matched: "RowMatch",
    is_small: Mask,
    keys: pd.DataFrame,
    columns: Sequence[str],
    levels: tuple[int, int],
) -> "RowMatch":
    """Sum small groups with equal columns into groups after the others.

    `keys` are those of both sides; `levels` of the new groups with rows of both, and of one.
    """
    group = np.concatenate(matched.sides)
    rows = np.flatnonzero(is_small[group])
    codes = _codes(keys, columns, rows)
    added = int(codes.max(initial=-1)) + 1
    large = np.flatnonzero(~is_small)
    number = np.full(len(is_small), -1, dtype=np.int64)
    number[large] = np.arange(len(large))
    number[group[rows]] = len(large) + codes
    of_small = np.bincount(number[is_small] - len(large), matched.summed[is_small], minlength=added)
    is_before = rows < len(matched.before)
    sides = [np.isin(np.arange(added), codes[of]) for of in (is_before, ~is_before)]
    level = np.where(sides[0] & sides[1], *levels)
    return RowMatch(
        before=number[matched.before],
        after=number[matched.after],
        level=np.concatenate([matched.level[large], level]),
        summed=np.concatenate([matched.summed[large], of_small.astype(np.int64)]),
    )


def _changes(
    sides: Sides, pair: _MatchedCosts, figures: Sequence[str], unit: Unit
) -> list[tuple[Change, ...]]:
    """Return the changes of several figures, tested together; zeros are not tested."""
    values = [
        np.vstack(
            [sampled(side, costs, group, figure, len(pair.groups.summed)) for figure in figures]
        )
        for side, costs, group in zip(sides, pair.costs, pair.groups.sides, strict=True)
    ]
    apart = np.maximum(*(between_spans(*of_side) for of_side in zip(sides, values, strict=True)))
    all_changes = changes(values[0], values[1], apart, unit)
    count = len(pair.groups.summed)
    return [all_changes[begin : begin + count] for begin in range(0, len(all_changes), count)]


def _first(pair: _MatchedCosts, column: str) -> list[Any]:
    """Return the value of a column for each group; empty where its rows differ."""
    texts: list[set[str]] = [set() for _ in range(len(pair.groups.summed))]
    for costs, group in zip(pair.costs, pair.groups.sides, strict=True):
        for number, text in zip(group.tolist(), costs.keys[column].tolist(), strict=True):
            texts[number].add(text)
    return [min(distinct) if len(distinct) == 1 else "" for distinct in texts]


def _shapes(pair: _MatchedCosts, side: int) -> list[tuple[str, ...]]:
    keys = pair.costs[side].keys
    if "shape" not in keys:
        return [() for _ in pair.groups.summed]
    shapes: dict[int, set[str]] = {}
    for group, shape in zip(pair.groups.sides[side].tolist(), keys["shape"].tolist(), strict=True):
        if shape:
            shapes.setdefault(group, set()).add(shape)
    return [
        tuple(sorted(shapes.get(row, ()))[:MOST_SHAPES]) for row in range(len(pair.groups.summed))
    ]


def _status(calls: Change, device: Change, host: Change) -> Status:
    is_alone = not calls.before or not calls.after
    if is_alone and calls.verdict != "same":
        return "gone" if calls.before else "added"
    main = device if device.before or device.after else host
    verdict = main.verdict if main.verdict in {"more", "less"} else host.verdict
    if verdict in {"more", "less"}:
        return "slower" if verdict == "more" else "faster"
    if calls.verdict in {"more", "less"}:
        return "other-calls"
    return "untested" if main.verdict == "untested" else "same"


@dataclass(frozen=True, kw_only=True, eq=False)
class RowMatch:
    """Groups of rows matched by name; a group may have rows of one side only."""

    before: Ints
    """Each row's group."""
    after: Ints
    level: Ints
    """Index of the level at which each group was matched; the number of levels: unmatched."""
    summed: Ints
    """Number of matched groups that each one sums: 1, but for those of small ones."""

    @property
    def sides(self) -> tuple[Ints, Ints]:
        """Each row's group, before and after."""
        return self.before, self.after


def match_rows(
    before: pd.DataFrame, after: pd.DataFrame, levels: Sequence[Sequence[str]]
) -> RowMatch:
    """Match rows with equal columns of the first level, then the remaining rows by the next level.

    Rows without a match are grouped with those of their side by the first level.
    """
    count = len(before)
    both = pd.concat([before, after], ignore_index=True)
    group = np.full(len(both), -1, dtype=np.int64)
    level_of: list[Ints] = []
    groups = 0
    for number, columns in enumerate((*levels, levels[0])):
        left = np.flatnonzero(group < 0)
        codes = _codes(both, columns, left)
        width = int(codes.max()) + 1 if len(codes) else 0
        sides = [
            np.bincount(codes[is_side], minlength=width)
            for is_side in (left < count, left >= count)
        ]
        is_last = number == len(levels)
        is_shared = np.full(width, fill_value=True) if is_last else (sides[0] > 0) & (sides[1] > 0)
        group_of = np.where(is_shared, groups + np.cumsum(is_shared) - 1, -1)
        group[left] = group_of[codes]
        added = int(is_shared.sum())
        level_of.append(np.full(added, number, dtype=np.int64))
        groups += added
    return RowMatch(
        before=group[:count],
        after=group[count:],
        level=np.concatenate(level_of),
        summed=np.ones(groups, dtype=np.int64),
    )


def _codes(rows: pd.DataFrame, columns: Sequence[str], selected: Ints) -> Ints:
    codes = np.zeros(len(selected), dtype=np.int64)
    for column in columns:
        column_codes, distinct = pd.factorize(rows[column].to_numpy()[selected])
        codes, _ = pd.factorize(codes * (len(distinct) + 1) + column_codes + 1)
    return codes
