"""Which steps `stepscope record` records: told from the number of steps and their time."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest

from stepscope.recording import cycles, main_thread
from stepscope.recording.cycles import EARLY, CallCycles, CycleEnd, Cycles
from stepscope.recording.handler import TraceHandler
from stepscope.recording.record_request import RecordedTrace, RecordRequest

REQUEST = RecordRequest(
    log_dir="/logs/run", skip=None, wait=200, warmup=2, active=8, repeat=1, seconds=5.0
)


class Profiled:
    """A profiler of these steps that records nothing."""

    def __init__(
        self, request: RecordRequest, _: TraceHandler, step: int, *, is_of_all_threads: bool = False
    ) -> None:
        del is_of_all_threads
        self.step_number = step
        self.active_steps = step + request.warmup, step + request.warmup + request.active - 1

    @property
    def step_count(self) -> int:
        return max(self.step_number - self.active_steps[0], 0)

    @property
    def is_active(self) -> bool:
        return self.step_number >= self.active_steps[0]

    @property
    def is_over(self) -> bool:
        return self.step_number > self.active_steps[1]

    def step(self) -> None:
        self.step_number += 1

    def stop(self) -> None:
        pass

    def drop(self) -> None:
        pass

    def written(self) -> RecordedTrace:
        return RecordedTrace(
            path="",
            first_step=self.active_steps[0],
            step_count=self.step_count,
            is_whole=self.is_over,
        )


@pytest.fixture(autouse=True)
def _without_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cycles, "Profiled", Profiled)
    monkeypatch.delenv("WORLD_SIZE", raising=False)


@dataclass
class Script:
    """A script whose steps take some time each, and what is recorded of it."""

    monkeypatch: pytest.MonkeyPatch
    request: RecordRequest = REQUEST
    kind: type[Cycles] = Cycles
    epoch_length: int = 0
    evaluations: frozenset[int] = frozenset()
    """Steps that contain one."""
    rank: int | None = None
    now_s: float = 100.0
    files: list[RecordedTrace] = field(default_factory=list)
    all_files: list[tuple[int, int]] = field(default_factory=list)
    """First step and number of steps, also of files that were replaced."""
    measured: dict[int, int] = field(default_factory=dict)
    """Steps without the profiler directly before the cycle whose first recorded step this is."""

    def run(self, *steps_s: float) -> "Script":
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        self.monkeypatch.setattr(cycles, "time", clock)
        if self.rank is not None:
            self.monkeypatch.setenv("WORLD_SIZE", "2")
            self.monkeypatch.setenv("RANK", str(self.rank))
        handler = TraceHandler("/logs/run", is_sampled=False)
        recorded = self.kind(self.request, handler)
        unrecorded = 0
        for step in itertools.count(1):
            if recorded.is_recording:
                self._note(recorded, recorded.step())
                unrecorded = 0
            if recorded.is_complete:
                break
            if recorded.is_due(step, self.epoch_length):
                recorded.start(step, self.epoch_length)
                self.measured[recorded.steps_to_record[0]] = unrecorded
            unrecorded += not recorded.is_recording
            if step > len(steps_s):
                self._note(recorded, recorded.finish(is_saved=True))
                break
            self.now_s += steps_s[step - 1]
            if step in self.evaluations:
                self._note(recorded, recorded.evaluation())
        return self

    def _note(self, recorded: Cycles, ended: CycleEnd | None) -> None:
        if ended is CycleEnd.SAVED:
            assert recorded.written is not None
            self.files.append(recorded.written)
            self.all_files.append((recorded.written.first_step, recorded.written.step_count))
            if recorded.replaced is not None:
                self.files.remove(recorded.replaced)

    @property
    def steps(self) -> tuple[int, int]:
        """First step of the only file, and its number of steps."""
        (file,) = self.files
        return file.first_step, file.step_count


@pytest.mark.parametrize(
    ("count", "step_s", "steps", "measured"),
    [
        (4, 0.01, (2, 3), 1),
        (13, 0.01, (2, 3), 1),
        (15, 0.01, (12, 4), 6),
        (60, 0.01, (32, 8), 13),
        (64, 0.01, (55, 8), 13),
        (39, 0.01, (32, 8), 13),
        (14, 0.1, (9, 5), 4),
        (39, 0.3, (29, 8), 13),
        (12, 3.0, (9, 4), 4),
        (40, 3.0, (23, 8), 7),
        (9, 30.0, (2, 3), 1),
    ],
)
def test_a_script_of_any_length_leaves_one_trace_with_steps_measured_before_it_if_it_can(
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    step_s: float,
    steps: tuple[int, int],
    measured: int,
) -> None:
    script = Script(monkeypatch).run(*[step_s] * count)
    assert (script.steps, script.measured[steps[0]]) == (steps, measured)


def test_a_long_script_is_recorded_at_most_once_more_than_there_are_early_cycles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for step_s in (0.0001, 0.03, 0.2, 1.0, 20.0):
        script = Script(monkeypatch).run(*[step_s] * 1000)
        assert len(script.all_files) <= len(EARLY) + 1
        first, count = script.steps
        assert count == 8
        assert script.measured[first] >= 7


def test_uneven_steps_are_watched_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    def has_long_steps(durations_ns: Sequence[int]) -> bool:
        return isinstance(durations_ns, Sequence)

    even = Script(monkeypatch).run(*[0.2] * 100).steps[0]
    monkeypatch.setattr(cycles, "has_long_steps", has_long_steps)
    assert Script(monkeypatch).run(*[0.2] * 100).steps[0] > 10 / 0.2 > even


def test_ranks_record_the_same_steps_however_long_they_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = (
        Script(monkeypatch, rank=rank).run(*[step_s] * 100).all_files
        for rank, step_s in ((0, 0.001), (1, 20.0))
    )
    assert first == second


@pytest.mark.parametrize("epoch_length", range(22, 60))
def test_a_short_epoch_has_a_whole_trace_before_its_evaluation(
    monkeypatch: pytest.MonkeyPatch, epoch_length: int
) -> None:
    script = Script(monkeypatch, epoch_length=epoch_length)
    first, count = script.run(*[0.01] * epoch_length).steps
    assert (count, script.measured[first] >= 5) == (8, True) or epoch_length in range(38, 41)
    assert count >= 5


def test_an_evaluation_ends_an_early_cycle_or_starts_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch, evaluations=frozenset({3})).run(*[0.01] * 30)
    assert script.all_files[0] == (4, 3)
    script = Script(monkeypatch, evaluations=frozenset({15})).run(*[0.01] * 30)
    assert script.all_files[1] == (12, 3)
    script = Script(monkeypatch, evaluations=frozenset({13})).run(*[0.01] * 30)
    assert script.all_files[1] == (15, 5)


def test_fewer_steps_replace_no_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    script = Script(monkeypatch).run(*[0.01] * 33)
    assert script.all_files == [(2, 3), (12, 5)]


@pytest.mark.parametrize(("skip", "first"), [(0, 3), (7, 10)])
def test_requested_steps_have_no_early_cycles(
    monkeypatch: pytest.MonkeyPatch, skip: int, first: int
) -> None:
    request = RecordRequest(
        log_dir="", skip=skip, wait=5, warmup=2, active=4, repeat=2, seconds=1.0
    )
    script = Script(monkeypatch, request).run(*[0.01] * 100)
    assert script.all_files == [(first, 4), (first + 11, 4)]


def test_repeated_cycles_follow_the_early_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    request = RecordRequest(
        log_dir="", skip=None, wait=20, warmup=2, active=4, repeat=2, seconds=1.0
    )
    script = Script(monkeypatch, request).run(*[0.1] * 100)
    assert [file.step_count for file in script.files] == [4, 4]
    assert script.files[1].first_step - script.files[0].first_step == 26


def test_calls_of_a_model_are_recorded_for_a_second_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch, kind=CallCycles).run(*[0.02] * 500)
    first, count = script.steps
    assert 45 <= count <= 55
    assert first * 0.02 > cycles.MEASURED_CALL_SECONDS
    assert Script(monkeypatch, kind=CallCycles).run(*[0.02] * 3).files == []


def test_steps_that_were_others_are_replaced_by_fewer() -> None:
    recorded = Cycles(REQUEST, TraceHandler("/logs/run", is_sampled=False))
    for step in range(1, 6):
        recorded.step()
        if recorded.is_due(step, 0):
            recorded.start(step)
    reserve = recorded.reserve
    assert reserve is not None
    assert (reserve.first_step, reserve.step_count) == (2, 3)
    assert recorded.steps_changed() is None
    for step in range(6, 9):
        recorded.step()
        if recorded.is_due(step, 0):
            recorded.start(step)
    assert recorded.finish(is_saved=True) is CycleEnd.SAVED
    assert recorded.replaced is reserve
    assert recorded.reserve is not None
    assert 1 <= recorded.reserve.step_count < 3


def test_an_early_cycle_whose_steps_no_longer_end_is_dropped() -> None:
    recorded = Cycles(REQUEST, TraceHandler("/logs/run", is_sampled=False))
    for step in (1, 2):
        if recorded.is_due(step, 0):
            recorded.start(step)
    assert recorded.overdue_in_s() > cycles.OVERDUE_SECONDS / 2
    assert recorded.end_overdue() is CycleEnd.DROPPED
    assert not recorded.is_recording
    assert not recorded.is_due(3, 0)


def test_a_step_is_overdue_by_the_usual_time_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(cycles, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    request = replace(REQUEST, skip=2, warmup=0, active=4)
    recorded = Cycles(request, TraceHandler("/logs/run", is_sampled=False))
    for step, took_s in enumerate((1.0, 3.0, 2.0, 9.0, 0.0), start=1):
        recorded.step()
        if recorded.is_due(step, 0):
            recorded.start(step)
            assert not recorded.is_early
            assert recorded.overdue_in_s() == cycles.OVERDUE_SECONDS + cycles.OVERDUE_TIMES * 2
        now_s[0] += took_s
    longest_s = 9
    assert recorded.overdue_in_s() == cycles.OVERDUE_SECONDS + cycles.OVERDUE_TIMES * longest_s
    now_s[0] += 200
    assert recorded.overdue_in_s() < 0
    assert recorded.end_overdue() is CycleEnd.SAVED, "two steps were complete"
    assert recorded.is_complete


def test_a_first_step_may_compile_its_model() -> None:
    recorded = Cycles(replace(REQUEST, skip=0), TraceHandler("/logs/run", is_sampled=False))
    assert recorded.is_due(1, 0)
    recorded.start(1)
    assert recorded.overdue_in_s() > cycles.UNMEASURED_SECONDS / 2
    recorded.finish(is_saved=False)


def test_a_timed_call_waits_for_the_end_of_a_graphs_capture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    captured = [True, True, False]
    monkeypatch.setattr(main_thread, "is_graph_captured", lambda: captured.pop(0))
    monkeypatch.setattr(main_thread, "LATER_SECONDS", 0.01)
    calls: list[int] = []
    timer = main_thread.MainThreadTimer(lambda: calls.append(len(captured)))
    timer.start(0.01)
    end = time.monotonic() + 30
    while not calls and time.monotonic() < end:
        time.sleep(0.01)
    assert calls == [0], "after two captures that were still open"
