"""Samples of the DataLoader workers that a recorded process forks.

A worker is a process of its own, which neither torch's profiler nor the sampler of the main thread
sees. While a process records, `_worker_loop`, the function that DataLoader runs in its workers, is
wrapped: a forked worker samples its main thread from begin to end (`host_sampler.py`), and writes
its samples to a file about once a second, since many workers are killed. Their time is that of the
system's monotonic clock, which all processes share, so that the recorder selects those of measured
steps when it writes a trace.

A worker waits while it is in `get` of its queue of indices; at all other times it works.

The wrapper is pickled by name, so that a worker of another start method (`spawn`, `forkserver`)
runs torch's function and is not sampled. The recorders of a process share one wrapper and one
folder, which the first worker creates and the last recorder removes: a worker that finds it gone
takes no more samples.
"""

import inspect
import json
import os
import secrets
import shutil
import sys
import tempfile
import time
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from multiprocessing.queues import Queue
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from stepscope.recording.host_sampler import (
    INTERVAL_NS,
    HostSampler,
    frames_of,
    in_progress,
    stack_table,
)

KEY = "worker_samples"
MODULE = "torch.utils.data._utils.worker"
LOOP = "_worker_loop"
WRITE_EVERY_NS = 1_000_000_000
WRITES_PER_TIME = 100
"""Pause after a write, at least, in times of the processor time that it took."""
MOST_FILES = 256
"""Files of more workers are deleted, the oldest first."""
SUFFIX = ".json"
WAITING = -1
"""Position of the stack of a sample that waits for an index."""

Spans = Sequence[tuple[int, int]]
"""Begin and end in ns of the monotonic clock, in order."""


class WorkerSamples:
    """Samples the workers that this process forks, until `stop` or its own end; never raises."""

    def __init__(self, interval_ns: int = INTERVAL_NS, *, is_possible: bool = True) -> None:
        self._wrapper = _wrapper(interval_ns) if is_possible else None
        release = self._wrapper.release if self._wrapper else _nothing
        self._finalizer = weakref.finalize(self, release)

    def summary(self, spans_ns: Spans) -> dict[str, Any]:
        """Return the samples in these times as written into a trace; empty without any.

        `count` and `time_ns` are those of working; workers that did not work then are left out.
        """
        if self._wrapper is None or not self._finalizer.alive:
            return {}
        try:
            return summary(_contents(self._wrapper.folder), spans_ns)
        except Exception:  # a trace matters more than its samples
            return {}

    def stop(self) -> None:
        """Sample no further workers."""
        self._finalizer()


@dataclass(eq=False)
class _Wrapper:
    """The wrapper of torch's function in one process."""

    original: Callable[..., None]
    folder: Path
    interval_ns: int
    process: int
    """Process that records: its children are sampled."""
    user_count: int = 0
    loop: Callable[..., None] | None = None

    def install(self) -> None:
        """Replace torch's function."""

        @wraps(self.original)  # with its name, by which it is pickled
        def sampled(*arguments: Any, **named: Any) -> None:
            sampler = self._sampler()
            try:
                self.original(*arguments, **named)
            finally:
                if sampler is not None:
                    sampler.end()

        self.loop = sampled
        setattr(sys.modules[MODULE], LOOP, sampled)

    def release(self) -> None:
        """Put torch's function back after the last recorder, and remove the folder."""
        if os.getpid() != self.process:  # a fork has copied this object
            return
        self.user_count -= 1
        if self.user_count == 0:
            module = sys.modules.get(MODULE)
            if getattr(module, LOOP, None) is self.loop:
                setattr(module, LOOP, self.original)
            with suppress(OSError):  # no worker has created it
                removed = self.folder.rename(self.folder.with_suffix(".removed"))
                shutil.rmtree(removed, ignore_errors=True)  # no worker writes there meanwhile

    def _sampler(self) -> "_WorkerSampler | None":
        """Return the running sampler of this worker; None: it is not to be sampled."""
        if self.user_count == 0 or os.getppid() != self.process:
            return None
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            _delete_old_files(self.folder)
            return _WorkerSampler(self)
        except Exception:  # no space, or no such folder; the worker continues
            return None


class _Process:
    wrapper: _Wrapper | None = None


