"""Statistics of groups of rows, for any number of groups at once.

Each row has a value and a group number, 0 to `count - 1`. Results hold one value per group, NaN for
a group without rows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Floats, Ints, Mask, Objects
from stepscope.model.frames import Schema

Group = NDArray[np.integer]
Numbers = Ints | NDArray[np.floating[Any]]
EVERY_ROW = np.True_
"""A mask that selects all rows."""
MOST = 2**63
"""One more than what int64 holds."""


def group_rows(frame: pd.DataFrame, by: Iterable[str]) -> tuple[Ints, Ints]:
    """Return each row's group of equal values, and each group's first row; missing values group."""
    group = np.zeros(len(frame), dtype=np.int64)
    for column in by:
        codes, values = pd.factorize(frame[column])
        group, _ = pd.factorize(group * (len(values) + 1) + codes + 1, sort=True)
    first = np.empty(int(group.max()) + 1 if len(group) else 0, dtype=np.int64)
    first[group[::-1]] = np.arange(len(group))[::-1]  # what is set last stays
    return group, first


def sums(values: Numbers, group: Group, count: int) -> Ints:
    """Return each group's exact sum of whole numbers; 0 without rows."""
    totals = np.zeros(count, dtype=np.int64)
    np.add.at(totals, group, values)
    return totals


def sums_where(
    values: Numbers, group: Group, count: int, where: Mask | np.bool_ = EVERY_ROW
) -> Ints:
    """Return the same as `sums` for the selected rows that have a group (-1: none)."""
    rows = np.flatnonzero(where & (group != NONE))
    return sums(values[rows], group[rows], count)


def ratio(part: Numbers, whole: Numbers) -> Floats:
    """Return part over whole; NaN where the whole is unknown or not above 0."""
    ratios: Floats = np.full(len(whole), np.nan)
    np.divide(part, whole, out=ratios, where=whole > 0)
    return ratios


def mean(values: Numbers, group: Group, count: int) -> Floats:
    """Return each group's mean."""
    return weighted_mean(values, np.ones(len(values)), group, count)


def nan_mean(values: Floats, group: Group, count: int) -> Floats:
    """Return each group's mean of the values that are not NaN."""
    is_number = ~np.isnan(values)
    return mean(values[is_number], group[is_number], count)


def weighted_mean(values: Numbers, weight: Numbers, group: Group, count: int) -> Floats:
    """Return each group's weighted mean; NaN where all weights are 0."""
    products = np.bincount(group, weights=values * weight.astype(np.float64), minlength=count)
    weights = np.bincount(group, weights=weight, minlength=count)
    return ratio(products, weights)


def standard_deviation(values: Numbers, group: Group, count: int) -> Floats:
    """Return each group's sample standard deviation; NaN for fewer than two rows."""
    from_mean = values - mean(values, group, count)[group]
    squares = np.bincount(group, weights=from_mean**2, minlength=count)
    others = np.bincount(group, minlength=count) - 1
    return np.asarray(np.sqrt(ratio(squares, others)))


def extremes(values: Ints, group: Group, count: int) -> tuple[Ints, Ints]:
    """Return each group's exact minimum and maximum; 0 without rows."""
    limits = np.iinfo(np.int64)
    least, most = np.full(count, limits.max), np.full(count, limits.min)
    np.minimum.at(least, group, values)
    np.maximum.at(most, group, values)
    is_empty = np.bincount(group, minlength=count) == 0
    return np.where(is_empty, 0, least), np.where(is_empty, 0, most)


def quantile(values: Ints, group: Group, count: int, share: float) -> Floats:
    """Return each group's quantile, with numpy's `linear` method; `share` is from 0 to 1."""
    size = np.bincount(group, minlength=count)
    quantiles: Floats = np.full(count, np.nan)
    ordered = _ordered(values, group, count)
    has = size > 0
    position = (size[has] - 1) * share
    before = np.floor(position).astype(np.int64)
    first = (np.cumsum(size) - size)[has]
    low = ordered[first + before].astype(np.float64)
    high = ordered[first + np.minimum(before + 1, size[has] - 1)].astype(np.float64)
    quantiles[has] = low + (high - low) * (position - before)
    return quantiles


def _ordered(values: Ints, group: Group, count: int) -> Ints:
    if not len(values):
        return values
    least = int(values.min())
    span = int(values.max()) - least + 1
    if count * span >= MOST:
        return values[np.lexsort((values, group))]
    key = group.astype(np.int64) * span  # sorting one number per row takes a fifth of the time
    key += values - least
    key.sort()
    key %= span
    key += least
    return key


def duration_columns(
    schema: Schema, duration_ns: Ints, group: Group, count: int
) -> dict[str, NDArray[Any]]:
    """Return the columns of a schema that describe durations, such as `call_count`, `total_ns`."""
    names = {column.name for column in schema}
    return {
        name: describe(duration_ns, group, count)
        for name, describe in DURATION_COLUMNS.items()
        if name in names
    }


DURATION_COLUMNS: dict[str, Callable[[Ints, Group, int], NDArray[Any]]] = {
    "call_count": lambda _, group, count: np.bincount(group, minlength=count),
    "total_ns": sums,
    "mean_ns": mean,
    "min_ns": lambda *durations: extremes(*durations)[0],
    "max_ns": lambda *durations: extremes(*durations)[1],
    "p95_ns": lambda durations, group, count: quantile(durations, group, count, 0.95),
    "standard_deviation_ns": standard_deviation,
}


def distinct_numbers(numbers: NDArray[np.integer], group: Group, count: int) -> Objects:
    """Return each group's distinct numbers as text: ascending, comma separated."""
    codes, distinct = pd.factorize(numbers, sort=True)
    pairs = np.sort(pd.unique(group * max(1, len(distinct)) + codes))
    texts: dict[int, list[str]] = {}
    for pair in pairs.tolist():
        which, number = divmod(pair, len(distinct))
        texts.setdefault(which, []).append(str(distinct[number]))
    return np.array([", ".join(texts.get(which, ())) for which in range(count)], dtype=object)


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """Every change of a level, by group, then time."""

    group: Ints
    time_ns: Ints
    level: Ints
    """After the change."""
    lasts_ns: Ints
    """Until the next change of the group; 0 for the last."""


def levels(group: Ints, time_ns: Ints, change: Ints) -> Levels:
    """Return the levels after each change; the changes of a group sum to 0."""
    order = np.argsort(time_ns, kind="stable")
    order = order[np.argsort(group[order], kind="stable")]
    group, time_ns = group[order], time_ns[order]
    lasts_ns = np.zeros(len(order), dtype=np.int64)
    lasts_ns[:-1] = np.where(group[1:] == group[:-1], np.diff(time_ns), 0)
    level = np.cumsum(change[order])
    return Levels(group=group, time_ns=time_ns, level=level, lasts_ns=lasts_ns)
