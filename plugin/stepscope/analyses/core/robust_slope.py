"""Robust trend of a series: the Theil-Sen slope with the Mann-Kendall test.

The slope is the median of the slopes between any two values (Sen 1968), which a few outliers, such
as the first step's, do not move. The test of its significance (Kendall 1975) has no correction for
ties: it is conservative for series of few levels.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.model.arrays import Floats

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
