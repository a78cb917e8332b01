"""Changes of operators and device work: added, gone, slower or faster."""

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
from stepscope.model.arrays import Ints

SMALL_SHARE = 0.001
"""Fraction of the mean step below which an operator has no row."""
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
    if not len(pair.selected):
        return ()
    device, host = _changes(sides, pair, ("device_ns", "host_ns"), "ns")
    calls = _changes(sides, pair, ("call_count",), "count")[0]
    names = _first(pair, "module")
    if not any(names):
        return ()
    rows = [
        ModuleRow(name=name, status=_status(*of), calls=of[0], device=of[1], host=of[2])
        for name, *of in zip(names, calls, device, host, strict=True)
    ]
    return tuple(sorted(rows, key=_order))


@dataclass(frozen=True, kw_only=True, eq=False)
class _MatchedCosts:
    """The costs of both sides, matched; `selected` are the groups with a row."""

    costs: tuple[CostTable, CostTable]
    groups: tuple[Ints, Ints]
    matched: "RowMatch"
    selected: Ints


def _rows(sides: Sides, scheme: _Scheme) -> tuple[Row, ...]:
    pair = _matched_costs(sides, scheme)
    if not len(pair.selected):
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
            kind=identity["kind"][row],
            name=identity["name"][row] or identity["stem"][row],
            status=_status(calls[row], times[0][row], times[1][row]),
            matched_by=scheme.matched_by[pair.matched.level[group]],
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
        for row, group in enumerate(pair.selected.tolist())
    ]
    return tuple(sorted(rows, key=_order))


def _order(row: Row | ModuleRow) -> tuple[bool, float, str]:
    main = row.device if row.device.before or row.device.after else row.host
    return row.status in {"same", "untested"}, -abs(main.delta), row.name


def _matched_costs(sides: Sides, scheme: _Scheme) -> _MatchedCosts:
    first, second = (
        cost_table(side, [scheme.costs(trace) for trace in side.traces]) for side in sides
    )
    both = match_rows(first.keys, second.keys, scheme.levels)
    groups = (both.before, both.after)
    count = len(both.level)
    sums = [
        totals(costs, group, count) for costs, group in zip((first, second), groups, strict=True)
    ]
    steps = [float(side.ranks.sum()) for side in sides]
    means = [
        np.maximum(of_side["host_ns"], of_side["device_ns"]) / total
        for of_side, total in zip(sums, steps, strict=True)
    ]
    least_ns = SMALL_SHARE * max(float(side.durations().mean()) for side in sides)
    is_large = np.maximum(*means) >= least_ns
    is_alone = (sums[0]["call_count"] > 0) != (sums[1]["call_count"] > 0)
    worth = np.flatnonzero(is_large | is_alone)
    largest = worth[np.argsort(-np.maximum(*means)[worth], kind="stable")[:MOST_ROWS]]
    return _MatchedCosts(costs=(first, second), groups=groups, matched=both, selected=largest)


def _changes(
    sides: Sides, pair: _MatchedCosts, figures: Sequence[str], unit: Unit
) -> list[tuple[Change, ...]]:
    """Return the changes of several figures, tested together; zeros are not tested."""
    values = [
        np.vstack([sampled(side, costs, group, figure, pair.selected) for figure in figures])
        for side, costs, group in zip(sides, pair.costs, pair.groups, strict=True)
    ]
    apart = np.maximum(*(between_spans(*of_side) for of_side in zip(sides, values, strict=True)))
    all_changes = changes(values[0], values[1], apart, unit)
    count = len(pair.selected)
    return [all_changes[begin : begin + count] for begin in range(0, len(all_changes), count)]


def _first(pair: _MatchedCosts, column: str) -> list[Any]:
    """Return the value of a column for each selected group; empty where its rows differ."""
    texts: list[set[str]] = [set() for _ in range(len(pair.matched.level))]
    for costs, group in zip(pair.costs, pair.groups, strict=True):
        for number, text in zip(group.tolist(), costs.keys[column].tolist(), strict=True):
            texts[number].add(text)
    selected = (texts[group] for group in pair.selected.tolist())
    return [min(distinct) if len(distinct) == 1 else "" for distinct in selected]


def _shapes(pair: _MatchedCosts, side: int) -> list[tuple[str, ...]]:
    keys = pair.costs[side].keys
    if "shape" not in keys:
        return [() for _ in pair.selected]
    shapes: dict[int, set[str]] = {}
    for group, shape in zip(pair.groups[side].tolist(), keys["shape"].tolist(), strict=True):
        if shape:
            shapes.setdefault(group, set()).add(shape)
    return [tuple(sorted(shapes.get(group, ()))[:MOST_SHAPES]) for group in pair.selected.tolist()]


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
    return RowMatch(before=group[:count], after=group[count:], level=np.concatenate(level_of))


def _codes(rows: pd.DataFrame, columns: Sequence[str], selected: Ints) -> Ints:
    codes = np.zeros(len(selected), dtype=np.int64)
    for column in columns:
        column_codes, distinct = pd.factorize(rows[column].to_numpy()[selected])
        codes, _ = pd.factorize(codes * (len(distinct) + 1) + column_codes + 1)
    return codes
