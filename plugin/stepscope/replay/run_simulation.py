"""Simulated steps of a run's ranks, and their waiting for each other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.communication.rank_metrics import compute_time
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.core import group_statistics as statistics
from stepscope.model.arrays import Ints
from stepscope.replay.operations import OperationTimes
from stepscope.replay.rank_chain import Cut
from stepscope.replay.run_changes import RunChange
from stepscope.replay.run_graph import RunGraph, run_graph

MOST_ERROR = 0.02
"""Runs whose replay with typical transfers is further off the recorded steps are not simulated."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSimulation:
    """A run replayed with changes; arrays have a row per rank, times are nanoseconds."""

    step_ns: Ints
    """Shape (ranks, steps)."""
    work_ns: Ints
    """Sum of the time in which a rank does not wait for a collective."""
    wait_ns: Ints
    """Sum of its waiting for other ranks, the transfers left out."""


@computed_per_run
def uncut(run: RankRun) -> RankRun:
    """Return the run without the traces that were cut off."""
    is_short = compute_time(run).is_short
    if not is_short.any():
        return run
    whole = np.flatnonzero(~is_short).tolist()
    return RankRun(
        parts=tuple(run.parts[index] for index in whole),
        ranks=tuple(run.ranks[index] for index in whole),
    )


def simulate_run(run: RankRun, changes: Sequence[RunChange]) -> RunSimulation:
    """Replay a run with changes, which apply one after the other.

    Raises:
        MissingDataError: the run cannot be replayed (see `run_graph`), or ranks lack peers.
    """
    graph = run_graph(run)
    duration_ns = graph.duration_ns
    for change in changes:
        duration_ns = change.apply(graph, duration_ns)
    times = graph.graph.times(duration_ns)
    step_ns = _steps(graph, times)
    work_ns = statistics.sums(
        duration_ns[: graph.work_count], graph.pieces.trace_index, len(run.parts)
    )
    return RunSimulation(
        step_ns=step_ns,
        work_ns=work_ns,
        wait_ns=_waits(graph, times),
    )


@computed_per_run
def run_replay_error(run: RankRun) -> float:
    """Return how far off the recorded steps an unchanged replay with typical transfers is.

    The mean over the ranks, as a fraction of the steps; 0 if ranks leave all collectives together.
    """
    graph = run_graph(run)
    simulated_ns = _steps(graph, graph.graph.times(graph.typical_ns)).sum(axis=1)
    recorded_ns = graph.step_ns.sum(axis=1)
    return float(np.abs(simulated_ns - recorded_ns).sum() / max(1, recorded_ns.sum()))


def _steps(graph: RunGraph, times: OperationTimes) -> Ints:
    is_bound = np.isin(graph.pieces.cut, (Cut.STEP, Cut.END))
    end_ns = times.end_ns[: graph.work_count][is_bound].reshape(graph.step_ns.shape)
    return np.diff(end_ns, axis=1, prepend=graph.begin_ns[:, None])


def _waits(graph: RunGraph, times: OperationTimes) -> Ints:
    """Return the time that each rank waits for others to come, and does not work."""
    pieces = graph.pieces
    rows = np.flatnonzero(pieces.cut == Cut.RESUMED)
    rows = rows[graph.join[pieces.member[rows]] >= 0]
    member = pieces.member[rows]
    since_ns = np.maximum(times.end_ns[rows], times.start_ns[graph.members][member])
    joined_ns = times.joined_ns[graph.join[member]]
    until_ns = np.minimum(joined_ns, times.end_ns[graph.members][member])
    waits = np.maximum(0, until_ns - since_ns)
    return statistics.sums(waits, pieces.trace_index[rows], len(graph.begin_ns))
