"""Result of a pair that ran in turns: step times of both sides without a profiler."""

import math
import statistics
from collections.abc import Sequence

import msgspec

FILE_NAME = "result.json"
T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's 97.5 % quantiles for 1 to 9 degrees of freedom."""
LARGEST_ERROR_SHARE = 0.15
LARGEST_STEP_SHARE = 0.02
"""A pair is disturbed if half of its saving's 95 % interval exceeds both fractions: the first of
the saving, the second of the step with the faults."""


class PairResult(msgspec.Struct, frozen=True, kw_only=True):
    """Step times of a pair, in turns, and the settings of its runs."""

    family: str
    faults: tuple[str, ...]
    behind: tuple[str, ...]
    """Faults that stay on in both runs."""
    kinds: tuple[str, ...]
    rules: tuple[str, ...]
    """Rules that should name the faults."""
    samples: tuple[int, int]
    """Samples in a step with the faults and without, or 1 and 1 where they are equal."""
    fault_ms: tuple[float, ...]
    fix_ms: tuple[float, ...]
    """Mean step of each turn, in milliseconds, of both sides."""
    turn_step_counts: tuple[int, int]
    """Steps of a turn that count, of both sides."""
    attempt_count: int
    """Series of turns that were run; the steadiest is stored."""
    torch: str
    processor: str
    core_count: int
    ranks: int
    threads: int

    @property
    def differences_ms(self) -> tuple[float, ...]:
        """Saving of each turn, per sample."""
        return tuple(
            fault / self.samples[0] - fix / self.samples[1]
            for fault, fix in zip(self.fault_ms, self.fix_ms, strict=True)
        )

    @property
    def before_ms(self) -> float:
        """Mean step with the faults, per sample."""
        return statistics.fmean(self.fault_ms) / self.samples[0]

    @property
    def saving_ms(self) -> float:
        """Realised saving, per sample: the mean over turns."""
        return statistics.fmean(self.differences_ms)

    @property
    def error_ms(self) -> float:
        """Half of the saving's 95 % interval, by turns."""
        return half_interval(self.differences_ms)

    @property
    def is_disturbed(self) -> bool:
        """Whether the turns disagree."""
        least = max(LARGEST_ERROR_SHARE * abs(self.saving_ms), LARGEST_STEP_SHARE * self.before_ms)
        return self.error_ms > least


def half_interval(values: Sequence[float]) -> float:
    """Returns half of the 95 % interval of a mean (Student's t); infinite for one value."""
    if len(values) < 2:
        return float("inf")
    quantile = T_95[min(len(values) - 1, len(T_95)) - 1]
    return quantile * statistics.stdev(values) / math.sqrt(len(values))
