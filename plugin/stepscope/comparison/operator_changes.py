"""Operators and device work on both sides: what was added, is gone, slower or faster."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.base.findings import Unit
from stepscope.comparison.messages import Change, MatchedBy, ModuleRow, Row, Status
from stepscope.comparison.metric_changes import changes
from stepscope.comparison.name_matching import Matched, matched
from stepscope.comparison.samples import Costs, Sample
from stepscope.comparison.side import Things, Together, between_spans, sampled, things, totals

SMALL_SHARE = 0.001
"""What takes less of the mean step on both sides is not worth a row."""
MOST_ROWS = 2000
MOST_SHAPES = 3
Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Sides = tuple[Together, Together]


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
    """Return the modules that operators ran in; nothing where no module was recorded."""
    found = _found(sides, _MODULES)
    if not len(found.chosen):
        return ()
    device, host = _changes(sides, found, ("device_ns", "host_ns"), "ns")
    calls = _changes(sides, found, ("call_count",), "count")[0]
    names = _first(found, "module")
    if not any(names):
        return ()
    rows = [
        ModuleRow(name=name, status=_status(*of), calls=of[0], device=of[1], host=of[2])
        for name, *of in zip(names, calls, device, host, strict=True)
    ]
    return tuple(sorted(rows, key=_order))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    """Both sides' things, matched; `chosen` are the groups that are worth a row."""

    things: tuple[Things, Things]
    groups: tuple[Numbers, Numbers]
    matched: Matched
    chosen: Numbers


def _rows(sides: Sides, scheme: _Scheme) -> tuple[Row, ...]:
    found = _found(sides, scheme)
    if not len(found.chosen):
        return ()
    times = _changes(sides, found, ("device_ns", "host_ns"), "ns")
    # Tested by themselves: what is asked of self times is as sure as without them.
    wholes = _changes(sides, found, ("device_total_ns", "host_total_ns"), "ns")
    calls = _changes(sides, found, ("call_count",), "count")[0]
    names = [_first(found, column) for column in found.things[0].keys.columns]
    identity = dict(zip(found.things[0].keys.columns, names, strict=True))
    shapes = [_shapes(found, place) for place in (0, 1)]
    rows = [
        Row(
            kind=identity["kind"][row],
            name=identity["name"][row] or identity["stem"][row],
            status=_status(calls[row], times[0][row], times[1][row]),
            matched_by=scheme.matched_by[found.matched.level[group]],
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
        for row, group in enumerate(found.chosen.tolist())
    ]
    return tuple(sorted(rows, key=_order))


def _order(row: Row | ModuleRow) -> tuple[bool, float, str]:
    main = row.device if row.device.before or row.device.after else row.host
    return row.status in {"same", "untested"}, -abs(main.delta), row.name


def _found(sides: Sides, scheme: _Scheme) -> _Found:
    found = tuple(things(side, [scheme.costs(each) for each in side.recordings]) for side in sides)
    both = matched(found[0].keys, found[1].keys, scheme.levels)
    groups = (both.before, both.after)
    count = len(both.level)
    sums = [totals(each, group, count) for each, group in zip(found, groups, strict=True)]
    steps = [float(side.ranks.sum()) for side in sides]
    means = [
        np.maximum(each["host_ns"], each["device_ns"]) / total
        for each, total in zip(sums, steps, strict=True)
    ]
    least_ns = SMALL_SHARE * max(float(side.durations().mean()) for side in sides)
    is_large = np.maximum(*means) >= least_ns
    is_alone = (sums[0]["call_count"] > 0) != (sums[1]["call_count"] > 0)
    worth = np.flatnonzero(is_large | is_alone)
    largest = worth[np.argsort(-np.maximum(*means)[worth], kind="stable")[:MOST_ROWS]]
    return _Found(things=(found[0], found[1]), groups=groups, matched=both, chosen=largest)


def _changes(
    sides: Sides, found: _Found, figures: Sequence[str], unit: Unit
) -> list[tuple[Change, ...]]:
    """Return the changes of several figures, tested together; those of nothing are not tested."""
    values = [
        np.vstack([sampled(side, each, group, figure, found.chosen) for figure in figures])
        for side, each, group in zip(sides, found.things, found.groups, strict=True)
    ]
    apart = np.maximum(*(between_spans(*each) for each in zip(sides, values, strict=True)))
    all_changes = changes(values[0], values[1], apart, unit)
    count = len(found.chosen)
    return [all_changes[begin : begin + count] for begin in range(0, len(all_changes), count)]


def _first(found: _Found, column: str) -> list[Any]:
    """Return what a column says of each chosen group, where its rows are of one mind."""
    texts: list[set[str]] = [set() for _ in range(len(found.matched.level))]
    for each, group in zip(found.things, found.groups, strict=True):
        for place, text in zip(group.tolist(), each.keys[column].tolist(), strict=True):
            texts[place].add(text)
    return [min(own) if len(own := texts[group]) == 1 else "" for group in found.chosen.tolist()]


def _shapes(found: _Found, side: int) -> list[tuple[str, ...]]:
    keys = found.things[side].keys
    if "shape" not in keys:
        return [() for _ in found.chosen]
    shapes: dict[int, set[str]] = {}
    for group, shape in zip(found.groups[side].tolist(), keys["shape"].tolist(), strict=True):
        if shape:
            shapes.setdefault(group, set()).add(shape)
    return [tuple(sorted(shapes.get(group, ()))[:MOST_SHAPES]) for group in found.chosen.tolist()]


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
