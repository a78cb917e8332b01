"""A profiler in somebody else's loop: which steps are recorded; nothing reaches the loop."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from stepscope.base.errors import UsageError
from stepscope.recording import Schedule, TraceHandler, schedule_for
from stepscope.recording.callback_profiler import CallbackProfiler, profiler_options

pytestmark = pytest.mark.recording

CPU = {"activities": [ProfilerActivity.CPU], "acc_events": True}
"""`acc_events`: else torch warns, once in a process, that each span has its own."""


def driven(folder: Path, schedule: Callable[[int], Any]) -> CallbackProfiler:
    handler = TraceHandler(folder, name="loop", collect=lambda _: {})
    return CallbackProfiler(schedule, handler, CPU)


def spans(folder: Path) -> list[list[int]]:
    """The numbers of the steps in each file, by the time it was written."""
    return [_steps(path) for path in sorted(folder.glob("*.pt.trace.json"))]


def _steps(path: Path) -> list[int]:
    names = [event["name"] for event in json.loads(path.read_text())["traceEvents"]]
    return [int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#")]


def train(loop: CallbackProfiler, steps: int, *, evaluate_every: int = 1000) -> None:
    for step in range(1, steps + 1):
        loop.begin_step()
        torch.ones(2) + 1
        if step % evaluate_every == 0:
            loop.interrupted()
            torch.ones(2).cos()  # the evaluation
            loop.interrupted()  # as transformers says with each of its batches


def test_the_steps_that_the_schedule_names_are_recorded(tmp_path: Path) -> None:
    loop = driven(tmp_path, schedule(skip_first=1, wait=1, warmup=1, active=2, repeat=2))
    train(loop, 12)
    loop.ended()
    assert spans(tmp_path) == [[3, 4], [7, 8]]


def test_an_evaluation_splits_a_span_and_is_in_none(tmp_path: Path) -> None:
    loop = driven(tmp_path, schedule(wait=1, warmup=1, active=5, repeat=1))
    train(loop, 12, evaluate_every=4)
    loop.ended()
    assert spans(tmp_path) == [[2, 3], [5, 6, 7]], "step 4 warmed up again"
    assert not any("aten::cos" in path.read_text() for path in tmp_path.iterdir())


@pytest.mark.parametrize("every", [1, 2])
def test_evaluations_behind_every_step_or_two_do_not_starve_it(tmp_path: Path, every: int) -> None:
    loop = driven(tmp_path, schedule(wait=1, warmup=1, active=4, repeat=1))
    train(loop, 8, evaluate_every=every)
    loop.ended()
    assert spans(tmp_path) == [[3], [5], [7]]


def test_an_evaluation_within_the_warm_up_has_it_done_again(tmp_path: Path) -> None:
    loop = driven(tmp_path, schedule(wait=3, warmup=1, active=2, repeat=1))
    train(loop, 8, evaluate_every=4)
    loop.ended()
    assert spans(tmp_path) == [[5, 6]]


def test_without_warm_up_no_further_span_gets_any(tmp_path: Path) -> None:
    chosen = Schedule(skip_first=1, wait=1, warmup=0, active=1, repeat=3)
    loop = driven(tmp_path, chosen)
    train(loop, 8)
    loop.ended()
    assert spans(tmp_path) == [[1], [3], [5]]


def test_a_training_that_ends_in_the_midst_of_a_span_saves_what_there_is(tmp_path: Path) -> None:
    loop = driven(tmp_path, schedule(wait=1, warmup=1, active=50, repeat=1))
    train(loop, 5)
    loop.ended()
    assert spans(tmp_path) == [[2, 3, 4]]
    assert loop.is_over


def test_a_training_that_ends_before_it_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = driven(tmp_path, schedule(wait=5, warmup=1, active=5, repeat=1))
    train(loop, 6)
    loop.ended()
    assert spans(tmp_path) == []
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "recorded nothing: the training ended after 6 steps" in caplog.text


def test_one_that_was_broken_off_is_saved_and_says_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    loop = driven(tmp_path, schedule(wait=1, warmup=1, active=5, repeat=1))
    train(loop, 4)
    loop.aborted()
    loop.aborted()
    assert spans(tmp_path) == [[2, 3]]
    assert not caplog.records


def test_behind_its_last_span_nothing_is_done_any_more(tmp_path: Path) -> None:
    loop = driven(tmp_path, schedule_for(12, active=3, repeat=1))
    train(loop, 12)
    assert loop.is_over
    assert spans(tmp_path) == [[3, 4, 5]]


def test_an_error_of_the_profiler_is_said_once_and_ends_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = driven(tmp_path, schedule(wait=1, warmup=1, active=5, repeat=1))
    train(loop, 3)

    def fails(_: object) -> None:
        msg = "no more events"
        raise RuntimeError(msg)

    monkeypatch.setattr(profile, "step", fails)
    train(loop, 3)
    loop.ended()
    assert [record.getMessage() for record in caplog.records] == [
        "stepscope stopped recording: RuntimeError: no more events. Training continues; "
        "this is logged once."
    ]
    assert spans(tmp_path) == []
    monkeypatch.undo()
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as another:  # ours has ended
        torch.ones(2)
    assert any(event.name == "aten::ones" for event in another.events())


def test_what_the_user_does_with_warnings_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        msg = "a filter of the user's"
        raise RuntimeError(msg)

    monkeypatch.setattr(logging.getLogger("stepscope.recording"), "filter", fails)
    loop = driven(tmp_path, schedule(wait=5, warmup=1, active=5, repeat=1))
    loop.ended()  # too early, of which it warns
    assert loop.is_over


@pytest.mark.parametrize("skipped", [0, 2])
def test_where_another_profiler_runs_nothing_is_recorded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, skipped: int
) -> None:
    loop = driven(tmp_path, schedule(skip_first=skipped, wait=0, warmup=1, active=2, repeat=1))
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as other:
        train(loop, 6)
        loop.ended()
    assert "another torch profiler is running" in caplog.text
    assert len(caplog.records) == 1
    assert spans(tmp_path) == []
    added = [event for event in other.events() if event.name == "aten::add"]
    assert len(added) == 6, "the other recorded all"


def test_what_torchs_profiler_takes_is_passed_on_and_shapes_are_recorded() -> None:
    assert profiler_options({"with_stack": True}) == {"record_shapes": True, "with_stack": True}
    assert profiler_options({"record_shapes": False}) == {"record_shapes": False}


@pytest.mark.parametrize("name", ["stacks", "schedule", "on_trace_ready"])
def test_another_argument_is_refused_before_the_training(name: str) -> None:
    with pytest.raises(UsageError, match=f"does not accept {name} here; it accepts .*with_stack"):
        profiler_options({name: None})
