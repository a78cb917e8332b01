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
    Border,
    StepFinder,
)


class Thing:
    """An optimizer or a DataLoader's iterator: only which one it is matters."""


def borders(finder: StepFinder, optimizers: list[Thing]) -> list[Border]:
    return [finder.optimizer_stepped(each) for each in optimizers]


def test_each_step_of_the_only_optimizer_ends_a_step_whatever_batches_come_between() -> None:
    finder, adam, loader = StepFinder(), Thing(), Thing()
    finder.has_optimizer = True
    accumulated = [
        [finder.batch_requested(loader, has_gradients=True) for _ in range(4)]
        + [finder.optimizer_stepped(adam)]
        for _ in range(5)
    ]
    assert accumulated == [[Border.NONE] * 4 + [Border.STEP]] * 5


def test_of_optimizers_that_alternate_the_first_defines_the_step() -> None:
    discriminator, generator = Thing(), Thing()
    found = borders(StepFinder(), [discriminator, generator] * 4)
    assert found == [Border.STEP, Border.NONE] * 4


def test_of_optimizers_of_unlike_pace_the_slower_defines_the_step() -> None:
    discriminator, generator = Thing(), Thing()
    turns = [discriminator, discriminator, generator]
    finder = StepFinder()
    borders(finder, turns * 2)
    assert borders(finder, turns * 3) == [Border.NONE, Border.NONE, Border.STEP] * 3


def test_an_optimizer_that_comes_too_rarely_defines_no_step() -> None:
    often, rarely = Thing(), Thing()
    turns = [*[often] * (MOST_TURNS + 1), rarely]
    assert (
        borders(StepFinder(), turns * 4) == ([Border.STEP] * (MOST_TURNS + 1) + [Border.NONE]) * 4
    )


def test_an_optimizer_that_is_not_seen_any_more_hands_over() -> None:
    pretraining, training = Thing(), Thing()
    finder = StepFinder()
    borders(finder, [pretraining] * 3)
    found = borders(finder, [training] * 25)
    assert found == [Border.NONE] * (MOST_TURNS - 1) + [Border.STEP] * (26 - MOST_TURNS)


def test_an_optimizer_that_is_gone_hands_over_at_once() -> None:
    finder = StepFinder()
    for _ in range(3):  # one a fold
        assert borders(finder, [Thing()] * 2) == [Border.STEP] * 2


@given(st.lists(st.integers(0, 3), min_size=60, max_size=120))
def test_one_of_any_optimizers_defines_the_step_at_least_once_in_twenty_turns(
    order: list[int],
) -> None:
    optimizers = [Thing() for _ in range(4)]
    found = borders(StepFinder(), [optimizers[which] for which in order])
    gaps = [
        len(list(run))
        for is_none, run in itertools.groupby(found, lambda one: one is Border.NONE)
        if is_none
    ]
    assert max(gaps, default=0) < MOST_TURNS


def test_without_an_optimizer_each_batch_that_is_asked_for_ends_a_step() -> None:
    finder, loader = StepFinder(), Thing()
    assert [finder.batch_requested(loader, has_gradients=False) for _ in range(3)] == [
        Border.STEP
    ] * 3


def test_the_end_of_an_epoch_makes_no_step_of_its_own() -> None:
    finder, found = StepFinder(), []
    for _ in range(2):
        epoch = Thing()
        found += [finder.batch_requested(epoch, has_gradients=False) for _ in range(3)]
        finder.epoch_ended(epoch)  # the third request found no batch
    assert found == [Border.STEP] * 3 + [Border.NONE] + [Border.STEP] * 2


def test_of_two_loaders_read_side_by_side_one_defines_the_step() -> None:
    finder, images, texts = StepFinder(), Thing(), Thing()
    found = [finder.batch_requested(each, has_gradients=False) for each in [images, texts] * 3]
    assert found == [Border.STEP, Border.NONE] * 3


