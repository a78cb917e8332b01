"""Modified z-scores: distance from the median over the median distance, scaled as a deviation.

Iglewicz and Hoaglin 1993, "How to detect and handle outliers".
"""

import math

import numpy as np
import pandas as pd

from stepscope.model.arrays import Floats, Ints

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

    NaN for fewer than three values, and for NaN.
    """
    numbers = values[~np.isnan(values)]
    if len(numbers) < FEW:
        return np.full(len(values), np.nan)
    middle = np.median(numbers)
    apart = np.abs(numbers - middle)
    scale = np.median(apart) / NORMAL_QUARTILE or apart.mean() / NORMAL_DEVIATION
    scale = max(scale, least_scale)
    return (values - middle) / scale if scale else np.where(np.isnan(values), np.nan, 0.0)


def outlier_score(count: int) -> float:
    """Return the score that one of `count` normal values exceeds by chance in 1 case of 20.

    Less than exp(-z²/2) of a normal distribution is beyond ±z.
    """
    return max(OUTLIER, math.sqrt(2 * math.log(max(count, 1) / CHANCE)))


def group_median(values: Floats, group: Ints) -> Floats:
    """Return, for each value, the median of its group."""
    return np.asarray(pd.Series(values).groupby(group).transform("median"), dtype=np.float64)
