"""The lines on a terminal that say how far reading has come: one a file, and one for all."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from stepscope.base import formatting
from stepscope.base.urls import name
from stepscope.readers.batch import ProgressMonitor
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.requests import OnProgress, ReadProgress, ReadRequest
from stepscope.render.phrases import plain

MOST_LINES = 12
"""Of files: a cluster has thousands under way, and a terminal shows some 24 lines."""
LONGEST_NAME = 40
SEPARATOR = " · "


@contextmanager
def board(orders: Sequence[ReadRequest], *, awaited: str = "memory") -> Iterator[ProgressMonitor]:
    """Show the files at work: phase, bytes, events and time left, and how far all of them are.

    `awaited` is what a file that is not read yet waits for.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Board(shown, orders, awaited).watch


@dataclass(kw_only=True, eq=False)
class _Begun:
    """A file under way; it has no line while as many others as are shown began before it."""

    label: str
    clock: Clock
    line: TaskID | None = None
    completed: int = 0
    total: int | None = None
    words: str = ""


class _Board:
    """Files that are read by several threads at once, on one terminal."""

    def __init__(self, shown: Progress, orders: Sequence[ReadRequest], awaited: str) -> None:
        self._shown = shown
        self._awaited = awaited
        self._lock = threading.Lock()
        self._pace = EtaEstimator()
        self._began = monotonic()
        self._total_bytes = sum(map(_size, orders))
        self._finished_count = 0
        self._finished_bytes = 0
        self._begun: dict[_Begun, None] = {}
        self._whole: TaskID | None = None
        if len(orders) > 1:
            self._whole = shown.add_task(f"all {len(orders):,} files", total=None, words="")

    @contextmanager
    def watch(self, order: ReadRequest) -> Iterator[OnProgress]:
        """Show a file within the block, and then that one more is done."""
        file = _Begun(label=_label(order), clock=Clock(began=monotonic()))
        with self._lock:
            self._begun[file] = None
            self._show()

        def tell(told: ReadProgress) -> None:
            now = monotonic()
            file.clock = file.clock.at(told.phase, now)
            words = _words(told, self._pace.left_s(told, file.clock, now), self._awaited)
            with self._lock:
                file.completed, file.total = told.bytes_done, told.bytes_total or None
                file.words = words
                if file.line is not None:
                    self._shown.update(
                        file.line, completed=file.completed, total=file.total, words=words
                    )

        try:
            yield tell
        finally:
            self._pace.finished(file.clock, monotonic())
            with self._lock:
                self._end(file)
                self._finished_count += 1
                self._finished_bytes += _size(order)
                self._show()

    def _end(self, file: _Begun) -> None:
        del self._begun[file]
        if file.line is not None:
            self._shown.remove_task(file.line)

    def _show(self) -> None:
        """Give the files longest under way a line each, and tell how far all of them are."""
        for file in islice(self._begun, MOST_LINES):
            if file.line is None:
                file.line = self._shown.add_task(
                    file.label, completed=file.completed, total=file.total, words=file.words
                )
        if self._whole is None:
            return
        done_bytes = self._finished_bytes
        words = _whole_words(
            self._finished_count, max(0, len(self._begun) - MOST_LINES), self._left_s()
        )
        total = self._total_bytes if done_bytes else None
        self._shown.update(self._whole, completed=done_bytes, total=total, words=words)

    def _left_s(self) -> float | None:
        if not (done_bytes := self._finished_bytes):
            return None
        return (monotonic() - self._began) * (self._total_bytes - done_bytes) / done_bytes


def _whole_words(done_count: int, unseen_count: int, left_s: float | None) -> str:
    done = [f"{done_count:,} done"] if done_count else []
    unseen = [f"{unseen_count:,} more under way"] if unseen_count else []
    return SEPARATOR.join((*done, *unseen, *_left(left_s)))


def _words(told: ReadProgress, left_s: float | None, awaited: str) -> str:
    if told.phase == "waiting":
        return f"waiting for {awaited}"
    total = f"{formatting.size(told.bytes_done)} of {formatting.size(told.bytes_total)}"
    amounts = [total] if told.phase == "reading" else []
    events = [f"{told.events:,} events"] if told.events else []
    return SEPARATOR.join((told.phase, *amounts, *events, *_left(left_s)))


def _left(left_s: float | None) -> tuple[str, ...]:
    return () if left_s is None else (f"{formatting.clock(left_s * 1e9)} left",)


def _label(order: ReadRequest) -> str:
    label = plain(name(order.file.path))
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def _size(order: ReadRequest) -> int:
    return order.stamp.size_bytes if order.stamp else 0
