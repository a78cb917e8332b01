"""Operations of many ranks start when those before them end; joint ones wait for the last rank."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints
from stepscope.replay.operations import Operations, chained, operation_graph

RANKS, ROUNDS = 3, 4
durations = st.lists(st.integers(0, 100), min_size=2 * RANKS * ROUNDS, max_size=2 * RANKS * ROUNDS)


def in_rounds(released: frozenset[int] = frozenset()) -> Operations:
    """Ranks that work and then meet, in rounds: row 2 * (round * RANKS + rank) is the work."""
    number = np.arange(2 * RANKS * ROUNDS)
    join = np.where(number % 2, number // (2 * RANKS), -1)
    source, target = chained(number // 2 % RANKS, number)
    return Operations(
        join=join,
        is_released=np.isin(number, list(released)) & (join >= 0),
        start_ns=np.zeros(len(number), dtype=np.int64),
        source=source,
        target=target,
    )


def ends_in_rounds(duration: list[int]) -> list[list[int]]:
    """Return the ends of the ranks' rounds, one round after the other."""
    now, ends = [0] * RANKS, []
    for at in range(ROUNDS):
        rows = [2 * (at * RANKS + rank) for rank in range(RANKS)]
        last = max(now[rank] + duration[row] for rank, row in enumerate(rows))
        now = [last + duration[row + 1] for row in rows]
        ends.append(now)
    return ends


@given(durations)
def test_ranks_that_meet_wait_for_the_last_one(duration: list[int]) -> None:
    times = operation_graph(in_rounds()).times(np.array(duration, dtype=np.int64))
    assert times.end_ns[1::2].reshape(ROUNDS, RANKS).tolist() == ends_in_rounds(duration)


@given(durations, st.integers(0, 2 * RANKS * ROUNDS - 1), st.integers(0, 50))
def test_no_operation_ends_later_if_one_is_shorter(
    duration: list[int], row: int, saved: int
) -> None:
    graph = operation_graph(in_rounds())
    shorter = list(duration)
    shorter[row] = max(0, shorter[row] - saved)
    before, after = (graph.times(np.array(of, dtype=np.int64)) for of in (duration, shorter))
    assert (after.end_ns <= before.end_ns).all()


def test_a_sender_may_leave_before_its_receiver_comes() -> None:
    operations = in_rounds(released=frozenset({1}))
    duration = np.array([1, 2, 50, 3, 7, 4] + [0] * (2 * RANKS * (ROUNDS - 1)), dtype=np.int64)
    times = operation_graph(operations).times(duration)
    assert times.end_ns[1:6:2].tolist() == [3, 53, 54]
    assert times.joined_ns[0] == 50


def test_operations_that_wait_for_one_another_are_refused() -> None:
    none = np.full(2, -1)
    operations = Operations(
        join=none,
        is_released=none > 0,
        start_ns=np.zeros(2, dtype=np.int64),
        source=np.array([0, 1]),
        target=np.array([1, 0]),
    )
    with pytest.raises(MissingDataError, match="circle"):
        operation_graph(operations)


def test_ranks_that_meet_in_another_order_are_refused() -> None:
    """Rank 0 meets in collective 0, then 1; rank 1 in 1, then 0: neither can go on."""
    operations = Operations(
        join=np.array([0, 1, 1, 0]),
        is_released=np.zeros(4, dtype=bool),
        start_ns=np.zeros(4, dtype=np.int64),
        source=np.array([0, 2]),
        target=np.array([1, 3]),
    )
    with pytest.raises(MissingDataError, match="circle"):
        operation_graph(operations)


def pairs(source: Ints, target: Ints) -> list[tuple[int, int]]:
    return list(zip(source.tolist(), target.tolist(), strict=True))


def test_operations_of_a_lane_are_chained_by_their_starts() -> None:
    lane, start = np.array([0, 1, 0, -1, 1, 0]), np.array([5, 0, 1, 2, 3, 9])
    assert pairs(*chained(lane, start)) == [(2, 0), (0, 5), (1, 4)]
