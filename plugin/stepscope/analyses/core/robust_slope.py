"""Robust statistics: the Theil-Sen slope with the Mann-Kendall test, and modified z-scores.

The slope is the median of the slopes between any two values (Sen 1968), which a few outliers, such
as the first step's, do not move. The test of its significance (Kendall 1975) has no correction for
ties: it is conservative for series of few levels.

A modified z-score is the distance from the median over the median distance, scaled as a deviation
(Iglewicz and Hoaglin 1993, "How to detect and handle outliers").
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.model.arrays import Floats, Ints

MOST_VALUES = 256
"""Longer series are sampled at this many evenly spaced values."""
LIKELY, SURE = 1.96, 2.58
"""Mann-Kendall's z beyond which a trend is significant, at 5 % and 1 %."""


@dataclass(frozen=True, kw_only=True)
class Slope:
    """A robust trend; per step."""

    median: float
    low: float
    high: float
    z: float


def slope(values: Floats) -> Slope:
    """Return the Theil-Sen slope of evenly spaced values, its 95 % interval, and Mann-Kendall's z.

    All are NaN for fewer than two values other than NaN.
    """
    index = np.flatnonzero(~np.isnan(values))
    if len(index) > MOST_VALUES:
        index = index[np.linspace(0, len(index) - 1, MOST_VALUES).astype(np.int64)]
    count = len(index)
    if count < 2:
        return Slope(median=np.nan, low=np.nan, high=np.nan, z=np.nan)
    first, second = np.triu_indices(count, k=1)
    rise = values[index[second]] - values[index[first]]
    slopes = np.sort(rise / (index[second] - index[first]))
    spread = np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    score = float(np.sign(rise).sum())
    z = (score - np.sign(score)) / spread  # with the correction for a discrete score
    half = LIKELY * spread
    low = int(np.clip((len(slopes) - half) // 2, 0, len(slopes) - 1))
    high = int(np.clip((len(slopes) + half) // 2, 0, len(slopes) - 1))
    return Slope(
        median=float(np.median(slopes)),
        low=float(slopes[low]),
        high=float(slopes[high]),
        z=float(z),
    )


OUTLIER = 3.5
"""Higher scores are outliers (Iglewicz and Hoaglin)."""
NORMAL_QUARTILE, NORMAL_DEVIATION = 0.6745, 0.7979
"""Median and mean of a standard normal's absolute values: they scale the deviations."""
FEW = 3
"""Fewer values have no outlier."""
CHANCE = 0.05
"""Probability that chance puts one of many values beyond `outlier_score`."""


def modified_zscores(values: Floats, least_scale: float = 0.0) -> Floats:
    """Return modified z-scores, with a scale of at least `least_scale`.

    Where more than half of the values are equal, the scale is `least_scale`; without it, the mean
    distance, which a single value among four cannot exceed far enough to be an outlier. NaN for
    fewer than three values, and for NaN.
    """
    numbers = values[~np.isnan(values)]
    if len(numbers) < FEW:
        return np.full(len(values), np.nan)
    middle = np.median(numbers)
    apart = np.abs(numbers - middle)
    scale = max(np.median(apart) / NORMAL_QUARTILE, least_scale)
    scale = scale or apart.mean() / NORMAL_DEVIATION
    return (values - middle) / scale if scale else np.where(np.isnan(values), np.nan, 0.0)


def outlier_score(count: int) -> float:
    """Return the score that one of `count` normal values exceeds by chance in 1 case of 20.

    Less than exp(-z²/2) of a normal distribution is beyond ±z.
    """
    return max(OUTLIER, math.sqrt(2 * math.log(max(count, 1) / CHANCE)))


def group_median(values: Floats, group: Ints) -> Floats:
    """Return, for each value, the median of its group."""
    return np.asarray(pd.Series(values).groupby(group).transform("median"), dtype=np.float64)
