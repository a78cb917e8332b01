"""How far values lie from what is usual among many, whatever a few of them are.

By the modified z-score: the distance from the median over the median distance, scaled as a standard
deviation (Iglewicz and Hoaglin 1993, "How to detect and handle outliers").
"""

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
OUTLIER = 3.5
"""Scores beyond it are outliers (Iglewicz and Hoaglin)."""
NORMAL_QUARTILE, NORMAL_DEVIATION = 0.6745, 0.7979
"""Median and mean of a standard normal's absolute values: they scale the deviations."""
FEW = 3
"""Among fewer values none is an outlier."""
CHANCE = 0.05
"""How often one of many values may lie beyond `outlier_score` by chance."""


def modified_zscores(values: Floats, least_scale: float = 0.0) -> Floats:
    """Return modified z-scores; NaN for fewer than three values, and for what is NaN.

    Values that are nearly all the same have nearly no scale: it is never below `least_scale`.
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
    """Return the score that one of so many normal values reaches by chance in 1 case of 20.

    Beyond z lies less than exp(-z²/2) of a normal distribution, on both sides together.
    """
    return max(OUTLIER, math.sqrt(2 * math.log(max(count, 1) / CHANCE)))


def group_median(values: Floats, group: NDArray[np.int64]) -> Floats:
    """Return, for each value, the median of its group."""
    return np.asarray(pd.Series(values).groupby(group).transform("median"), dtype=np.float64)
