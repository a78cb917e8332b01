"""Where `stepscope record` sees a step end: told from optimizers and batches, without torch."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.recording.step_detection import (
    BATCHES_BEFORE_OPTIMIZER,
    MANY_TIMES,
    MOST_TURNS,
    SOME_BATCHES,
    StepBoundary,
    StepDetector,
)


class Thing:
    """An optimizer or a DataLoader's iterator: only which one it is matters."""


def borders(finder: StepDetector, optimizers: list[Thing]) -> list[StepBoundary]:
    return [finder.optimizer_stepped(each) for each in optimizers]


def test_each_step_of_the_only_optimizer_ends_a_step_whatever_batches_come_between() -> None:
    finder, adam, loader = StepDetector(), Thing(), Thing()
    finder.has_optimizer = True
    accumulated = [
        [finder.batch_requested(loader, has_gradients=True) for _ in range(4)]
        + [finder.optimizer_stepped(adam)]
        for _ in range(5)
    ]
    assert accumulated == [[StepBoundary.NONE] * 4 + [StepBoundary.STEP]] * 5


def test_of_optimizers_that_alternate_the_first_defines_the_step() -> None:
    discriminator, generator = Thing(), Thing()
    found = borders(StepDetector(), [discriminator, generator] * 4)
    assert found == [StepBoundary.STEP, StepBoundary.NONE] * 4


def test_of_optimizers_of_unlike_pace_the_slower_defines_the_step() -> None:
    discriminator, generator = Thing(), Thing()
    turns = [discriminator, discriminator, generator]
    finder = StepDetector()
    borders(finder, turns * 2)
    assert (
        borders(finder, turns * 3) == [StepBoundary.NONE, StepBoundary.NONE, StepBoundary.STEP] * 3
    )


def test_batches_of_critics_before_each_step_of_a_generator_are_no_evaluation() -> None:
    finder, discriminator, generator, loader = StepDetector(), Thing(), Thing(), Thing()
    finder.has_optimizer = True
    found = []
    for number in range(60):
        found.append(finder.batch_requested(loader, has_gradients=True))
        found.append(finder.optimizer_stepped(discriminator))
        if number % 5 == 0:
            found.append(finder.optimizer_stepped(generator))
    assert StepBoundary.EVALUATION not in found[20:]
    assert found[22:].count(StepBoundary.STEP) == 10


def test_more_batches_of_a_step_from_some_time_on_are_evaluations_for_a_while() -> None:
    finder, adam, loader = trained(4)
    found = []
    for _ in range(8):
        found += [finder.batch_requested(loader, has_gradients=True) for _ in range(9)]
        finder.optimizer_stepped(adam)
    assert found.count(StepBoundary.EVALUATION) == 2


def test_an_optimizer_that_comes_too_rarely_defines_no_step() -> None:
    often, rarely = Thing(), Thing()
    turns = [*[often] * (MOST_TURNS + 1), rarely]
    assert (
        borders(StepDetector(), turns * 4)
        == ([StepBoundary.STEP] * (MOST_TURNS + 1) + [StepBoundary.NONE]) * 4
    )


def test_an_optimizer_that_is_not_seen_any_more_hands_over() -> None:
    pretraining, training = Thing(), Thing()
    finder = StepDetector()
    borders(finder, [pretraining] * 3)
    found = borders(finder, [training] * 25)
    assert found == [StepBoundary.NONE] * (MOST_TURNS - 1) + [StepBoundary.STEP] * (26 - MOST_TURNS)


def test_an_optimizer_that_is_gone_hands_over_at_once() -> None:
    finder = StepDetector()
    for _ in range(3):  # one a fold
        assert borders(finder, [Thing()] * 2) == [StepBoundary.STEP] * 2


@given(st.lists(st.integers(0, 3), min_size=60, max_size=120))
def test_one_of_any_optimizers_defines_the_step_at_least_once_in_twenty_turns(
    order: list[int],
) -> None:
    optimizers = [Thing() for _ in range(4)]
    found = borders(StepDetector(), [optimizers[which] for which in order])
    gaps = [
        len(list(run))
        for is_none, run in itertools.groupby(found, lambda one: one is StepBoundary.NONE)
        if is_none
    ]
    assert max(gaps, default=0) < MOST_TURNS


def test_without_an_optimizer_each_batch_that_is_asked_for_ends_a_step() -> None:
    finder, loader = StepDetector(), Thing()
    assert [finder.batch_requested(loader, has_gradients=False) for _ in range(3)] == [
        StepBoundary.STEP
    ] * 3


def test_the_end_of_an_epoch_makes_no_step_of_its_own() -> None:
    finder, found = StepDetector(), []
    for _ in range(2):
        epoch = Thing()
        found += [finder.batch_requested(epoch, has_gradients=False) for _ in range(3)]
        finder.epoch_ended(epoch)  # the third request found no batch
    assert found == [StepBoundary.STEP] * 3 + [StepBoundary.NONE] + [StepBoundary.STEP] * 2


