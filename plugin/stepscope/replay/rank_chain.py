"""Chain of one rank: its work between its collectives, from its summary alone.

A rank works, except while it waits for a collective: while communication is exposed until the
collective ends. Its work is cut at each moment at which a collective gets ready, at which a wait
ends, and at which a step begins.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from stepscope.analyses.communication.rank_steps import Curve, RankSteps
from stepscope.model.arrays import NONE, Ints

MOST_DELAY_NS = 100_000
"""A collective that starts later after the one before in its group did not wait for that one."""


class Cut(IntEnum):
    """Ends of pieces of work; at one moment, in this order."""

    RESUMED = 0
    """A collective has ended that the rank waited for."""
    STEP = 1
    """The next step begins."""
    READY = 2
    """A collective can start."""
    END = 3
    """The last step ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrivals:
    """Collectives of one rank in the order in which they started; arrays have shape (c,)."""

    start_ns: Ints
    ready_ns: Ints
    """When the collective could have started, had none run before it in its group."""
    end_ns: Ints
    group: Ints
    """Number of the process group."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RankChain:
    """Pieces of work of one rank, one after the other; arrays of pieces have shape (w,)."""

    cut: Ints
    """`Cut` at the end of each piece."""
    collective: Ints
    """The collective of that cut; -1: none."""
    work_ns: Ints
    """The piece without the wait at its end."""
    before: Ints
    """The collective before each one in its group, for which it waits; -1: none; shape (c,)."""
    delay_ns: Ints
    """From that collective's end to the start of the next one, where that bound it; shape (c,)."""
    begin_ns: int
    """Start of the first step, on this rank's clock."""
    step_ns: Ints
    """Recorded time from each step's start to the next one's, or to the end; shape (s,)."""

    @property
    def segment(self) -> Ints:
        """Number of cuts of kind `READY` before each piece."""
        is_ready = self.cut == Cut.READY
        return np.asarray(np.cumsum(is_ready) - is_ready, dtype=np.int64)


def rank_chain(steps: RankSteps, arrivals: Arrivals) -> RankChain:
    """Return the chain of a rank."""
    begin_ns, end_ns = int(steps.start_ns[0]), int((steps.start_ns + steps.duration_ns).max())
    before = _before(arrivals)
    before_end_ns = np.append(arrivals.end_ns, begin_ns)[before]
    is_soon = arrivals.start_ns - before_end_ns <= MOST_DELAY_NS
    is_queued = (before != NONE) & (arrivals.ready_ns < before_end_ns) & is_soon
    ready_ns = np.where(is_queued, arrivals.ready_ns, arrivals.start_ns)
    wait_ns = _waits(steps.exposed, arrivals, end_ns)
    resumed = np.flatnonzero(wait_ns > 0)
    starts = steps.start_ns[1:]
    parts = (
        (Cut.RESUMED, arrivals.end_ns[resumed], resumed),
        (Cut.STEP, starts, np.full(len(starts), NONE)),
        (Cut.READY, np.clip(ready_ns, begin_ns, end_ns), np.arange(len(ready_ns))),
        (Cut.END, np.array([end_ns]), np.array([NONE])),
    )
    cut = np.repeat([int(kind) for kind, _, _ in parts], [len(at) for _, at, _ in parts])
    time_ns = np.concatenate([at for _, at, _ in parts])
    order = np.lexsort((cut, time_ns))
    cut, time_ns = cut[order], time_ns[order]
    collective = np.concatenate([of for _, _, of in parts])[order]
    gap_ns = np.diff(time_ns, prepend=begin_ns)
    waited = np.where(cut == Cut.RESUMED, np.append(wait_ns, 0)[collective], 0)
    return RankChain(
        cut=cut,
        collective=collective,
        work_ns=np.maximum(0, gap_ns - waited),
        before=before,
        delay_ns=np.where(is_queued, arrivals.start_ns - before_end_ns, 0),
        begin_ns=begin_ns,
        step_ns=np.diff(steps.start_ns, append=end_ns),
    )


def _before(arrivals: Arrivals) -> Ints:
    """Return the collective before each one in its group, if it ended before this one started."""
    order = np.argsort(arrivals.group, kind="stable")
    is_next = arrivals.group[order[1:]] == arrivals.group[order[:-1]]
    before = np.full(len(order), NONE, dtype=np.int64)
    before[order[1:][is_next]] = order[:-1][is_next]
    is_over = arrivals.end_ns[before] <= arrivals.start_ns
    return np.where(is_over, before, NONE)


def _waits(curve: Curve, arrivals: Arrivals, end_ns: int) -> Ints:
    """Return how long communication had been exposed at each collective's end; 0: it was hidden."""
    if not len(curve.at_ns):
        return np.zeros(len(arrivals.end_ns), dtype=np.int64)
    vertex = np.flatnonzero(np.diff(curve.at_ns, prepend=curve.at_ns[0] - 1))
    at_ns = curve.at_ns[vertex]
    is_exposed = 2 * np.diff(curve.until_ns[vertex]) > np.diff(at_ns)
    begins = np.flatnonzero(is_exposed & ~np.append(False, is_exposed[:-1]))
    segment = np.searchsorted(at_ns, arrivals.end_ns, side="left") - 1
    inside = (segment >= 0) & (segment < len(is_exposed)) & (arrivals.end_ns <= end_ns)
    waits = np.zeros(len(segment), dtype=np.int64)
    rows = np.flatnonzero(inside)
    rows = rows[is_exposed[segment[rows]]]
    first = begins[np.searchsorted(begins, segment[rows], side="right") - 1]
    waits[rows] = arrivals.end_ns[rows] - at_ns[first]
    return waits
