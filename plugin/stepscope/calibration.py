"""What is won of the time that a finding claims: one factor a kind of change, with its source.

A claim is a set of times. `low` and `high` are the shares of it that a fix wins at least and at
most. Where a change makes work faster by 1.5 to 4 times, it wins 1 - 1/1.5 to 1 - 1/4 of its time
(`speedup`). A factor without a measurement behind it says that it is an estimate.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Factor:
    """Shares (0 to 1) of the claimed time that are won at least and at most."""

    low: float
    high: float
    source: str
    """Where the two numbers come from: a measurement, a paper, a data sheet, or an estimate."""


def speedup(low: float, high: float, source: str) -> Factor:
    """Return the factor of work that becomes `low` to `high` times as fast (both at least 1)."""
    return Factor(low=1 - 1 / low, high=1 - 1 / high, source=source)


EXPOSED_TIME = Factor(
    low=0.75,
    high=1.0,
    source=(
        "torch-tb-profiler's sample runs with 0 and 4 DataLoader workers: 0.84 and 0.77 of the "
        "exposed loading was won"
    ),
)
EXPOSED_TIME_WITHOUT_DEVICE = Factor(
    low=0.4,
    high=1.0,
    source=(
        "the recordings in sample_logs/dataloader: on two cores, two workers won 0.46 to 0.56 of "
        "the exposed loading, since they take cores from computing"
    ),
)
ALL_OF_IT = Factor(low=1.0, high=1.0, source="the work is not done any more")
HALF_TO_ALL = Factor(low=0.5, high=1.0, source="an estimate: no pair of recordings measures it yet")
