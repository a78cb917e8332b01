"""Changes of figures with their statistical significance."""

import math

import numpy as np
from numpy.typing import NDArray

from stepscope.base.findings import Unit
from stepscope.comparison.messages import Change, Verdict
from stepscope.comparison.side import batched
from stepscope.comparison.significance import LEVEL, permutation_test

Floats = NDArray[np.float64]
RESOLUTION: dict[Unit, float] = {"ns": 1000.0, "count": 0.01}
"""Times of old traces are whole microseconds; means of counts over ranks are inexact."""


def changes(before: Floats, after: Floats, apart: Floats, unit: Unit) -> tuple[Change, ...]:
    """Return the change of each figure (rows) over samples (columns).

    A significant change must also be larger than `apart`, the difference between the spans of one
    side: steps of a span resemble each other, which no test of steps accounts for.
    """
    resolution = RESOLUTION[unit]
    is_used = (before != 0).any(axis=1) | (after != 0).any(axis=1)
    result = permutation_test(batched(before[is_used]), batched(after[is_used]), resolution)
    p, error = (np.full(len(before), np.nan) for _ in range(2))
    p[is_used], error[is_used] = result.p, result.error
    means = zip(before.mean(axis=1).tolist(), after.mean(axis=1).tolist(), strict=True)
    rest = zip(p.tolist(), error.tolist(), apart.tolist(), strict=True)
    return tuple(
        Change(
            before=first,
            after=second,
            unit=unit,
            standard_error=_number(figure_error),
            p=_number(figure_p),
            verdict=_verdict(second - first, figure_p, max(figure_apart, resolution)),
        )
        for (first, second), (figure_p, figure_error, figure_apart) in zip(means, rest, strict=True)
    )


def _verdict(delta: float, p: float, least: float) -> Verdict:
    if math.isnan(p):
        return "untested"
    if p >= LEVEL or abs(delta) <= least:
        return "same"
    return "more" if delta > 0 else "less"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
