"""Estimated saving of a fault and measured saving of its fix, by pair of runs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from loading import SAMPLE_LOGS
from score.answers import SERIOUS, claimed_ns, first_cause, report, saving_ns
from score.ranges import Holds, Span, judgement
from score.stories import Pair, stories
from stepscope.base import calibration
from stepscope.comparison.samples import sample
from stepscope.comparison.side import SideSamples, batched, between_spans, side_samples
from stepscope.comparison.significance import LEVEL, permutation_test
from stepscope.library import load_all

Floats = NDArray[np.float64]
HALVINGS = 24
"""Of the distance from the estimate to a bound, which is thus found to a millionth of that."""
FARTHEST = 2.0**20
"""Largest shift, in standard errors; if the test accepts it, there is no bound."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of a pair: times in nanoseconds per step, or per sample if that is its unit."""

    pair: Pair
    before_ns: float
    after_ns: float
    step_counts: tuple[int, int]
    first_rule: str
    """First named cause of the fault; empty: none."""
    is_first_serious: bool
    """True if it is reported at warning or above."""
    healed: tuple[str, ...]
    """Causes that the fix removes."""
    claimed_ns: float
    """Potential saving of these causes, each alone."""
    predicted: Span
    """Estimated saving of the causes that the fix removes, together."""
    predicted_by_all: Span
    """Estimated saving of all findings together."""
    likely: Span
    """95 % confidence interval of the measured saving."""

    @property
    def won_ns(self) -> float:
        """Measured saving of the fix: the difference of the mean steps."""
        return self.before_ns - self.after_ns

    @property
    def holds(self) -> Holds:
        """Whether the estimated range contains the measured saving."""
        return judgement(self.predicted, self.won_ns, self.likely)

    @property
    def holds_by_all(self) -> Holds:
        """The same for the estimate of all findings together."""
        return judgement(self.predicted_by_all, self.won_ns, self.likely)

    @property
    def is_calibration_source(self) -> bool:
        """True if a factor was measured on this pair."""
        return bool(factors_from(self.pair))


def factors_from(pair: Pair) -> tuple[str, ...]:
    """Return the factors of `calibration` whose source names the pair's traces."""
    folder = f"sample_logs/{pair.fault.split('/', maxsplit=1)[0]}"
    return tuple(
        name
        for name, factor in vars(calibration).items()
        if isinstance(factor, calibration.Factor) and folder in factor.source
    )


@cache
def side(run: str) -> SideSamples:
    """Return a run's traces as one side of a comparison."""
    [traces] = load_all(SAMPLE_LOGS / run)
    return side_samples(run, [sample(trace) for trace in traces.workers])


@cache
def result_of(pair: Pair) -> Result:
    """Return the estimated and measured savings of a pair."""
    first = first_cause(report(pair.fault))
    healed = stories().healed(pair)
    sides = side(pair.fault), side(pair.fix)
    before, after = (
        runs.durations() / count for runs, count in zip(sides, pair.samples, strict=True)
    )
    apart = max(
        float(between_spans(runs, values[None, :])[0])
        for runs, values in zip(sides, (before, after), strict=True)
    )
    return Result(
        pair=pair,
        before_ns=float(before.mean()),
        after_ns=float(after.mean()),
        step_counts=(sides[0].step_count, sides[1].step_count),
        first_rule=first.rule if first else "",
        is_first_serious=first is not None and first.severity in SERIOUS,
        healed=healed,
        claimed_ns=claimed_ns(report(pair.fault), frozenset(healed)) / pair.samples[0],
        predicted=_predicted(pair, frozenset(healed)),
        predicted_by_all=_predicted(pair, None),
        likely=likely_difference(before, after, apart),
    )


def _predicted(pair: Pair, rules: frozenset[str] | None) -> Span:
    low, high = saving_ns(report(pair.fault), rules)
    return Span(low=low / pair.samples[0], high=high / pair.samples[0])


def likely_difference(before: Floats, after: Floats, apart: float = 0.0) -> Span:
    """Return the 95 % confidence interval of the difference of the means.

    The permutation test of `compare` is inverted: a difference is possible if, after subtracting it
    from every step before, the test finds no significant change. `apart`, the difference between
    spans of one side, widens the interval.
    """
    estimate = float(before.mean() - after.mean())
    first, second = batched(before[None, :]), batched(after[None, :])

    def is_possible(difference: float) -> bool:
        return not permutation_test(first - difference, second, 1.0).p[0] < LEVEL

    error = float(permutation_test(first, second, 1.0).error[0])
    if not error > 0:
        return Span(low=estimate - apart, high=estimate + apart)
    low, high = (_bound(is_possible, estimate, way * error) for way in (-1.0, 1.0))
    return Span(low=low - apart, high=high + apart)


def _bound(is_possible: Callable[[float], bool], start: float, step: float) -> float:
    """Return the last possible value, from a start in the direction of a step."""
    scale = 1.0
    while is_possible(start + scale * step):
        scale *= 2
        if scale > FARTHEST:
            return start + float(np.copysign(np.inf, step))
    inside, outside = (scale / 2 if scale > 1 else 0.0), scale
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (
            (middle, outside) if is_possible(start + middle * step) else (inside, middle)
        )
    return start + inside * step
