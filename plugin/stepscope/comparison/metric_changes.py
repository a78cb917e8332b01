"""Figures before and after, each told from noise or not."""

import math

import numpy as np
from numpy.typing import NDArray

from stepscope.base.findings import Unit
from stepscope.comparison.messages import Change, Verdict
from stepscope.comparison.side import batched
from stepscope.comparison.significance import LEVEL, judged

Floats = NDArray[np.float64]
RESOLUTION: dict[Unit, float] = {"ns": 1000.0, "count": 0.01}
"""Times of old traces are whole microseconds; a count is exact, a mean of it over ranks nearly."""


def changes(before: Floats, after: Floats, apart: Floats, unit: Unit) -> tuple[Change, ...]:
    """Return each figure's change; figures are rows, samples are columns.

    A change is real where the test says so and it is larger than `apart`, the difference between
    the spans of one side: their steps resemble each other, which no test of steps can see.
    """
    resolution = RESOLUTION[unit]
    is_there = (before != 0).any(axis=1) | (after != 0).any(axis=1)
    found = judged(batched(before[is_there]), batched(after[is_there]), resolution)
    p, error = (np.full(len(before), np.nan) for _ in range(2))
    p[is_there], error[is_there] = found.p, found.error
    means = zip(before.mean(axis=1).tolist(), after.mean(axis=1).tolist(), strict=True)
    rest = zip(p.tolist(), error.tolist(), apart.tolist(), strict=True)
    return tuple(
        Change(
            before=first,
            after=second,
            unit=unit,
            standard_error=_known(own_error),
            p=_known(own_p),
            verdict=_verdict(second - first, own_p, max(own_apart, resolution)),
        )
        for (first, second), (own_p, own_error, own_apart) in zip(means, rest, strict=True)
    )


def _verdict(delta: float, p: float, least: float) -> Verdict:
    if math.isnan(p):
        return "untested"
    if p >= LEVEL or abs(delta) <= least:
        return "same"
    return "more" if delta > 0 else "less"


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
