"""Operations of many ranks: work, and joint operations that begin when their last rank has come.

An operation starts when the operations that it depends on have ended. Work then takes its duration.
The operations of a joint operation, such as the parts of a collective on its ranks, wait until all
of them have started, and then take their transfer. So waiting for other ranks is a result, not an
input: it changes with the durations.

The model is that of dPRO (Hu et al., MLSys 2022) and of "Understanding stragglers in large model
training using what-if analysis" (Lin et al., OSDI 2025).
"""

from dataclasses import dataclass

import numpy as np

from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.replay import scheduler


@dataclass(frozen=True, kw_only=True, eq=False)
class Operations:
    """Operations with their dependencies."""

    join: Ints
    """Number of the joint operation, from 0; -1: none; shape (n,)."""
    is_released: Mask
    """Whether an operation of a joint one ends without waiting for the others; shape (n,)."""
    start_ns: Ints
    """Start of operations without dependencies; shape (n,)."""
    source: Ints
    """Operation that must end before another starts; shape (m,)."""
    target: Ints
    """That other operation; shape (m,)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OperationGraph:
    """Starts, joints and ends of operations, in an order in which sources precede targets.

    Points are numbered: n starts, n ends, then one point per joint operation.
    """

    order: Ints
    """Points in topological order; shape (p,)."""
    first_edge: Ints
    """First edge of each point, in that order; shape (p + 1,)."""
    source: Ints
    """Position in `order` of the point that each edge comes from; shape (e,)."""
    operation: Ints
    """Operation whose duration is the edge's weight; -1: the weight is 0; shape (e,)."""
    start_ns: Ints
    """Start of points without an edge, in `order`; shape (p,)."""
    count: int
    """Number of operations."""

    def times(self, duration_ns: Ints) -> "OperationTimes":
        """Return the times of all operations if they have these durations (shape (n,)).

        A duration of an operation that waits for others is its transfer.
        """
        weight = np.append(duration_ns, 0)[self.operation]
        in_order = scheduler.times(self.first_edge, self.source, weight, self.start_ns)
        time_ns = np.empty_like(in_order)
        time_ns[self.order] = in_order
        return OperationTimes(
            start_ns=time_ns[: self.count],
            end_ns=time_ns[self.count : 2 * self.count],
            joined_ns=time_ns[2 * self.count :],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class OperationTimes:
    """Simulated times, in nanoseconds."""

    start_ns: Ints
    """Start of each operation; shape (n,)."""
    end_ns: Ints
    """End of each operation; shape (n,)."""
    joined_ns: Ints
    """Arrival of the last operation of each joint one; shape (j,)."""


def operation_graph(operations: Operations) -> OperationGraph:
    """Return the graph of some operations.

    Raises:
        MissingDataError: the dependencies form a circle.
    """
    count = len(operations.join)
    points = 2 * count + int(operations.join.max(initial=NONE)) + 1
    source, target, operation = _edges(operations)
    order = scheduler.topological_order(source, target, points)
    if len(order) < points:
        msg = "the recorded order of the ranks' operations forms a circle"
        raise MissingDataError(msg, "Record all ranks again, in the same steps.")
    position = np.empty(points, dtype=np.int64)
    position[order] = np.arange(points)
    by_target = np.argsort(position[target], kind="stable")
    start_ns = np.zeros(points, dtype=np.int64)
    start_ns[:count] = operations.start_ns
    return OperationGraph(
        order=order,
        first_edge=scheduler.first_edges(position[target], points),
        source=position[source][by_target],
        operation=operation[by_target],
        start_ns=start_ns[order],
        count=count,
    )


def _edges(operations: Operations) -> tuple[Ints, Ints, Ints]:
    """Return the source and target of each edge, and the operation that it lasts."""
    count = len(operations.join)
    rows = np.arange(count)
    members = np.flatnonzero(operations.join >= 0)
    joint = 2 * count + operations.join
    begin = np.where((operations.join >= 0) & ~operations.is_released, joint, rows)
    source = np.concatenate((operations.source + count, members, begin))
    target = np.concatenate((operations.target, joint[members], rows + count))
    none = np.full(len(operations.source) + len(members), NONE)
    return source, target, np.concatenate((none, rows))


def chained(lane: Ints, start_ns: Ints) -> tuple[Ints, Ints]:
    """Return the dependencies of operations that run one after the other in their lane.

    Args:
        lane: Number of each operation's lane, such as a stream; -1: none; shape (n,).
        start_ns: Recorded starts, which order the operations; ties keep their order; shape (n,).

    Returns:
        Sources and targets, each of shape (m,).
    """
    rows = np.flatnonzero(lane >= 0)
    rows = rows[np.lexsort((start_ns[rows], lane[rows]))]
    is_next = lane[rows[1:]] == lane[rows[:-1]]
    return rows[:-1][is_next], rows[1:][is_next]
