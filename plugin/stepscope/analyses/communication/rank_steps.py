"""Where each step of one recording goes, so kept that waiting for other ranks can be told later.

Which part of the communication that nothing hides was waiting follows from other ranks alone. So a
recording says, as a curve over time, how much of it there was until then; what of it lay within any
time is then known without the events.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_activity import main_device, whole_activity
from stepscope.analyses.core.exposed_communication import communicating_times
from stepscope.analyses.steps.step_breakdown import exclusive_times, step_breakdown
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

Ints = NDArray[np.int64]
MOST_EDGES = 8192
"""Of times when something was exposed: of more, every n-th is kept, and what lies between is taken
to be spread evenly. Sums between steps, and over whole collectives, stay exact."""
COPYING = ("memcpy", "memset")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """How much exposed communication there was until each moment, ascending."""

    at_ns: Ints
    until_ns: Ints

    def until(self, moments_ns: Ints) -> Ints:
        """Return how much there was until these moments."""
        if not len(self.at_ns):
            return np.zeros(len(moments_ns), dtype=np.int64)
        base = self.at_ns[0]  # absolute times are more than a float holds
        amounts = np.interp(moments_ns - base, self.at_ns - base, self.until_ns)
        return np.asarray(np.round(amounts).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class RankSteps:
    """One entry a step; where no step is marked, the whole recording is one.

    Computing, exposed communication, copies, data loading and what is left sum to the step.
    """

    number: Ints
    start_ns: Ints
    """On this rank's clock, as its collectives' starts."""
    duration_ns: Ints
    computing_ns: Ints
    """A device computes; without a device, operators do."""
    overlapped_ns: Ints
    """What of that is also communication."""
    exposed_ns: Ints
    """What of the communication is not."""
    copies_ns: Ints
    """A device copies or sets memory, and does nothing else."""
    loading_ns: Ints
    """The host waits for the next batch, and no device works."""
    idle_ns: NDArray[np.float64]
    """The busiest device does nothing; NaN without a device."""
    exposed: Curve
    has_steps: bool

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.number)


@computed
def rank_steps(trace: Trace) -> RankSteps:
    """Return where each step of a recording goes, on the trace's own clock."""
    steps, times = step_breakdown(trace), exclusive_times(trace)
    of = {name: steps.parts_ns[:, at] for at, name in enumerate(steps.categories)}
    category = "kernel" if whole_activity(trace) else "cpu"
    sent = intervals.merged(*communicating_times(trace).values())
    start, end = steps.start_ns, steps.start_ns + steps.duration_ns
    overlapped = intervals.intersection(times[category], sent)
    return RankSteps(
        number=np.array(steps.numbers, dtype=np.int64),
        start_ns=start,
        duration_ns=steps.duration_ns,
        computing_ns=of[category],
        overlapped_ns=intervals.covered_ns(overlapped, start, end),
        exposed_ns=of["communication"],
        copies_ns=sum((of[name] for name in COPYING), np.zeros(len(start), dtype=np.int64)),
        loading_ns=of["dataloader"],
        idle_ns=_idle(trace, start, end),
        exposed=_curve(trace, times["communication"], (start, end)),
        has_steps=steps.step_count > 0,
    )


def _idle(trace: Trace, start: Ints, end: Ints) -> NDArray[np.float64]:
    main = main_device(trace)
    if main is None:
        return np.full(len(start), np.nan)
    busy = next(
        activity.busy for activity in whole_activity(trace) if activity.device == main.device
    )
    return (end - start - intervals.covered_ns(busy, start, end)).astype(np.float64)


def _curve(trace: Trace, exposed: Intervals, bounds: Sequence[Ints]) -> Curve:
    edges = exposed.ravel()
    every = -(-len(edges) // MOST_EDGES) or 1
    frame = trace.collectives
    whole = (frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy())
    at = np.unique(np.concatenate((edges[::every], edges[-1:], *bounds, *whole)))
    first = np.full(len(at), np.iinfo(np.int64).min)
    return Curve(at_ns=at, until_ns=intervals.covered_ns(exposed, first, at))