def test_of_two_loaders_read_side_by_side_one_defines_the_step() -> None:
    finder, images, texts = StepDetector(), Thing(), Thing()
    found = [finder.batch_requested(each, has_gradients=False) for each in [images, texts] * 3]
    assert found == [StepBoundary.STEP, StepBoundary.NONE] * 3


def test_batches_wait_for_an_optimizer_that_was_made() -> None:
    finder, loader = StepDetector(), Thing()
    finder.has_optimizer = True
    asked = [
        finder.batch_requested(loader, has_gradients=False)
        for _ in range(BATCHES_BEFORE_OPTIMIZER + 2)
    ]
    assert asked == [StepBoundary.NONE] * BATCHES_BEFORE_OPTIMIZER + [StepBoundary.STEP] * 2


def test_an_optimizer_takes_over_from_batches() -> None:
    finder, loader, adam = StepDetector(), Thing(), Thing()
    finder.batch_requested(loader, has_gradients=False)
    assert borders(finder, [adam] * 2) == [StepBoundary.RESTART, StepBoundary.STEP]
    assert finder.batch_requested(loader, has_gradients=True) is StepBoundary.NONE


@pytest.mark.parametrize(
    ("by_optimizer", "by_batch"), [(True, False), (False, True), (False, False)]
)
def test_only_what_was_asked_for_defines_steps(*, by_optimizer: bool, by_batch: bool) -> None:
    finder = StepDetector(is_by_optimizer=by_optimizer, is_by_batch=by_batch)
    of_batch = finder.batch_requested(Thing(), has_gradients=True)
    of_optimizer = finder.optimizer_stepped(Thing())
    assert (of_optimizer is StepBoundary.STEP) == by_optimizer
    assert (of_batch is StepBoundary.STEP) == by_batch


def trained(steps: int) -> tuple[StepDetector, Thing, Thing]:
    """A finder that has seen a training of one batch a step."""
    finder, adam, loader = StepDetector(), Thing(), Thing()
    for _ in range(steps):
        finder.batch_requested(loader, has_gradients=True)
        finder.optimizer_stepped(adam)
    return finder, adam, loader


def test_batches_without_gradients_are_an_evaluation_told_once() -> None:
    finder, adam, loader = trained(5)
    assert finder.batch_requested(loader, has_gradients=True) is StepBoundary.NONE
    asked = [finder.batch_requested(Thing(), has_gradients=False) for _ in range(3)]
    assert asked == [StepBoundary.EVALUATION, StepBoundary.NONE, StepBoundary.NONE]
    assert finder.optimizer_stepped(adam) is StepBoundary.STEP
    for _ in range(3):
        assert finder.batch_requested(loader, has_gradients=True) is StepBoundary.NONE
        finder.optimizer_stepped(adam)
    assert finder.batch_requested(Thing(), has_gradients=False) is StepBoundary.EVALUATION


def test_many_batches_are_an_evaluation_even_with_gradients() -> None:
    finder, _, loader = trained(5)
    asked = [finder.batch_requested(loader, has_gradients=True) for _ in range(20)]
    assert asked.index(StepBoundary.EVALUATION) == MANY_TIMES + SOME_BATCHES
    assert asked.count(StepBoundary.EVALUATION) == 1


def test_a_model_set_to_evaluate_amid_training_is_an_evaluation() -> None:
    finder, adam, loader = trained(5)
    assert finder.model_set_to_evaluate() is StepBoundary.EVALUATION
    assert finder.batch_requested(loader, has_gradients=False) is StepBoundary.NONE
    assert finder.optimizer_stepped(adam) is StepBoundary.STEP
    assert StepDetector().model_set_to_evaluate() is StepBoundary.NONE


def test_a_part_of_the_model_that_every_step_sets_to_evaluate_is_none() -> None:
    finder, adam, _ = trained(0)
    for _ in range(4):
        finder.optimizer_stepped(adam)
        finder.model_set_to_evaluate()
    finder.optimizer_stepped(adam)
    assert finder.model_set_to_evaluate() is StepBoundary.NONE


def test_where_every_step_reads_without_gradients_none_is_an_evaluation() -> None:
    finder, adam, loader = trained(0)
    for _ in range(4):
        finder.batch_requested(loader, has_gradients=False)
        finder.optimizer_stepped(adam)
    assert finder.batch_requested(loader, has_gradients=False) is StepBoundary.NONE


def test_what_runs_before_the_first_step_is_no_evaluation() -> None:
    finder = StepDetector()
    finder.has_optimizer = True
    asked = {finder.batch_requested(Thing(), has_gradients=False) for _ in range(100)}
    assert asked == {StepBoundary.NONE}
