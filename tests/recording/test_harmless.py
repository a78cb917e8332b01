"""What `stepscope record` puts around torch, and into a process, changes nothing of a script."""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from stepscope.recording import live_objects, script_hooks, script_recorder, whole_run
from stepscope.recording.handler import TraceHandler
from stepscope.recording.live_objects import Given
from stepscope.recording.main_thread import MainThreadTimer
from stepscope.recording.profiler_cycle import Profiled, is_profiler_running
from stepscope.recording.record_request import ACCOUNTS, Account, RecordRequest
from stepscope.recording.script_recorder import ScriptRecorder
from stepscope.recording.termination import Termination
from stepscope.recording.whole_run import WholeRun
from waiting import until

pytestmark = pytest.mark.recording


def order(folder: Path) -> RecordRequest:
    return RecordRequest(
        log_dir=str(folder), skip=None, wait=200, warmup=1, active=2, repeat=1, seconds=5.0
    )


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptRecorder]:
    """A recorder, and torch as it was behind the test."""
    profilers = torch.autograd.profiler
    for kind in (profilers.profile, profilers.emit_nvtx, profilers.emit_itt):
        monkeypatch.setattr(kind, "__init__", kind.__init__)
    kineto = torch.profiler.profiler._KinetoProfile  # noqa: SLF001
    monkeypatch.setattr(kineto, "__init__", kineto.__init__)
    monkeypatch.setattr(torch.nn.Module, "eval", torch.nn.Module.eval)
    made = ScriptRecorder(order(tmp_path))
    yield made
    made.is_watching = False


class SetsAPartToEvaluate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.part.eval()
        dropped: torch.Tensor = self.part(x)
        return dropped


def test_a_model_that_sets_a_part_to_evaluate_is_compiled_as_a_whole(
    recorder: ScriptRecorder,
) -> None:
    script_hooks.watch_evaluation(recorder)
    compiled = torch.compile(SetsAPartToEvaluate(), backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize("kind", ["emit_nvtx", "emit_itt"])
def test_marks_for_another_profiler_go_before_ours(recorder: ScriptRecorder, kind: str) -> None:
    script_hooks.watch_profilers(recorder)
    getattr(torch.autograd.profiler, kind)(enabled=False)
    assert recorder.is_watching
    getattr(torch.autograd.profiler, kind)()
    assert not recorder.is_watching


def test_a_device_that_the_script_does_not_use_is_not_initialised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[None] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(None))
    profiled = Profiled(order(tmp_path), TraceHandler(tmp_path), None)
    used = profiled._profiler.profiler  # noqa: SLF001
    assert used is not None
    used.use_device = "cuda"  # as where torch has CUDA
    profiled.stop()
    assert waited == []
    assert profiled.written()


def test_what_another_thread_ends_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped_in: list[threading.Thread] = []
    drop = Profiled.drop

    def noted(self: Profiled) -> None:
        drop(self)
        dropped_in.append(threading.current_thread())

    monkeypatch.setattr(Profiled, "drop", noted)
    whole = WholeRun(order(tmp_path), TraceHandler(tmp_path))
    whole.begin()
    assert whole.is_recording
    other = threading.Thread(target=whole.forget)
    other.start()
    other.join()
    until(lambda: bool(dropped_in))
    assert dropped_in == [threading.main_thread()]
    assert not whole.is_recording


def test_what_another_thread_begins_is_of_the_main_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[threading.Thread] = []

    class Noted(Profiled):
        def __init__(self, *given: Any) -> None:
            began.append(threading.current_thread())
            super().__init__(*given)

    monkeypatch.setattr(whole_run, "Profiled", Noted)
    whole = WholeRun(order(tmp_path), TraceHandler(tmp_path))
    other = threading.Thread(target=whole.begin)
    other.start()
    other.join()
    until(lambda: whole.is_recording)
    assert began == [threading.main_thread()]
    whole.forget()
    assert not is_profiler_running()


def test_a_torch_without_what_is_hooked_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ScriptRecorder] = []

    def fail(recorder: ScriptRecorder) -> None:
        made.append(recorder)
        message = "_BaseDataLoaderIter"
        raise AttributeError(message)

    monkeypatch.setattr(script_hooks, "watch", fail)
    with pytest.raises(AttributeError):
        script_hooks.start(order(tmp_path).as_text())
    assert [each.is_watching for each in made] == [False]


@pytest.mark.parametrize(
    ("parents", "is_parent"),
    [
        ({}, False),
        ({70_000: 1}, False),  # a script that the same shell ran before
        ({70_000: os.getpid()}, True),
        ({70_000: 70_001, 70_001: os.getpid()}, True),
        ({70_000: 70_001, 70_001: 70_000}, False),  # numbers were given twice
    ],
)
def test_only_a_parent_of_ranks_leaves_the_recording_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parents: dict[int, int], *, is_parent: bool
) -> None:
    monkeypatch.setenv(ACCOUNTS, str(tmp_path))
    for process, parent in parents.items():
        steps = 5 if process == 70_000 else 0
        Account(process=process, parent=parent, step_count=steps).save(str(tmp_path))
    Account(process=os.getpid(), parent=os.getppid(), step_count=5).save(str(tmp_path))
    assert script_recorder._is_parent_of_ranks() is is_parent  # noqa: SLF001


def test_a_call_in_the_main_thread_waits_for_the_end_of_an_import_of_torch() -> None:
    called: list[bool] = []
    is_imported = threading.Event()
    timer = MainThreadTimer(lambda: called.append(is_imported.is_set()))
    module = compile("timer.start(0.0)\nwait(0.4)\nis_imported.set()", "module.py", "exec")
    facts = {"timer": timer, "is_imported": is_imported, "wait": busy}
    exec(module, {"__name__": "torch.of_a_test", **facts})  # noqa: S102 (as an import does)
    until(lambda: bool(called))
    assert called == [True]


def busy(seconds: float) -> None:
    """Execute instructions for a time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_a_timer_that_is_cancelled_makes_no_call() -> None:
    called: list[int] = []
    timer = MainThreadTimer(lambda: called.append(1))
    timer.start(0.05)
    timer.cancel()
    busy(0.2)
    assert called == []
    timer.start(0.0)
    until(lambda: called == [1])


def test_a_forked_child_keeps_what_the_script_does_with_sigterm() -> None:
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    termination = Termination(lambda: None)
    try:
        termination.arm()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if not (child := os.fork()):
            termination.forget()
            os._exit(int(signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        termination.disarm()
        signal.signal(signal.SIGTERM, before)


class Proxy:
    """As a web framework's: whatever it is asked for, it fails outside of a request."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_a_proxy_among_frozen_objects_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy()
    model = SetsAPartToEvaluate()
    monkeypatch.setattr(gc, "get_objects", list)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: 1)
    assert model in live_objects.live_objects(Given()).modules
    del proxy
