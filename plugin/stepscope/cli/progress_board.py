"""Progress of reading on a terminal: a line per file, and a line for all files."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from stepscope.base import formatting
from stepscope.base.plain_text import plain
from stepscope.base.urls import name
from stepscope.readers.batch import ProgressMonitor
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.requests import OnProgress, ReadProgress, ReadRequest

MOST_LINES = 12
"""Maximum number of files with a line: a cluster reads thousands at once."""
LONGEST_NAME = 40
WIDE_COLUMNS = 80
"""Narrower terminals have no bars, and shorter names."""
SEPARATOR = " · "


@contextmanager
def board(requests: Sequence[ReadRequest], *, awaited: str = "memory") -> Iterator[ProgressMonitor]:
    """Show phase, bytes, events and remaining time of files being read, and of all files.

    Files that are not being read yet wait for `awaited`.
    """
    console = Console(stderr=True)
    bars = [BarColumn(bar_width=20)] if console.width >= WIDE_COLUMNS else []
    columns = (
        TextColumn("{task.description}", markup=False),
        *bars,
        TextColumn("{task.fields[text]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        yield _Board(shown, requests, awaited).watch


@dataclass(kw_only=True, eq=False)
class _ActiveFile:
    """A file being read; it has no line while `MOST_LINES` earlier files are shown."""

    label: str
    clock: Clock
    line: TaskID | None = None
    completed: int = 0
    total: int | None = None
    text: str = ""


class _Board:
    """The display of files that several threads read at once."""

    def __init__(self, shown: Progress, requests: Sequence[ReadRequest], awaited: str) -> None:
        self._shown = shown
        is_wide = shown.console.width >= WIDE_COLUMNS
        self._longest_name = LONGEST_NAME if is_wide else LONGEST_NAME // 2
        self._awaited = awaited
        self._lock = threading.Lock()
        self._eta = EtaEstimator()
        self._began = monotonic()
        self._total_bytes = sum(map(_size, requests))
        self._finished_count = 0
        self._finished_bytes = 0
        self._active: dict[_ActiveFile, None] = {}
        self._whole: TaskID | None = None
        if len(requests) > 1:
            self._whole = shown.add_task(f"all {len(requests):,} files", total=None, text="")

    @contextmanager
    def watch(self, request: ReadRequest) -> Iterator[OnProgress]:
        """Show a file inside the block, and count it as done after it."""
        file = _ActiveFile(label=self._label(request), clock=Clock(began=monotonic()))
        with self._lock:
            self._active[file] = None
            self._show()

        def update(progress: ReadProgress) -> None:
            now = monotonic()
            file.clock = file.clock.at(progress.phase, now)
            text = _text(progress, self._eta.left_s(progress, file.clock, now), self._awaited)
            with self._lock:
                file.completed, file.total = progress.bytes_done, progress.bytes_total or None
                file.text = text
                if file.line is not None:
                    self._shown.update(
                        file.line, completed=file.completed, total=file.total, text=text
                    )

        try:
            yield update
        finally:
            self._eta.finished(file.clock, monotonic())
            with self._lock:
                self._end(file)
                self._finished_count += 1
                self._finished_bytes += _size(request)
                self._show()

    def _end(self, file: _ActiveFile) -> None:
        del self._active[file]
        if file.line is not None:
            self._shown.remove_task(file.line)

    def _show(self) -> None:
        """Show a line for each of the earliest files, and the progress of all files."""
        for file in islice(self._active, MOST_LINES):
            if file.line is None:
                file.line = self._shown.add_task(
                    file.label, completed=file.completed, total=file.total, text=file.text
                )
        if self._whole is None:
            return
        done_bytes = self._finished_bytes
        text = _whole_text(
            self._finished_count, max(0, len(self._active) - MOST_LINES), self._left_s()
        )
        total = self._total_bytes if done_bytes else None
        self._shown.update(self._whole, completed=done_bytes, total=total, text=text)

    def _label(self, request: ReadRequest) -> str:
        label, most = plain(name(request.file.path)), self._longest_name
        return label if len(label) <= most else f"{label[: most - 1]}…"

    def _left_s(self) -> float | None:
        if not (done_bytes := self._finished_bytes):
            return None
        return (monotonic() - self._began) * (self._total_bytes - done_bytes) / done_bytes


def _whole_text(done_count: int, hidden_count: int, left_s: float | None) -> str:
    done = [f"{done_count:,} done"] if done_count else []
    hidden = [f"{hidden_count:,} more being read"] if hidden_count else []
    return SEPARATOR.join((*done, *hidden, *_left(left_s)))


def _text(progress: ReadProgress, left_s: float | None, awaited: str) -> str:
    if progress.phase == "waiting":
        return f"waiting for {awaited}"
    total = f"{formatting.size(progress.bytes_done)} of {formatting.size(progress.bytes_total)}"
    amounts = [total] if progress.phase == "reading" else []
    events = [f"{progress.events:,} events"] if progress.events else []
    return SEPARATOR.join((progress.phase, *amounts, *events, *_left(left_s)))


def _left(left_s: float | None) -> tuple[str, ...]:
    return () if left_s is None else (f"{formatting.clock(left_s * 1e9)} left",)


def _size(request: ReadRequest) -> int:
    return request.stamp.size_bytes if request.stamp else 0
