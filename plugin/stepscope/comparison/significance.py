"""Which changes are real: one permutation test for many figures at once.

A figure is sampled once a step (or once a batch of steps). If nothing has changed, which steps are
called *before* and which *after* is arbitrary; so the steps are dealt out anew, in every way or in
2,000 random ones, and Welch's t of each figure is compared with the largest t of all figures under
each dealing (Westfall and Young, "Resampling-based multiple testing", 1993, single-step maxT). That
holds the chance of one false alarm among all figures at 5 %, whatever their distribution, and
however they depend on each other. Steps far off the others (more than three scaled median absolute
deviations from the pooled median) are drawn in beforehand: one slow step hides no change, and since
that looks at no side, the test stays exact.

With three steps beside three or four there are too few ways to deal: then it is Welch's t-test with
Holm's correction, which takes the figures to be about normal. With fewer than three there is none.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.05
"""The chance of one false alarm among all figures of a family."""
LEAST_STEPS = 3
DEALINGS = 2000
FEWEST_DEALINGS = 40
"""With fewer, the two that are most extreme would not come out below 5 %."""
FAR = 3.0
"""In median absolute deviations, scaled to be standard deviations of a normal distribution."""
MAD_TO_DEVIATION = 1.4826
ROUNDING = 1e-6
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Judged:
    """What the test says of each figure."""

    p: Floats
    """The chance of such a change of any of the figures if nothing has changed; NaN: no test."""
    error: Floats
    """The standard error of the difference of the means; NaN where a side has one step."""


def judged(before: Floats, after: Floats, resolution: float) -> Judged:
    """Test figures (rows) over steps (columns); the clock, or the count, tells `resolution`."""
    few = min(before.shape[1], after.shape[1])
    none = np.full(len(before), np.nan)
    error = _error(before, after, 0.0) if few > 1 else none
    if few < LEAST_STEPS or not len(before):
        return Judged(p=none, error=error)
    least = resolution**2 / 12  # the variance of rounding
    count = math.comb(before.shape[1] + after.shape[1], before.shape[1])
    test = _welch if count <= FEWEST_DEALINGS else _permuted
    return Judged(p=test(before, after, least), error=error)


def _error(before: Floats, after: Floats, least: float) -> Floats:
    parts = (
        np.maximum(side.var(axis=1, ddof=1), least) / side.shape[1] for side in (before, after)
    )
    return np.asarray(np.sqrt(sum(parts)))


def _permuted(before: Floats, after: Floats, least: float) -> Floats:
    """Return Westfall and Young's adjusted p; of few dealings all are made, else random ones."""
    sides = sorted((before, after), key=lambda side: (side.shape[1], side.tolist()))
    pooled = _drawn_in(np.hstack(sides))  # in an order of their own: what is before plays no part
    dealt = _dealings(sides[0].shape[1], pooled.shape[1])
    t = _t(pooled, dealt, least)
    largest = np.sort(t.max(axis=0))
    found = t[:, 0] - ROUNDING * (1 + t[:, 0])  # what differs by rounding alone is as large
    as_large = len(largest) - np.searchsorted(largest, found)
    return np.asarray(as_large / len(largest))


def _drawn_in(pooled: Floats) -> Floats:
    middle = np.median(pooled, axis=1, keepdims=True)
    spread = MAD_TO_DEVIATION * np.median(np.abs(pooled - middle), axis=1, keepdims=True)
    reach = np.where(spread > 0, FAR * spread, np.inf)
    return np.asarray(np.clip(pooled, middle - reach, middle + reach))


@lru_cache(maxsize=8)
def _dealings(first: int, count: int) -> Floats:
    """Return who is *before* (1.0) in each dealing, a column each; the first is what was found."""
    if math.comb(count, first) <= DEALINGS:
        chosen = np.array(list(combinations(range(count), first)))
    else:
        order = np.argsort(np.random.default_rng(0).random((DEALINGS, count)), axis=1)
        chosen = order[:, :first]
        chosen[0] = np.arange(first)
    dealt = np.zeros((count, len(chosen)))
    dealt[chosen, np.arange(len(chosen))[:, None]] = 1.0
    dealt.flags.writeable = False  # it is kept: a comparison asks for the same again and again
    return dealt


def _t(pooled: Floats, dealt: Floats, least: float) -> Floats:
    """Return Welch's t of each figure (rows) under each dealing (columns), without its sign."""
    values = pooled - pooled.mean(axis=1, keepdims=True)
    count, first = len(dealt), int(dealt[:, 0].sum())
    second = count - first
    sums, squares = values @ dealt, (values**2) @ dealt
    mean, rest = sums / first, -sums / second
    own = (squares - first * mean**2) / (first - 1)
    all_squares = (values**2).sum(axis=1, keepdims=True)
    other = (all_squares - squares - second * rest**2) / (second - 1)
    error = np.maximum(own, least) / first + np.maximum(other, least) / second
    return np.asarray(np.abs(rest - mean) / np.sqrt(error))


def _welch(before: Floats, after: Floats, least: float) -> Floats:
    """Return the p of Welch's t-test, adjusted by Holm (1979)."""
    parts = [
        np.maximum(side.var(axis=1, ddof=1), least) / side.shape[1] for side in (before, after)
    ]
    total = parts[0] + parts[1]
    t = (after.mean(axis=1) - before.mean(axis=1)) / np.sqrt(total)
    counts = (before.shape[1] - 1, after.shape[1] - 1)
    freedom = total**2 / sum(part**2 / count for part, count in zip(parts, counts, strict=True))
    p = [two_sided_p(each, of) for each, of in zip(t.tolist(), freedom.tolist(), strict=True)]
    return holm(np.array(p))


def holm(p: Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method."""
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def two_sided_p(t: float, freedom: float) -> float:
    """Return the chance that Student's t of so many degrees of freedom is as far from 0."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by Lentz's continued fraction.

    As in "Numerical Recipes", 6.4.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    gammas = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(gammas + a * math.log(x) + b * math.log1p(-x))
    return front * _continued_fraction(a, b, x) / a


def _continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    found = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            change = c * d
            found *= change
        if abs(change - 1) < 1e-14:
            break
    return found


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300
