"""Which things on both sides are the same: by what they are called, never by where they stand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Matched:
    """Groups of rows that count as one thing; a group may have rows of one side only."""

    before: Numbers
    """Each row's group."""
    after: Numbers
    level: Numbers
    """Each group's place among the levels at which its rows were matched; their number: none."""


def matched(before: pd.DataFrame, after: pd.DataFrame, levels: Sequence[Sequence[str]]) -> Matched:
    """Match rows that agree in the columns of the first level, then those left by the next.

    What is left at the end is alone with the rows of its side that agree in the first level.
    """
    count = len(before)
    both = pd.concat([before, after], ignore_index=True)
    group = np.full(len(both), -1, dtype=np.int64)
    level_of: list[Numbers] = []
    groups = 0
    for place, columns in enumerate((*levels, levels[0])):
        left = np.flatnonzero(group < 0)
        codes = _codes(both, columns, left)
        width = int(codes.max()) + 1 if len(codes) else 0
        sides = [
            np.bincount(codes[mine], minlength=width) for mine in (left < count, left >= count)
        ]
        is_last = place == len(levels)
        is_shared = np.full(width, fill_value=True) if is_last else (sides[0] > 0) & (sides[1] > 0)
        number = np.where(is_shared, groups + np.cumsum(is_shared) - 1, -1)
        group[left] = number[codes]
        found = int(is_shared.sum())
        level_of.append(np.full(found, place, dtype=np.int64))
        groups += found
    return Matched(before=group[:count], after=group[count:], level=np.concatenate(level_of))


def _codes(rows: pd.DataFrame, columns: Sequence[str], chosen: Numbers) -> Numbers:
    codes = np.zeros(len(chosen), dtype=np.int64)
    for column in columns:
        own, distinct = pd.factorize(rows[column].to_numpy()[chosen])
        codes, _ = pd.factorize(codes * (len(distinct) + 1) + own + 1)
    return codes
