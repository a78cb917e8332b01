"""Statistical significance of changes: one permutation test for many figures.

A figure has one sample per step (or per batch of steps). If nothing has changed, the labels
*before* and *after* are arbitrary; so the steps are permuted, in all ways or in 2,000 random ones,
and Welch's t of each figure is compared with the largest t of all figures under each permutation
(Westfall and Young, "Resampling-based multiple testing", 1993, single-step maxT). This limits the
probability of one false alarm among all figures to 5 %, for any distribution and dependence.
Outliers (more than three scaled median absolute deviations from the pooled median) are clipped
before, so that one slow step hides no change; as this ignores the labels, the test stays exact.

Three steps against three or four have too few permutations: then it is Welch's t-test with Holm's
correction, which assumes normal figures. With fewer than three steps there is no test.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from stepscope.base.findings import Unit
from stepscope.comparison.messages import Change, Verdict
from stepscope.comparison.side import batched
from stepscope.model.arrays import Floats

LEVEL = 0.05
"""Probability of one false alarm among all figures of a family."""
LEAST_STEPS = 3
PERMUTATIONS = 2000
LEAST_PERMUTATIONS = 40
"""With fewer, the two most extreme ones would not be below 5 %."""
FAR = 3.0
"""Scaled median absolute deviations: standard deviations of a normal distribution."""
MAD_TO_DEVIATION = 1.4826
ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class TestResult:
    """Result of the test for each figure."""

    p: Floats
    """Probability of such a change of any figure if nothing has changed; NaN: no test."""
    error: Floats
    """Standard error of the difference of means; NaN where a side has one step."""


def permutation_test(before: Floats, after: Floats, resolution: float) -> TestResult:
    """Test figures (rows) over steps (columns) of a measurement with some resolution."""
    few = min(before.shape[1], after.shape[1])
    none = np.full(len(before), np.nan)
    error = _error(before, after, 0.0) if few > 1 else none
    if few < LEAST_STEPS or not len(before):
        return TestResult(p=none, error=error)
    least = resolution**2 / 12  # the variance of rounding
    count = math.comb(before.shape[1] + after.shape[1], before.shape[1])
    test = _welch if count <= LEAST_PERMUTATIONS else _permuted
    return TestResult(p=test(before, after, least), error=error)


def _error(before: Floats, after: Floats, least: float) -> Floats:
    parts = (
        np.maximum(side.var(axis=1, ddof=1), least) / side.shape[1] for side in (before, after)
    )
    return np.asarray(np.sqrt(sum(parts)))


def _permuted(before: Floats, after: Floats, least: float) -> Floats:
    """Return Westfall and Young's adjusted p, from all permutations if they are few."""
    sides = sorted((before, after), key=lambda side: (side.shape[1], side.tolist()))
    pooled = _clipped(np.hstack(sides))  # sorted, so that the labels play no part
    labels = _permutations(sides[0].shape[1], pooled.shape[1])
    t = _t(pooled, labels, least)
    largest = np.sort(t.max(axis=0))
    observed = t[:, 0] - ROUNDING * (1 + t[:, 0])  # equal up to rounding
    as_large = len(largest) - np.searchsorted(largest, observed)
    return np.asarray(as_large / len(largest))


def _clipped(pooled: Floats) -> Floats:
    middle = np.median(pooled, axis=1, keepdims=True)
    spread = MAD_TO_DEVIATION * np.median(np.abs(pooled - middle), axis=1, keepdims=True)
    reach = np.where(spread > 0, FAR * spread, np.inf)
    return np.asarray(np.clip(pooled, middle - reach, middle + reach))


@lru_cache(maxsize=8)
def _permutations(first: int, count: int) -> Floats:
    """Return the labels (1.0: *before*) of permutations, a column each, the observed first."""
    if math.comb(count, first) <= PERMUTATIONS:
        labelled = np.array(list(combinations(range(count), first)))
    else:
        order = np.argsort(np.random.default_rng(0).random((PERMUTATIONS, count)), axis=1)
        labelled = order[:, :first]
        labelled[0] = np.arange(first)
    labels = np.zeros((count, len(labelled)))
    labels[labelled, np.arange(len(labelled))[:, None]] = 1.0
    labels.flags.writeable = False  # cached
    return labels


def _t(pooled: Floats, labels: Floats, least: float) -> Floats:
    """Return the absolute Welch's t of each figure (rows) under each permutation (columns)."""
    values = pooled - pooled.mean(axis=1, keepdims=True)
    count, first = len(labels), int(labels[:, 0].sum())
    second = count - first
    sums, squares = values @ labels, (values**2) @ labels
    mean, rest = sums / first, -sums / second
    variance = (squares - first * mean**2) / (first - 1)
    all_squares = (values**2).sum(axis=1, keepdims=True)
    other = (all_squares - squares - second * rest**2) / (second - 1)
    error = np.maximum(variance, least) / first + np.maximum(other, least) / second
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
    p = [two_sided_p(value, of) for value, of in zip(t.tolist(), freedom.tolist(), strict=True)]
    return holm(np.array(p))


CONFIDENCE = 0.95


def confidence_interval(before: Floats, after: Floats) -> tuple[float, float] | None:
    """Return Welch's 95 % interval of the difference of means; None where a side has one step."""
    sides = [batched(side[None, :])[0] for side in (before, after)]
    if min(map(len, sides)) < 2:
        return None
    parts = [float(side.var(ddof=1)) / len(side) for side in sides]
    error, difference = math.sqrt(sum(parts)), float(after.mean() - before.mean())
    if not error:
        return difference, difference
    weights = (part**2 / (len(side) - 1) for part, side in zip(parts, sides, strict=True))
    reach = error * _quantile(error**4 / sum(weights))
    return difference - reach, difference + reach


def _quantile(freedom: float) -> float:
    """Return the t that Student's distribution exceeds on both sides with 5 % probability."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        if two_sided_p(middle, freedom) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def holm(p: Floats) -> Floats:
    """Return p-values adjusted by Holm's step-down method."""
    order = np.argsort(p, kind="stable")
    factors = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def two_sided_p(t: float, freedom: float) -> float:
    """Return the two-sided p of Student's t with some degrees of freedom."""
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
    fraction = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            change = c * d
            fraction *= change
        if abs(change - 1) < 1e-14:
            break
    return fraction


def _away_from_zero(value: float) -> float:
    return value if abs(value) > 1e-300 else 1e-300


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
            verdict=_change_verdict(second - first, figure_p, max(figure_apart, resolution)),
        )
        for (first, second), (figure_p, figure_error, figure_apart) in zip(means, rest, strict=True)
    )


def _change_verdict(delta: float, p: float, least: float) -> Verdict:
    if math.isnan(p):
        return "untested"
    if p >= LEVEL or abs(delta) <= least:
        return "same"
    return "more" if delta > 0 else "less"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