def test_batches_wait_for_an_optimizer_that_was_made() -> None:
    finder, loader = StepFinder(), Thing()
    finder.has_optimizer = True
    asked = [
        finder.batch_requested(loader, has_gradients=False)
        for _ in range(BATCHES_BEFORE_OPTIMIZER + 2)
    ]
    assert asked == [Border.NONE] * BATCHES_BEFORE_OPTIMIZER + [Border.STEP] * 2


def test_an_optimizer_takes_over_from_batches() -> None:
    finder, loader, adam = StepFinder(), Thing(), Thing()
    finder.batch_requested(loader, has_gradients=False)
    assert borders(finder, [adam] * 2) == [Border.ANEW, Border.STEP]
    assert finder.batch_requested(loader, has_gradients=True) is Border.NONE


@pytest.mark.parametrize(
    ("by_optimizer", "by_batch"), [(True, False), (False, True), (False, False)]
)
def test_only_what_was_asked_for_defines_steps(*, by_optimizer: bool, by_batch: bool) -> None:
    finder = StepFinder(is_by_optimizer=by_optimizer, is_by_batch=by_batch)
    of_batch = finder.batch_requested(Thing(), has_gradients=True)
    of_optimizer = finder.optimizer_stepped(Thing())
    assert (of_optimizer is Border.STEP) == by_optimizer
    assert (of_batch is Border.STEP) == by_batch


def trained(steps: int) -> tuple[StepFinder, Thing, Thing]:
    """A finder that has seen a training of one batch a step."""
    finder, adam, loader = StepFinder(), Thing(), Thing()
    for _ in range(steps):
        finder.batch_requested(loader, has_gradients=True)
        finder.optimizer_stepped(adam)
    return finder, adam, loader


def test_batches_without_gradients_are_an_evaluation_told_once() -> None:
    finder, adam, loader = trained(5)
    assert finder.batch_requested(loader, has_gradients=True) is Border.NONE
    asked = [finder.batch_requested(Thing(), has_gradients=False) for _ in range(3)]
    assert asked == [Border.EVALUATION, Border.NONE, Border.NONE]
    assert finder.optimizer_stepped(adam) is Border.STEP
    for _ in range(3):
        assert finder.batch_requested(loader, has_gradients=True) is Border.NONE
        finder.optimizer_stepped(adam)
    assert finder.batch_requested(Thing(), has_gradients=False) is Border.EVALUATION


def test_many_batches_are_an_evaluation_even_with_gradients() -> None:
    finder, _, loader = trained(5)
    asked = [finder.batch_requested(loader, has_gradients=True) for _ in range(20)]
    assert asked.index(Border.EVALUATION) == MANY_TIMES + SOME_BATCHES
    assert asked.count(Border.EVALUATION) == 1


def test_a_model_set_to_evaluate_amid_training_is_an_evaluation() -> None:
    finder, adam, loader = trained(5)
    assert finder.model_set_to_evaluate() is Border.EVALUATION
    assert finder.batch_requested(loader, has_gradients=False) is Border.NONE
    assert finder.optimizer_stepped(adam) is Border.STEP
    assert StepFinder().model_set_to_evaluate() is Border.NONE


def test_a_part_of_the_model_that_every_step_sets_to_evaluate_is_none() -> None:
    finder, adam, _ = trained(0)
    for _ in range(4):
        finder.optimizer_stepped(adam)
        finder.model_set_to_evaluate()
    finder.optimizer_stepped(adam)
    assert finder.model_set_to_evaluate() is Border.NONE


def test_where_every_step_reads_without_gradients_none_is_an_evaluation() -> None:
    finder, adam, loader = trained(0)
    for _ in range(4):
        finder.batch_requested(loader, has_gradients=False)
        finder.optimizer_stepped(adam)
    assert finder.batch_requested(loader, has_gradients=False) is Border.NONE


def test_what_runs_before_the_first_step_is_no_evaluation() -> None:
    finder = StepFinder()
    finder.has_optimizer = True
    asked = {finder.batch_requested(Thing(), has_gradients=False) for _ in range(100)}
    assert asked == {Border.NONE}
