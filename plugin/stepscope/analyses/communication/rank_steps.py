"""Breakdown of one trace's steps, from which waiting for other ranks can be computed later.

The waiting part of exposed communication follows from other ranks' traces. So a trace's summary
holds cumulative exposed communication over time: its amount in any span needs no events.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.device_activity import main_device, whole_activity
from stepscope.analyses.core.exposed_communication import communicating_times
from stepscope.analyses.steps.step_breakdown import exclusive_times, step_breakdown
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

MOST_EDGES = 8192
"""Most edges of exposed times in a curve. Longer ones are sampled and interpolated; sums over steps
and whole collectives stay exact."""
COPYING = ("memcpy", "memset")


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Cumulative exposed communication at ascending moments."""

    at_ns: Ints
    until_ns: Ints

    def until(self, moments_ns: Ints) -> Ints:
        """Return the cumulative amounts at these moments."""
        if not len(self.at_ns):
            return np.zeros(len(moments_ns), dtype=np.int64)
        base = self.at_ns[0]  # floats cannot hold absolute times exactly
        amounts = np.interp(moments_ns - base, self.at_ns - base, self.until_ns)
        return np.asarray(np.round(amounts).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class RankSteps:
    """Breakdown of steps, one entry per step; without steps, the whole trace is one.

    Computing, exposed communication, copies, data loading and the rest sum to the step.
    """

    number: Ints
    start_ns: Ints
    """On this rank's clock, as its collectives' starts."""
    duration_ns: Ints
    computing_ns: Ints
    """A device computes; without a device, operators run."""
    overlapped_ns: Ints
    """Communication during computing."""
    exposed_ns: Ints
    """Communication without computing."""
    copies_ns: Ints
    """A device only copies or sets memory."""
    loading_ns: Ints
    """The host waits for the next batch, and no device works."""
    idle_ns: Floats
    """The busiest device is idle; NaN without a device."""
    exposed: Curve
    has_steps: bool

    def __len__(self) -> int:
        """Return the number of entries."""
        return len(self.number)


@computed
def rank_steps(trace: Trace) -> RankSteps:
    """Return the breakdown of a trace's steps, on the trace's clock."""
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


def _idle(trace: Trace, start: Ints, end: Ints) -> Floats:
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
