"""Where `stepscope record` sees a step of an inference begin: told from calls, without torch."""

import pytest

from stepscope.recording.inference_steps import (
    CALLS_OF_OTHER_THREAD,
    LEAST_CALLS,
    InferenceSteps,
)
from stepscope.recording.step_detection import StepBoundary


class Module:
    """A module: what matters is which one it is, and whether it has parameters."""

    def __init__(self, parameters: int = 1) -> None:
        self._parameters = [object()] * parameters

    def parameters(self) -> list[object]:
        return self._parameters


class Script:
    """Calls of models, of a thread."""

    def __init__(self) -> None:
        self.steps = InferenceSteps()
        self.changes = 0
        """Calls that showed that the steps before were others."""

    def call(
        self, model: Module, thread: str = "main", *, pause: bool = False, recording: bool = False
    ) -> StepBoundary:
        boundary = self.steps.called(model, thread, is_after_pause=pause, is_recording=recording)
        self.changes += self.steps.are_others
        return boundary

    def calls(self, *models: Module, count: int = 1, thread: str = "main") -> list[StepBoundary]:
        return [self.call(model, thread) for _ in range(count) for model in models]


NONE, STEP = StepBoundary.NONE, StepBoundary.STEP


def test_each_call_of_the_only_model_is_a_step_after_the_first_ones() -> None:
    script = Script()
    assert script.calls(Module(), count=LEAST_CALLS + 4) == [NONE] * LEAST_CALLS + [STEP] * 4
    assert script.changes == 0


@pytest.mark.parametrize("each", [1, 8, 64])
def test_transforms_and_losses_define_no_step_beside_a_model(each: int) -> None:
    script, resize, model, loss = Script(), Module(0), Module(), Module(0)
    turn = [*[resize] * each, model, loss]
    script.calls(*turn, count=LEAST_CALLS)
    found = script.calls(*turn, count=3)
    assert found == [*[NONE] * each, STEP, NONE] * 3
    assert script.changes == (each > LEAST_CALLS), "only its own calls were steps at first"


def test_a_model_without_parameters_defines_the_step_where_no_other_does() -> None:
    script, packed = Script(), Module(0)
    script.calls(packed, count=LEAST_CALLS)
    assert script.calls(packed, count=3) == [STEP] * 3


def test_of_a_draft_and_a_target_model_the_slower_defines_the_step() -> None:
    script, draft, target = Script(), Module(), Module()
    turn = [*[draft] * 4, target]
    script.calls(*turn, count=LEAST_CALLS + 2)
    assert script.changes == 1
    assert script.calls(*turn, count=3) == [*[NONE] * 4, STEP] * 3
    assert script.changes == 1


def test_a_pause_of_a_server_interrupts_its_steps() -> None:
    script, model = Script(), Module()
    script.calls(model, count=LEAST_CALLS + 4)
    assert script.call(model, pause=True) is StepBoundary.EVALUATION
    assert script.call(model) is STEP


def test_calls_of_a_server_that_mostly_waits_are_no_steps() -> None:
    script, model = Script(), Module()
    found = {script.call(model, pause=not number % 2) for number in range(5 * LEAST_CALLS)}
    assert found == {NONE}
    assert not script.steps.is_begun


def test_a_thread_takes_over_from_one_that_only_warmed_up() -> None:
    script, model = Script(), Module()
    script.calls(model, count=3)
    found = script.calls(model, count=CALLS_OF_OTHER_THREAD + LEAST_CALLS + 2, thread="worker")
    assert found[-3:] == [STEP] * 3
    assert script.call(model) is NONE


def test_a_server_takes_over_from_calls_before_it_served_once_they_are_not_recorded() -> None:
    script, model = Script(), Module()
    script.calls(model, count=LEAST_CALLS + 2)
    served = [
        script.call(model, "worker", recording=True) for _ in range(2 * CALLS_OF_OTHER_THREAD)
    ]
    assert {*served} == {NONE}
    assert script.steps.has_moved
    assert script.call(model, "worker") is NONE
    assert (script.changes, script.steps.is_begun, script.steps.has_moved) == (1, False, False)
    assert script.calls(model, count=LEAST_CALLS + 2, thread="worker")[-3:] == [STEP] * 3


def test_calls_of_a_pool_of_threads_and_of_a_thread_per_request_are_no_steps() -> None:
    script, model = Script(), Module()
    assert {script.call(model, f"thread {number % 4}") for number in range(400)} == {NONE}
    assert {script.call(model, f"thread {number}") for number in range(400)} == {NONE}
