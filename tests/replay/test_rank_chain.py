"""A rank's chain: its work between collectives, without the waits that end with one."""

import numpy as np

from stepscope.analyses.communication.rank_steps import Curve, RankSteps
from stepscope.model.arrays import NONE
from stepscope.replay.rank_chain import Arrivals, Cut, RankChain, rank_chain

NOTHING = np.zeros(0, dtype=np.int64)


def steps(*bounds: int, exposed: list[tuple[int, int]] | None = None) -> RankSteps:
    """Steps between moments, with communication exposed at some times."""
    edges = np.array(exposed or [], dtype=np.int64).reshape(-1, 2)
    start, end = np.array(bounds[:-1]), np.array(bounds[1:])
    amounts = np.repeat(np.cumsum(edges[:, 1] - edges[:, 0]), 2)
    amounts[::2] -= edges[:, 1] - edges[:, 0]
    none = np.zeros(len(start), dtype=np.int64)
    return RankSteps(
        number=np.arange(len(start)),
        start_ns=start,
        duration_ns=end - start,
        computing_ns=none,
        overlapped_ns=none,
        exposed_ns=none,
        copies_ns=none,
        loading_ns=none,
        idle_ns=none.astype(float),
        exposed=Curve(at_ns=edges.ravel(), until_ns=amounts),
        has_steps=True,
    )


def arrivals(
    *rows: tuple[int, int], group: list[int] | None = None, ready: list[int] | None = None
) -> Arrivals:
    """Collectives from start to end."""
    start, end = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return Arrivals(
        start_ns=start,
        ready_ns=np.array(ready if ready is not None else start, dtype=np.int64),
        end_ns=end,
        group=np.array(group or [0] * len(start), dtype=np.int64),
    )


def pieces(chain: RankChain) -> list[tuple[str, int, int]]:
    """Cut, collective and work of each piece."""
    rows = zip(chain.cut.tolist(), chain.collective.tolist(), chain.work_ns.tolist(), strict=True)
    return [(Cut(cut).name, collective, work) for cut, collective, work in rows]


def test_a_rank_works_until_it_waits_for_a_collective() -> None:
    chain = rank_chain(steps(0, 100, exposed=[(30, 50)]), arrivals((30, 50)))
    assert pieces(chain) == [("READY", 0, 30), ("RESUMED", 0, 0), ("END", NONE, 50)]


def test_a_hidden_collective_costs_no_work_and_only_its_exposed_end_is_a_wait() -> None:
    hidden = rank_chain(steps(0, 100), arrivals((30, 50)))
    assert pieces(hidden) == [("READY", 0, 30), ("END", NONE, 70)]
    late = rank_chain(steps(0, 100, exposed=[(45, 50)]), arrivals((30, 50)))
    assert pieces(late) == [("READY", 0, 30), ("RESUMED", 0, 15), ("END", NONE, 50)]


def test_exposed_communication_that_ends_before_the_collective_is_work_of_the_host() -> None:
    """The device computes again before the collective ends: it did not wait for that."""
    chain = rank_chain(steps(0, 100, exposed=[(30, 40)]), arrivals((30, 50)))
    assert pieces(chain) == [("READY", 0, 30), ("END", NONE, 70)]


def test_steps_cut_the_work_of_a_rank() -> None:
    chain = rank_chain(steps(0, 60, 100, exposed=[(70, 80)]), arrivals((70, 80)))
    assert pieces(chain) == [
        ("STEP", NONE, 60),
        ("READY", 0, 10),
        ("RESUMED", 0, 0),
        ("END", NONE, 20),
    ]
    assert chain.step_ns.tolist() == [60, 40]
    assert chain.segment.tolist() == [0, 0, 1, 1]


def test_a_collective_waits_for_the_one_before_in_its_group() -> None:
    chain = rank_chain(
        steps(0, 100),
        arrivals((10, 40), (42, 60), (45, 50), group=[0, 0, 1], ready=[10, 20, 45]),
    )
    assert chain.before.tolist() == [NONE, 0, NONE]
    assert chain.delay_ns.tolist() == [0, 2, 0]
    assert pieces(chain) == [
        ("READY", 0, 10),
        ("READY", 1, 10),
        ("READY", 2, 25),
        ("END", NONE, 55),
    ]


def test_collectives_of_a_group_that_overlap_do_not_wait_for_each_other() -> None:
    chain = rank_chain(steps(0, 100), arrivals((10, 40), (20, 50)))
    assert chain.before.tolist() == [NONE, NONE]


def test_a_rank_without_collectives_only_works() -> None:
    none = Arrivals(start_ns=NOTHING, ready_ns=NOTHING, end_ns=NOTHING, group=NOTHING)
    assert pieces(rank_chain(steps(5, 100), none)) == [("END", NONE, 95)]
