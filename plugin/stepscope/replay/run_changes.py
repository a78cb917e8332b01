"""Changes of a run, as changes of its operations' durations."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics as statistics
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Floats, Ints, Mask
from stepscope.replay.run_graph import RunGraph

NO_PEERS = "Record all ranks of the job."


class RunChange(ABC):
    """A difference between the recorded run and the simulated one."""

    @abstractmethod
    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Return the operations' durations with this change; shape (n,), nanoseconds."""


@dataclass(frozen=True)
class PromptTransfers(RunChange):
    """Ranks that leave each collective together, as soon as the first.

    A rank that goes on later than the others does so without a cost while it waits for them, or
    they for it, at the next collective. With other work, it would delay them.
    """

    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Replace the transfers by the shortest over the ranks."""
        changed = duration_ns.copy()
        transfer_ns = changed[graph.members]
        meets = np.flatnonzero(graph.join >= 0)
        join = graph.join[meets]
        shortest_ns = np.full(int(join.max(initial=NONE)) + 1, np.iinfo(np.int64).max)
        np.minimum.at(shortest_ns, join, transfer_ns[meets])
        transfer_ns[meets] = shortest_ns[join]
        return changed


@dataclass(frozen=True, kw_only=True, eq=False)
class EqualWork(RunChange):
    """Ranks of a stage that all work as long: the mean of them, between the same collectives."""

    stage: Ints
    """Number of each rank's pipeline stage; shape (ranks,)."""

    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Replace the work of each stretch between two collectives' starts.

        Raises:
            MissingDataError: each stage has one rank.
        """
        if len(np.unique(self.stage)) == len(self.stage):
            msg = "no two ranks do the same work: each pipeline stage has one rank"
            raise MissingDataError(msg, NO_PEERS)
        work_ns, position = _stretches(graph, duration_ns, self.stage)
        mean_ns = statistics.mean(work_ns, position, int(position.max()) + 1)[position]
        return _with_work(graph, duration_ns, work_ns, mean_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class UsualWork(RunChange):
    """Ranks that work as long as the median of the other ranks of their stage."""

    stage: Ints
    """Number of each rank's pipeline stage; shape (ranks,)."""
    is_changed: Mask
    """Mask of those ranks; shape (ranks,)."""

    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Replace the ranks' work in each stretch between two collectives' starts.

        Raises:
            MissingDataError: a rank is the only one of its stage.
        """
        others = self.stage[~self.is_changed]
        if not np.isin(self.stage[self.is_changed], others).all():
            msg = "a rank has no other rank of its pipeline stage to be compared with"
            raise MissingDataError(msg, NO_PEERS)
        work_ns, position = _stretches(graph, duration_ns, self.stage)
        is_usual = ~self.is_changed[_trace_of_segment(graph)]
        usual_ns = statistics.quantile(
            work_ns[is_usual], position[is_usual], int(position.max()) + 1, 0.5
        )[position]
        new_ns = np.where(is_usual | np.isnan(usual_ns), work_ns, usual_ns)
        return _with_work(graph, duration_ns, work_ns, new_ns)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaleWork(RunChange):
    """Ranks whose work takes another time, such as one slow pipeline stage."""

    is_changed: Mask
    """Mask of those ranks; shape (ranks,)."""
    factor: float

    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Scale the ranks' work."""
        rows = np.flatnonzero(self.is_changed[graph.pieces.trace_index])
        scaled = duration_ns.copy()
        scaled[rows] = np.rint(scaled[rows] * self.factor)
        return scaled


@dataclass(frozen=True, kw_only=True)
class ScaleTransfers(RunChange):
    """Collectives whose transfer takes another time: another network."""

    factor: float

    def apply(self, graph: RunGraph, duration_ns: Ints) -> Ints:
        """Scale all transfers, their latency included."""
        scaled = duration_ns.copy()
        scaled[graph.members] = np.rint(scaled[graph.members] * self.factor)
        return scaled


def _trace_of_segment(graph: RunGraph) -> Ints:
    pieces = graph.pieces
    trace_index = np.empty(len(pieces.alike), dtype=np.int64)
    trace_index[pieces.segment] = pieces.trace_index
    return trace_index


def _stretches(graph: RunGraph, duration_ns: Ints, stage: Ints) -> tuple[Ints, Ints]:
    """Return the work of each stretch, and its position: equal on all ranks of a stage."""
    pieces = graph.pieces
    count = len(pieces.alike)
    work_ns = statistics.sums(duration_ns[: graph.work_count], pieces.segment, count)
    pairs = pd.DataFrame({"stage": stage[_trace_of_segment(graph)], "alike": pieces.alike})
    position = pairs.groupby(["stage", "alike"]).ngroup().to_numpy()
    return work_ns, np.asarray(position, dtype=np.int64)


def _with_work(graph: RunGraph, duration_ns: Ints, work_ns: Ints, new_ns: Floats | Ints) -> Ints:
    """Return durations such that each stretch has a new amount of work."""
    segment = graph.pieces.segment
    ratio = np.nan_to_num(statistics.ratio(new_ns, work_ns))
    changed = duration_ns.copy()
    changed[: graph.work_count] = np.rint(changed[: graph.work_count] * ratio[segment])
    is_last = np.diff(segment, append=NONE) != 0
    was_empty = is_last & (work_ns == 0)[segment]
    changed[: graph.work_count][was_empty] = np.rint(new_ns[segment[was_empty]])
    return changed
