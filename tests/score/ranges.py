"""Ranges that estimate a saving, and scores of them."""

from dataclasses import dataclass
from typing import Literal

Holds = Literal["yes", "within noise", "no", "nothing predicted", "nothing to save"]
NO_ESTIMATE: frozenset[Holds] = frozenset({"nothing predicted", "nothing to save"})
ALPHA = 0.1
"""A range is meant to miss one saving in ten."""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A range of nanoseconds."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Return whether the range contains a value."""
        return self.low <= value <= self.high

    def meets(self, other: "Span") -> bool:
        """Return whether two ranges overlap."""
        return self.low <= other.high and other.low <= self.high

    def scaled(self, factor: float) -> "Span":
        """Return the range times a positive number."""
        return Span(low=factor * self.low, high=factor * self.high)

    @property
    def width(self) -> float:
        """Upper over lower end; infinite if it begins at 0."""
        return self.high / self.low if self.low > 0 else float("inf")


def judgement(predicted: Span, realised_ns: float, likely: Span) -> Holds:
    """Return whether a range contains a saving, given the saving's confidence interval.

    Without an estimate: whether the interval contains 0, so that none is right.
    """
    if not predicted.high:
        return "nothing to save" if likely.low <= 0 else "nothing predicted"
    if predicted.holds(realised_ns):
        return "yes"
    return "within noise" if predicted.meets(likely) else "no"


def interval_score(predicted: Span, value: float, alpha: float = ALPHA) -> float:
    """Return the interval score of a range, in the unit of its ends; less is better.

    The width, and 2/alpha times the distance of a value outside (Gneiting & Raftery 2007, eq. 43).
    """
    below = max(0.0, predicted.low - value)
    above = max(0.0, value - predicted.high)
    return predicted.high - predicted.low + 2 / alpha * (below + above)
