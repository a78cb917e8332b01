"""Breakdown of each rank's steps, with waiting for other ranks separate from transfer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.rank_steps import RankSteps
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.core import group_statistics as statistics
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.intervals import Intervals

WHOLE = 0
"""Step number of a trace without steps."""
CATEGORIES: dict[str, tuple[str, str]] = {
    "computing": (
        "Computing",
        "A device computes without communication; without a device, operators run.",
    ),
    "overlapped": ("Computing and communicating", "A collective runs during computing."),
    "transfer": (
        "Exposed transfer",
        "A collective transfers data and nothing computes; also all exposed time of collectives"
        " that match no other rank's.",
    ),
    "waiting": (
        "Waiting for other ranks",
        "A collective runs and nothing computes, before the transfer: the shortest duration over"
        " its ranks, up to its end.",
    ),
    "copies": ("Copies", "A device only copies or sets memory."),
    "loading": ("Data loading", "The host waits for the next batch, and no device works."),
    "other": ("Idle and other", "None of these: the host is late, or the device is idle."),
}
"""Category id to label and meaning: they sum to the step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSteps:
    """Steps of all traces, by trace, then time."""

    trace_index: Ints
    number: Ints
    duration_ns: Ints
    parts_ns: Ints
    """A column per entry of `CATEGORIES`."""
    idle_ns: Floats
    """NaN: no device."""
    wait_ns: Ints
    """Waiting, exposed or not; concurrent collectives count once."""
    late_ns: Floats
    """Mean lateness (`Matches.late_ns`) in the group in which it is least; NaN: none."""
    is_matched: Mask
    """Whether any collective of the trace matches another rank's."""

    def of(self, category: str) -> Ints:
        """Return one category's column."""
        return np.asarray(self.parts_ns[:, list(CATEGORIES).index(category)])

    @property
    def communication_ns(self) -> Ints:
        """Collectives, exposed or not; concurrent ones count once."""
        return self.of("overlapped") + self.of("transfer") + self.of("waiting")


@computed_per_run
def run_steps(run: RankRun) -> RunSteps:
    """Break down every step of every trace."""
    steps = [part.steps for part in run.parts]
    counts = [len(item) for item in steps]
    parts = [_parts(*item) for item in zip(steps, run.waits, strict=True)]
    has_matched = np.array([len(waits) > 0 for waits in run.waits], dtype=bool)
    has_matched |= np.bincount(
        run.matches.trace_index[run.matches.is_matched],
        minlength=len(run.parts),
    ).astype(bool)
    trace_index = np.repeat(np.arange(len(steps)), counts)
    number = _together([item.number for item in steps])
    return RunSteps(
        trace_index=trace_index,
        number=number,
        duration_ns=_together([item.duration_ns for item in steps]),
        parts_ns=_together([*parts, np.empty((0, len(CATEGORIES)), dtype=np.int64)]),
        idle_ns=_together([item.idle_ns for item in steps]).astype(np.float64),
        wait_ns=_together([_covered(*item) for item in zip(steps, run.waits, strict=True)]),
        late_ns=_lateness(run, trace_index, number),
        is_matched=has_matched[trace_index],
    )


def _together(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def _covered(steps: RankSteps, waits: Intervals) -> Ints:
    return intervals.covered_ns(waits, steps.start_ns, steps.start_ns + steps.duration_ns)


def _parts(steps: RankSteps, waits: Intervals) -> Ints:
    waiting = np.minimum(exposed_during(steps, waits), steps.exposed_ns)
    parts_ns = (
        steps.computing_ns - steps.overlapped_ns,
        steps.overlapped_ns,
        steps.exposed_ns - waiting,
        waiting,
        steps.copies_ns,
        steps.loading_ns,
    )
    return np.stack((*parts_ns, steps.duration_ns - sum(parts_ns)), axis=1)


def exposed_during(steps: RankSteps, times: Intervals) -> Ints:
    """Return, for each step, the amount of its exposed communication in some times."""
    curve = steps.exposed
    if not len(times):
        return np.zeros(len(steps), dtype=np.int64)
    begun, ended = curve.until(times[:, 0]), curve.until(times[:, 1])
    total = np.concatenate(([0], np.cumsum(ended - begun)))

    def until(moments: Ints) -> Ints:
        index = np.searchsorted(times[:, 0], moments, side="right")
        beyond = np.where(index > 0, np.maximum(ended[index - 1] - curve.until(moments), 0), 0)
        return np.asarray(total[index] - beyond)

    amounts = until(steps.start_ns + steps.duration_ns) - until(steps.start_ns)
    return np.asarray(np.maximum(amounts, 0))


def _lateness(run: RankRun, trace_index: Ints, number: Ints) -> Floats:
    """Return the mean lateness of each trace and step in its best group."""
    matches = run.matches
    late, group = matches.late_ns, matches.group
    has_steps = np.array([*(part.steps.has_steps for part in run.parts), True], dtype=bool)
    step = np.where(has_steps[matches.trace_index], matches.step, WHOLE)
    row = _row_of(trace_index, number, (matches.trace_index, step))
    group_count = int(group.max(initial=0)) + 1
    is_full = ~np.isnan(late) & (row >= 0)
    pair = row[is_full] * group_count + group[is_full]
    distinct, which = np.unique(pair, return_inverse=True)
    mean = statistics.mean(late[is_full], which, len(distinct))
    least = np.full(len(trace_index), np.inf)
    np.minimum.at(least, distinct // group_count, mean)
    return np.where(np.isfinite(least), least, np.nan)


def _row_of(trace_index: Ints, number: Ints, members: tuple[Ints, Ints]) -> Ints:
    """Return each member's row among traces and steps, or -1."""
    who, step = members
    numbers = np.unique(np.concatenate((number, step)))
    keys = trace_index * len(numbers) + np.searchsorted(numbers, number)
    order = np.argsort(keys, kind="stable")
    searched = who * len(numbers) + np.searchsorted(numbers, step)
    index = np.minimum(np.searchsorted(keys[order], searched), max(0, len(keys) - 1))
    if not len(keys):
        return np.full(len(searched), -1, dtype=np.int64)
    row = order[index]
    return np.where(keys[row] == searched, row, -1)
