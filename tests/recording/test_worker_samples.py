"""Samples of DataLoader workers: of forked ones, also killed ones, and never at their cost."""

import gzip
import json
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils import worker

import stepscope
from stepscope.recording import worker_samples
from stepscope.recording.worker_samples import WorkerSamples, summary

pytestmark = [
    pytest.mark.recording,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs timers of one thread"),
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning"),
]
MS = 1_000_000
ALWAYS = [(0, 10**19)]
WORKER_LOOP = worker._worker_loop  # noqa: SLF001


class SlowSamples(Dataset[torch.Tensor]):
    """Samples of which each takes 5 ms."""

    def __len__(self) -> int:
        return 160

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.005)
        return torch.tensor(index)


@pytest.fixture(autouse=True)
def _temporary_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let no other recorder of this process share the wrapper, nor the folder.

    The folder's path is short: workers that send tensors make sockets there, whose paths have 107
    bytes at most, and a tensor that cannot be sent is lost.
    """
    monkeypatch.setattr(worker_samples._Process, "wrapper", None)  # noqa: SLF001
    monkeypatch.setattr(worker, "_worker_loop", WORKER_LOOP)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield
        assert worker._worker_loop is WORKER_LOOP  # noqa: SLF001
        assert not list(Path(folder).glob("stepscope*"))


def loader_of(dataset: Dataset[torch.Tensor], **options: Any) -> DataLoader[torch.Tensor]:
    settings = {"num_workers": 2, "batch_size": 4, "multiprocessing_context": "fork", **options}
    return DataLoader(dataset, **settings)


def fraction_of_line(figures: dict[str, Any]) -> float:
    """Fraction of the working time on the slow line."""
    line = SlowSamples.__getitem__.__code__.co_firstlineno + 1
    name = f"{Path(__file__).name}({line}): __getitem__"
    at = [place for place, frame in enumerate(figures["frames"]) if frame.endswith(name)]
    inside_ns = sum(int(stack[1]) for stack in figures["stacks"] if stack[-1] in at)
    return inside_ns / int(figures["time_ns"])


@pytest.mark.parametrize("is_persistent", [False, True])
def test_a_trace_names_the_line_at_which_forked_workers_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_persistent: bool
) -> None:
    monkeypatch.setattr(worker_samples, "WRITE_EVERY_NS", 50 * MS)
    monkeypatch.setattr(worker_samples, "WRITES_PER_TIME", 1)
    loader = loader_of(SlowSamples(), persistent_workers=is_persistent)
    handler = stepscope.trace_handler(tmp_path / "log", use_gzip=True)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=60, warmup=1, active=2, repeat=1),
        on_trace_ready=handler,
    ) as profiler:
        for _ in range(2):
            for _ in loader:
                time.sleep(0.02)
                profiler.step()
    handler.ended()
    (file,) = (tmp_path / "log").iterdir()
    recorder = json.loads(gzip.decompress(file.read_bytes()))["stepscope_recorder"]
    figures = recorder["worker_samples"]
    assert fraction_of_line(figures) > 0.7
    assert figures["count"] == sum(stack[0] for stack in figures["stacks"])
    assert figures["waiting_count"] > 3, "a batch takes two workers half of a step"
    assert figures["interval_ns"] == 10 * MS
    assert figures["process_count"] >= 2
    assert not any("test_a_trace" in frame for frame in figures["frames"]), "calls of the parent"
    assert "host_samples" in recorder


def test_workers_that_wait_are_counted_apart() -> None:
    samples = WorkerSamples(MS)
    begin_ns = time.perf_counter_ns()
    for _ in loader_of(SlowSamples(), num_workers=1):
        time.sleep(0.06)
    figures = samples.summary([(begin_ns, time.perf_counter_ns())])
    samples.stop()
    assert figures["process_count"] == 1
    whole_ns = figures["time_ns"] + figures["waiting_ns"]
    assert 0.4 < figures["waiting_ns"] / whole_ns < 0.8, "of 60 ms, a batch takes 20 ms"
    assert samples.summary(ALWAYS) == {}


def test_samples_of_a_killed_worker_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_samples, "WRITE_EVERY_NS", 20 * MS)
    monkeypatch.setattr(worker_samples, "WRITES_PER_TIME", 1)
    samples = WorkerSamples(MS)
    batches: Any = iter(loader_of(SlowSamples(), num_workers=1, batch_size=1))
    for _ in range(120):
        next(batches)
    before = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's handler raises an exception
    batches._workers[0].kill()  # noqa: SLF001
    batches._workers[0].join()  # noqa: SLF001
    figures = samples.summary(ALWAYS)
    del batches
    signal.signal(signal.SIGCHLD, before)
    samples.stop()
    assert figures["count"] > 50
    assert fraction_of_line(figures) > 0.7


def test_only_samples_of_the_measured_steps_and_of_workers_at_work_in_them_count() -> None:
    frames = [["torch/utils/data/x.py(1): fetch", True], ["data.py(2): read", False]]
    at_work = {"interval_ns": 10, "stacks": [frames, frames[:1]]}
    contents = [
        {**at_work, "samples": [[100, 10, 0], [200, 11, 0], [250, 12, -1], [300, 13, 1]]},
        {**at_work, "interval_ns": 20, "samples": [[205, 14, 0], [255, 15, 0]]},
        {**at_work, "interval_ns": 40, "samples": [[205, 16, -1]]},
    ]
    assert summary(iter(contents), [(150, 220), (250, 250), (290, 400)]) == {
        "process_count": 2,
        "count": 3,
        "time_ns": 11 + 13 + 14,
        "waiting_count": 1,
        "waiting_ns": 12,
        "interval_ns": 20,
        "frames": [name for name, _ in frames],
        "library_frames": [0],
        "stacks": [[2, 25, 0, 1], [1, 13, 0]],
    }
    assert summary(iter(contents), [(0, 10)]) == {}


def test_torchs_function_comes_back_with_the_last_recorder() -> None:
    first, second = WorkerSamples(), WorkerSamples()
    assert worker._worker_loop is not WORKER_LOOP  # noqa: SLF001
    first.stop()
    first.stop()
    assert worker._worker_loop is not WORKER_LOOP  # noqa: SLF001
    third = WorkerSamples()
    del second
    assert worker._worker_loop is not WORKER_LOOP  # noqa: SLF001
    third.stop()
    assert worker._worker_loop is WORKER_LOOP  # noqa: SLF001


def test_a_wrapper_of_another_program_stays_and_ours_samples_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = WorkerSamples(MS)
    ours = worker._worker_loop  # noqa: SLF001

    def others(*arguments: Any) -> None:
        ours(*arguments)

    monkeypatch.setattr(worker, "_worker_loop", others)
    samples.stop()
    assert worker._worker_loop is others  # noqa: SLF001
    assert len(list(loader_of(SlowSamples(), num_workers=1))) == 40
    monkeypatch.setattr(worker, "_worker_loop", WORKER_LOOP)


def test_workers_of_another_start_method_run_torchs_function() -> None:
    samples = WorkerSamples()
    pickled = pickle.dumps(worker._worker_loop)  # noqa: SLF001
    assert b"torch.utils.data._utils.worker" in pickled
    assert b"stepscope" not in pickled
    samples.stop()


def test_without_sampling_nothing_is_wrapped() -> None:
    samples = WorkerSamples(is_possible=False)
    assert worker._worker_loop is WORKER_LOOP  # noqa: SLF001
    assert samples.summary(ALWAYS) == {}
    samples.stop()


def test_a_worker_continues_where_its_samples_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_samples, "WRITE_EVERY_NS", 0)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
        samples = WorkerSamples(MS)
    assert len(list(loader_of(SlowSamples()))) == 40
    assert samples.summary(ALWAYS) == {}
    samples.stop()


def test_a_worker_whose_folder_goes_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_samples, "WRITE_EVERY_NS", 0)
    samples = WorkerSamples(MS)
    batches = iter(loader_of(SlowSamples()))
    next(batches)
    samples.stop()
    assert len(list(batches)) == 39


def test_damaged_files_count_as_absent_and_files_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_samples, "MOST_FILES", 2)
    samples = WorkerSamples(MS)
    for _ in range(5):
        list(loader_of(SlowSamples(), num_workers=1, batch_size=160))
    [folder] = Path(tempfile.gettempdir()).glob("stepscope*")
    files = sorted(folder.iterdir())
    assert len(files) == 3, "two, and that of the last worker"
    files[0].write_text('{"samples": [')
    assert samples.summary(ALWAYS)["process_count"] == 2
    files[1].write_text("[]")
    assert samples.summary(ALWAYS) == {}
    samples.stop()