def _wrapper(interval_ns: int) -> _Wrapper | None:
    """Return the wrapper that the recorders of this process share, for one more of them."""
    try:
        wrapper = _Process.wrapper
        if wrapper is None or wrapper.process != os.getpid() or wrapper.user_count == 0:
            original = getattr(sys.modules[MODULE], LOOP)
            if wrapper is not None and original is wrapper.loop:  # that of the parent process
                original = wrapper.original
            folder = Path(tempfile.gettempdir(), f"stepscope-{secrets.token_hex(16)}")
            wrapper = _Wrapper(original, folder, interval_ns, os.getpid())
            wrapper.install()
            _Process.wrapper = wrapper
        wrapper.user_count += 1
    except Exception:  # another torch, or no folder for temporary files
        return None
    return wrapper


def _nothing() -> None:
    """Release nothing."""


class _WorkerSampler(HostSampler):
    """Samples this process, a worker, and writes the samples to a file.

    The step of a sample is its time.
    """

    def __init__(self, wrapper: _Wrapper) -> None:
        super().__init__(wrapper.interval_ns, outermost=_code(wrapper.original))
        self._wrapper = wrapper
        now_ns = time.perf_counter_ns()
        self._path = wrapper.folder / f"{now_ns}_{os.getpid()}{SUFFIX}"
        self._write_at_ns = now_ns + WRITE_EVERY_NS
        self.step_began(now_ns)

    def end(self) -> None:
        """Take no more samples, and write all; where the training is dead, remove its folder."""
        self.stop()
        with suppress(Exception):
            if os.getppid() == self._wrapper.process:
                self._write()
            else:
                shutil.rmtree(self._wrapper.folder, ignore_errors=True)

    def _note(self, frame: FrameType | None, now_ns: int) -> None:
        self._step = self._began_ns = now_ns
        super()._note(frame, now_ns)
        if now_ns >= self._write_at_ns:
            begin_ns = time.thread_time_ns()
            try:
                self._write()
            except Exception:  # the folder is gone, or full
                self.stop()
            pause_ns = WRITES_PER_TIME * (time.thread_time_ns() - begin_ns)
            self._write_at_ns = now_ns + max(WRITE_EVERY_NS, pause_ns)

    def _write(self) -> None:
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps(self._content()), encoding="utf-8")
        part.replace(self._path)

    def _content(self) -> dict[str, Any]:
        """Return the samples: their time, the time for which they count, and their stack."""
        positions: dict[tuple[CodeType | int, ...], int] = {}
        samples = []
        for at_ns, time_ns, _, is_late, stack in self._samples:
            is_waiting = bool(stack) and stack[-2] is Queue.get.__code__
            calls = in_progress(stack) if is_late else stack
            position = WAITING if is_waiting else positions.setdefault(calls, len(positions))
            samples.append((at_ns, time_ns, position))
        stacks = [frames_of(stack) for stack in positions]
        return {"interval_ns": self._interval_ns, "samples": samples, "stacks": stacks}


def _code(loop: Callable[..., None]) -> CodeType | None:
    return getattr(inspect.unwrap(loop), "__code__", None)


def _delete_old_files(folder: Path) -> None:
    with suppress(OSError):  # another worker has deleted one
        files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-MOST_FILES]:
            path.unlink()


def _contents(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the contents of the workers' files; a damaged one is left out."""
    for path in folder.glob(f"*{SUFFIX}"):
        with suppress(OSError, ValueError):
            yield json.loads(path.read_text(encoding="utf-8"))


def summary(contents: Iterator[dict[str, Any]], spans_ns: Spans) -> dict[str, Any]:
    """Return the samples of workers in some times as written into a trace."""
    begins_ns, rows = [begin for begin, _ in spans_ns], []
    process_count = interval_ns = waiting_count = waiting_ns = 0
    for content in contents:
        inside = [
            (time_ns, position)
            for at_ns, time_ns, position in content["samples"]
            if (span := bisect_right(begins_ns, at_ns)) and at_ns <= spans_ns[span - 1][1]
        ]
        working = [(ns, content["stacks"][at]) for ns, at in inside if at != WAITING]
        if not working:
            continue
        rows += [(False, frames, 1, time_ns) for time_ns, frames in working]
        waits_ns = [time_ns for time_ns, position in inside if position == WAITING]
        process_count += 1
        interval_ns = max(interval_ns, content["interval_ns"])
        waiting_count += len(waits_ns)
        waiting_ns += sum(waits_ns)
    if not rows:
        return {}
    table = stack_table(rows)
    del table["without_grad"]
    return {
        "process_count": process_count,
        "count": len(rows),
        "time_ns": sum(time_ns for _, _, _, time_ns in rows),
        "waiting_count": waiting_count,
        "waiting_ns": waiting_ns,
        "interval_ns": interval_ns,
        **table,
    }
