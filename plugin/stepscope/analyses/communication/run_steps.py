"""Where each step of each rank goes, waiting for other ranks told from transfer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.rank_steps import RankSteps
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.core import group_statistics as statistics
from stepscope.model import intervals
from stepscope.model.intervals import Intervals

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
WHOLE = 0
"""The number of a recording without steps, which is its own only one."""
CATEGORIES: dict[str, tuple[str, str]] = {
    "computing": (
        "Computing",
        "A device computes and nothing is sent; without a device, operators run.",
    ),
    "overlapped": ("Computing and communicating", "A collective runs behind computing."),
    "transfer": (
        "Exposed transfer",
        "A collective runs, nothing computes, and no other rank is waited for; also all exposed"
        " time of collectives that were found on this rank alone.",
    ),
    "waiting": (
        "Waiting for other ranks",
        "A collective runs, nothing computes, and it is not yet as long from its end as the"
        " shortest of its ranks was long.",
    ),
    "copies": ("Copies", "A device copies or sets memory, and does nothing else."),
    "loading": ("Data loading", "The host waits for the next batch, and no device works."),
    "other": ("Idle and other", "None of these: the host is late, or the device stands still."),
}
"""Category id to label and meaning: they sum to the step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSteps:
    """One row a recording and step, by recording, then time."""

    trace_index: Ints
    number: Ints
    duration_ns: Ints
    parts_ns: Ints
    """A column each of `CATEGORIES`."""
    idle_ns: Floats
    """NaN: no device."""
    wait_ns: Ints
    """Waiting, hidden behind computing or not; concurrent collectives counted once."""
    late_ns: Floats
    """Mean lateness in the group in which the rank is least late in this step; NaN: none.

    Lateness in a collective is by how much shorter it was than for the median rank."""
    is_matched: NDArray[np.bool_]
    """Whether any collective of the recording was found on another rank."""

    def of(self, category: str) -> Ints:
        """Return one category's column."""
        return np.asarray(self.parts_ns[:, list(CATEGORIES).index(category)])

    @property
    def communication_ns(self) -> Ints:
        """Collectives, hidden or not, concurrent ones counted once."""
        return self.of("overlapped") + self.of("transfer") + self.of("waiting")


@computed_per_run
def run_steps(run: RankRun) -> RunSteps:
    """Break down every step of every recording."""
    steps = [part.steps for part in run.parts]
    counts = [len(item) for item in steps]
    parts = [_parts(*item) for item in zip(steps, run.waits, strict=True)]
    has_matched = np.array([len(waits) > 0 for waits in run.waits], dtype=bool)
    has_matched |= np.bincount(
        run.matches.trace_index[run.matches.is_matched],
        minlength=len(run.parts),
    ).astype(bool)
    recording = np.repeat(np.arange(len(steps)), counts)
    number = _together([item.number for item in steps])
    return RunSteps(
        trace_index=recording,
        number=number,
        duration_ns=_together([item.duration_ns for item in steps]),
        parts_ns=_together([*parts, np.empty((0, len(CATEGORIES)), dtype=np.int64)]),
        idle_ns=_together([item.idle_ns for item in steps]).astype(np.float64),
        wait_ns=_together([_covered(*item) for item in zip(steps, run.waits, strict=True)]),
        late_ns=_lateness(run, recording, number),
        is_matched=has_matched[recording],
    )


def _together(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)


def _covered(steps: RankSteps, waits: Intervals) -> Ints:
    return intervals.covered_ns(waits, steps.start_ns, steps.start_ns + steps.duration_ns)


def _parts(steps: RankSteps, waits: Intervals) -> Ints:
    """Return one recording's categories, a row a step."""
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
    """Return, for each step, how much of its exposed communication lies within some times."""
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


def _lateness(run: RankRun, recording: Ints, number: Ints) -> Floats:
    """Return the mean lateness of each recording and step in its best group."""
    matches = run.matches
    late, group = matches.late_ns, matches.group
    has_steps = np.array([*(part.steps.has_steps for part in run.parts), True], dtype=bool)
    step = np.where(has_steps[matches.trace_index], matches.step, WHOLE)
    row = _row_of(recording, number, (matches.trace_index, step))
    group_count = int(group.max(initial=0)) + 1
    is_full = ~np.isnan(late) & (row >= 0)
    pair = row[is_full] * group_count + group[is_full]
    distinct, which = np.unique(pair, return_inverse=True)
    mean = statistics.mean(late[is_full], which, len(distinct))
    least = np.full(len(recording), np.inf)
    np.minimum.at(least, distinct // group_count, mean)
    return np.where(np.isfinite(least), least, np.nan)


def _row_of(recording: Ints, number: Ints, members: tuple[Ints, Ints]) -> Ints:
    """Return each member's row among recordings and steps; -1 for a step that has none."""
    who, step = members
    numbers = np.unique(np.concatenate((number, step)))
    keys = recording * len(numbers) + np.searchsorted(numbers, number)
    order = np.argsort(keys, kind="stable")
    searched = who * len(numbers) + np.searchsorted(numbers, step)
    index = np.minimum(np.searchsorted(keys[order], searched), max(0, len(keys) - 1))
    if not len(keys):
        return np.full(len(searched), -1, dtype=np.int64)
    row = order[index]
    return np.where(keys[row] == searched, row, -1)
