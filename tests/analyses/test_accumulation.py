"""How gradients are accumulated: forward passes, optimizer steps, and what is reduced between."""

from typing import Any

import tracebuild
from loading import trace_of
from stepscope.analyses.communication.accumulation import Accumulation, accumulation

FORWARD = ["user_annotation", "DistributedDataParallel.forward"]
UPDATE = ["user_annotation", "Optimizer.step#SGD.step"]
REDUCE = ["user_annotation", "gloo:all_reduce"]


def of(*rows: list[Any]) -> Accumulation | None:
    step = ["user_annotation", "ProfilerStep#1", 0, 1000]
    return accumulation(trace_of(document=tracebuild.document(rows=[step, *rows])))


def sent(start_us: int, count: int) -> list[Any]:
    return [*REDUCE, start_us, 10, {"Input type": ["float"], "Input Dims": [[count]]}]


def test_a_pass_that_another_follows_is_early_and_so_is_what_it_reduces() -> None:
    found = of(
        [*FORWARD, 0, 10],
        sent(20, 100),
        [*FORWARD, 40, 10],
        sent(60, 100),
        [*UPDATE, 80, 10],
        [*FORWARD, 100, 10],
        sent(120, 100),
    )
    assert found is not None
    assert (found.wrapper, found.forward_count, found.update_count) == ("DDP", 3, 1)
    assert (found.early_count, found.reduced_count) == (1, 1)
    assert found.early.tolist() == [True, False, False]


def test_a_pass_that_sends_a_tenth_more_or_less_reduces_something_else() -> None:
    def reduced(count: int) -> int:
        found = of(
            [*FORWARD, 0, 10], sent(20, count), [*FORWARD, 40, 10], sent(60, 100), [*UPDATE, 80, 10]
        )
        assert found is not None
        return found.reduced_count

    assert [reduced(count) for count in (89, 91, 109, 111)] == [0, 1, 1, 0]


def test_messages_are_counted_where_their_size_is_not_known() -> None:
    found = of(
        [*FORWARD, 0, 10],
        [*REDUCE, 20, 10],
        [*FORWARD, 40, 10],
        [*REDUCE, 60, 10],
        [*UPDATE, 80, 10],
    )
    assert found is not None
    assert found.reduced_count == 1


def test_without_an_optimizer_step_nothing_can_be_said() -> None:
    assert of([*FORWARD, 0, 10], sent(20, 100)) is None
