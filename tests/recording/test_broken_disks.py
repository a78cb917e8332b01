"""Nothing that happens to the disk, the exporter or the process costs the training, or half a file.

The means are real: a limit on the size of files, a full and a read-only file system, a folder that
is a file, a process that is killed while it writes.
"""

import logging
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from stepscope.recording import TraceHandler, trace_handler
from stepscope.storage import discover

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

STEP_COUNT = 7
SAVED_TWICE = schedule(wait=0, warmup=1, active=2, repeat=2)


def trained(handler: TraceHandler) -> int:
    """Train with two spans, and return how many steps were made."""
    made_count = 0
    activities = [ProfilerActivity.CPU]
    with profile(activities=activities, schedule=SAVED_TWICE, on_trace_ready=handler) as profiler:
        for _ in range(STEP_COUNT):
            torch.ones(3).sum()
            made_count += 1
            profiler.step()
    return made_count


def said(caplog: pytest.LogCaptureFixture) -> str:
    """The one thing that was said, at the level that reaches stderr without any set-up."""
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    return record.getMessage()


def kind_said(record: logging.LogRecord) -> str:
    """What was said of a span, without the reason."""
    said = record.getMessage().removeprefix("stepscope: a recorded span was ")
    return re.split(r": |\. ", said)[0]


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """Refuse files of more bytes to this process, as a quota does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def file_system(folder: Path, options: str) -> Iterator[Path]:
    """Mount a small file system there; only root may."""
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("file systems may not be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("use_gzip", [False, True])
def test_a_file_that_may_not_grow_is_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, use_gzip: bool
) -> None:
    handler = trace_handler(tmp_path / "run", use_gzip=use_gzip)
    with largest_file(600):
        assert trained(handler) == STEP_COUNT
    assert list((tmp_path / "run").iterdir()) == []
    assert handler.saved == []
    assert said(caplog).startswith(
        f"stepscope: a recorded span was not saved to {tmp_path / 'run'}"
    )
    assert said(caplog).endswith("Training continues; this is logged once.")


def test_a_full_disk_is_told_with_what_is_free_on_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with file_system(tmp_path / "disk", "size=4k") as disk:
        assert trained(trace_handler(disk)) == STEP_COUNT
        assert list(disk.iterdir()) == []
    assert said(caplog) == (
        f"stepscope: a recorded span was not saved to {disk}: torch could not write the whole "
        f"trace to {disk} (0 MiB are free there). Free space there, or pass another folder. "
        "Training continues; this is logged once."
    )


def test_a_disk_that_has_room_again_is_used_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    handler = trace_handler(tmp_path)
    with largest_file(600):
        trained(handler)
    trained(handler)
    assert len(handler.saved) == 2
    assert said(caplog)


def test_a_read_only_disk_is_told_by_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with file_system(tmp_path / "disk", "size=8k,ro") as disk:
        assert trained(trace_handler(disk / "run")) == STEP_COUNT
    assert "Read-only file system" in said(caplog)


def test_a_folder_that_is_a_file_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "run").write_text("a file")
    assert trained(trace_handler(tmp_path / "run")) == STEP_COUNT
    assert f"File exists: {tmp_path / 'run'}" in said(caplog)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_closed_folder_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o500)
    assert trained(trace_handler(tmp_path / "run")) == STEP_COUNT
    assert "Permission denied" in said(caplog)


class Broken(profile):
    """A profiler of which the exporter fails."""

    def export_chrome_trace(self, path: str, *_: object, **__: object) -> None:
        Path(path).write_text('{"traceEvents": [')
        message = "CUPTI has lost its buffers."
        raise RuntimeError(message)


def test_an_exporter_that_raises_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Broken(activities=[ProfilerActivity.CPU], on_trace_ready=trace_handler(tmp_path)):
        torch.ones(3).sum()
    assert list(tmp_path.iterdir()) == []
    assert "RuntimeError: CUPTI has lost its buffers. Check whether" in said(caplog)


def test_settings_that_cannot_be_collected_cost_no_trace(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def collect(_: object) -> dict[str, object]:
        raise MemoryError

    handler = TraceHandler(tmp_path, collect=collect)
    assert trained(handler) == STEP_COUNT
    assert len(list(tmp_path.iterdir())) == len(handler.saved) == 2
    (record,) = caplog.records
    assert kind_said(record) == f"saved without the training's settings as {handler.saved[0]}"


def test_a_full_disk_is_told_where_missing_settings_were_told_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def collect(_: object) -> dict[str, object]:
        raise MemoryError

    handler = TraceHandler(tmp_path, collect=collect)
    trained(handler)
    with largest_file(600):
        trained(handler)
    trained(handler)
    assert len(handler.saved) == 4
    assert [kind_said(record) for record in caplog.records] == [
        f"saved without the training's settings as {handler.saved[0]}",
        f"not saved to {tmp_path}",
    ]


def test_logging_that_fails_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        message = "a filter of the user's"
        raise RuntimeError(message)

    monkeypatch.setattr(logging.getLogger("stepscope.recording"), "filter", fail)
    with largest_file(600):
        assert trained(trace_handler(tmp_path)) == STEP_COUNT


@pytest.mark.slow
def test_without_any_set_up_it_is_said_on_stderr(tmp_path: Path) -> None:
    code = (
        "import stepscope, torch\n"
        "from torch.profiler import ProfilerActivity, profile\n"
        f"handler = stepscope.trace_handler({str(tmp_path / 'file')!r})\n"
        "with profile(activities=[ProfilerActivity.CPU], on_trace_ready=handler):\n"
        "    torch.ones(3).sum()\n"
        "print('trained')\n"
    )
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout == "trained\n"
    assert done.stderr.count("stepscope: a recorded span was not saved") == 1


LIMIT_BYTES = 20_000
WRITES_ON = f"""
import resource, signal, sys, torch, stepscope
from stepscope.recording import writing
from torch.profiler import ProfilerActivity, profile

def limited():
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, ({LIMIT_BYTES}, {LIMIT_BYTES}))

def compress(*paths, compress=writing._compress):
    limited()
    compress(*paths)

if use_gzip := sys.argv[2] == "gzip":
    writing._compress = compress
else:
    limited()
handler = stepscope.trace_handler(sys.argv[1], use_gzip=use_gzip)
with profile(activities=[ProfilerActivity.CPU], on_trace_ready=handler):
    one = torch.ones(1)
    for _ in range(10_000):
        one.add(1)
"""
"""Killed by the system while it writes a file of more bytes: unlike Python, it does not ask."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_a_process_that_is_killed_while_it_writes_leaves_no_trace_that_is_half(
    tmp_path: Path, form: str
) -> None:
    command = [sys.executable, "-c", WRITES_ON, str(tmp_path), form]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == -signal.SIGXFSZ, done.stderr.decode()
    assert discover.in_folder(str(tmp_path)) == []
    left = [path for path in tmp_path.iterdir() if path.stat().st_size == LIMIT_BYTES]
    assert left, "it was killed while it wrote"
    assert all(".partial" in path.name for path in left)
