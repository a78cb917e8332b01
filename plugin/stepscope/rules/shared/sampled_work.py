"""Sampled spots with what the trace confirms of them, as claims.

Samples name lines and their fractions of the unrecorded step, the trace the times that are no
training (`other_work`). A spot counts where the trace confirms enough of it; beside a device, as
far as the trace has such times. Which of them are a spot's, samples do not say: each spot claims
its fraction of every one of them, or without a device of every step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.host.hot_spots import HotSpot, enough, hot_spots
from stepscope.analyses.host.other_work import other_work
from stepscope.analyses.host.phase_names import FORWARD, HOST_CODE
from stepscope.base.calibration import ALL_OF_IT, SAMPLED_WORK, Factor
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed
from stepscope.rules import Claim
from stepscope.rules.shared.claimable_time import unrecorded_ns
from stepscope.rules.shared.step_savings import unrecorded_reference_ns

LEAST_CONFIRMED = 0.4
"""Fraction of the sampled time that the trace must confirm: what it shows as training may be
operators of a model that is no `nn.Module`."""
SURE_SHARE = 0.10
"""Lower end of a spot's confidence interval from which it is a cause, and no chance."""
TINY = 1e-9
LOOP_OPERATORS = 50
"""Operators per step from which they are many short ones; fewer, longer ones do real work."""
METHOD = (
    "The fraction of the samples of unrecorded steps on these lines, with its confidence interval "
    "of 95 %, beside a device as far as the trace has time that is no training; 0.75 of its lower "
    "end at least."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledWork:
    """A sampled spot as far as the trace confirms it; fractions of the unrecorded step."""

    spot: HotSpot
    share: float
    low: float
    high: float
    """Ends of the confidence interval."""
    is_python: bool
    """Whether it is Python or many short operators, not a few long operators."""
    claims: tuple[Claim, ...]

    @property
    def is_sure(self) -> bool:
        """Whether it is Python, or many short operators, with enough samples."""
        return self.is_python and self.low >= SURE_SHARE


@computed
def sampled_work(trace: Trace) -> tuple[SampledWork, ...]:
    """Return the spots that the trace confirms, the longest first."""
    spots = enough(hot_spots(trace))
    if not spots:
        return ()
    work = other_work(trace)
    whole, python = (_fraction(trace, times) for times in (work.times, work.python))
    outside = [spot for spot in spots if spot.phase != FORWARD]
    in_forward = [spot for spot in spots if spot.phase == FORWARD]
    times, has_device = work.times, bool(len(trace.device_events))
    if has_device:
        confirmed = _confirmed(outside, whole, work.exposed)
        rest = python - sum(share for _, share in confirmed)
        confirmed += _confirmed(in_forward, rest, 1.0)
    else:
        confirmed = [(spot, spot.share) for spot in outside if _is_confirmed(spot, whole)]
        confirmed += [(spot, spot.share) for spot in in_forward if _is_confirmed(spot, python)]
        times, whole = _steps(trace), 1.0
    ordered = sorted(confirmed, key=lambda pair: -pair[1])
    is_loop = work.operators_per_step >= LOOP_OPERATORS or 2 * work.operator_part < 1
    result, used = [], 0.0
    for (spot, share), high in zip(ordered, _upper_ends(ordered, whole), strict=True):
        part = high / max(whole, TINY)
        low = spot.interval[0] * share / spot.share
        factor = Factor(min(1.0, SAMPLED_WORK.low * low / high), 1.0, SAMPLED_WORK.source)
        of_spot = _part(times, used, used + part)
        used += part
        result.append(
            SampledWork(
                spot=spot,
                share=share,
                low=low,
                high=high,
                is_python=is_loop or spot.phase != HOST_CODE,
                claims=(Claim(of_spot, factor, METHOD, is_unslowed=has_device),)
                if len(of_spot)
                else (),
            )
        )
    return tuple(result)


def _upper_ends(confirmed: Sequence[tuple[HotSpot, float]], whole: float) -> list[float]:
    """Return the upper ends of the spots' intervals, in sum at most the whole.

    Each is its fraction at least; the rest of the whole is divided by what it lacks.
    """
    highs = [spot.interval[1] * share / spot.share for spot, share in confirmed]
    more = [high - share for high, (_, share) in zip(highs, confirmed, strict=True)]
    rest = whole - sum(share for _, share in confirmed)
    part = min(1.0, max(0.0, rest) / max(sum(more), TINY))
    return [share + part * extra for (_, share), extra in zip(confirmed, more, strict=True)]


def _fraction(trace: Trace, times: Intervals) -> float:
    """Return the fraction of the unrecorded step that some times of the trace take."""
    saved_ns = unrecorded_ns(trace, (Claim(times, ALL_OF_IT, is_unslowed=True),))
    if saved_ns is None:
        return intervals.duration_ns(times) / window(trace).reference_ns
    return saved_ns / unrecorded_reference_ns(trace)


def _confirmed(
    spots: Iterable[HotSpot], available: float, exposed: float
) -> list[tuple[HotSpot, float]]:
    """Return spots with their fractions of the step, the longest first, while there is time.

    `exposed` is the part of the host's work during which no device works.
    """
    result = []
    for spot in spots:
        share = min(exposed * spot.share, available)
        if _is_confirmed(spot, share):
            result.append((spot, share))
            available -= share
    return result


def _steps(trace: Trace) -> Intervals:
    """Return the steps of the window, from the start of each to that of the next."""
    span = window(trace)
    start_ns = complete_steps(trace).steps["start_ns"].to_numpy()
    bounds = np.unique([span.start_ns, *start_ns[start_ns > span.start_ns], span.end_ns])
    return np.column_stack((bounds[:-1], bounds[1:]))


def _is_confirmed(spot: HotSpot, share: float) -> bool:
    return share >= LEAST_CONFIRMED * spot.share


def _part(times: Intervals, start: float, end: float) -> Intervals:
    """Return a part of each of some times, from one fraction of it to another."""
    length = times[:, 1] - times[:, 0]
    begin, until = (times[:, 0] + np.rint(length * at).astype(np.int64) for at in (start, end))
    return intervals.union(begin, until)
