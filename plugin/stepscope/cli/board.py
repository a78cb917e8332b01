"""The lines on a terminal that say how far reading has come: one a file, and one for all."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from stepscope import quantities
from stepscope.addresses import name
from stepscope.readers.many import Watch
from stepscope.readers.orders import Order, Tell, Told
from stepscope.readers.pace import Clock, Pace
from stepscope.render.words import plain

LONGEST_NAME = 40
SEPARATOR = " · "


@contextmanager
def board(orders: Sequence[Order]) -> Iterator[Watch]:
    """Show the files at work: phase, bytes, events and time left, and how far all of them are."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[words]}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        yield _Board(shown, orders).watch


class _Board:
    """Files that are read by several threads at once, on one terminal."""

    def __init__(self, shown: Progress, orders: Sequence[Order]) -> None:
        self._shown = shown
        self._lock = threading.Lock()
        self._pace = Pace()
        self._began = monotonic()
        self._total_bytes = sum(map(_size, orders))
        self._file_count = len(orders)
        self._finished_count = 0
        self._finished_bytes = 0
        self._whole: TaskID | None = None
        if len(orders) > 1:
            self._whole = shown.add_task(f"all {len(orders)} files", total=None, words="")

    @contextmanager
    def watch(self, order: Order) -> Iterator[Tell]:
        """Show a file within the block, and then that one more is done."""
        line = self._shown.add_task(_label(order), total=None, words="")
        clock = Clock(began=monotonic())

        def tell(told: Told) -> None:
            nonlocal clock
            now = monotonic()
            clock = clock.at(told.phase, now)
            left_s = self._pace.left_s(told, clock, now)
            done, total = told.bytes_done, told.bytes_total or None
            self._shown.update(line, completed=done, total=total, words=_words(told, left_s))

        try:
            yield tell
        finally:
            self._pace.finished(clock, monotonic())
            self._shown.remove_task(line)
            self._finished(_size(order))

    def _finished(self, size_bytes: int) -> None:
        with self._lock:
            self._finished_count += 1
            self._finished_bytes += size_bytes
            count, done = self._finished_count, self._finished_bytes
        if self._whole is None:
            return
        passed_s = monotonic() - self._began
        left_s = passed_s * (self._total_bytes - done) / done if done else None
        words = (f"{count} done", *_left(left_s))
        self._shown.update(
            self._whole, completed=done, total=self._total_bytes, words=SEPARATOR.join(words)
        )


def _words(told: Told, left_s: float | None) -> str:
    if told.phase == "waiting":
        return "waiting for memory"
    total = f"{quantities.size(told.bytes_done)} of {quantities.size(told.bytes_total)}"
    amounts = [total] if told.phase == "reading" else []
    events = [f"{told.events:,} events"] if told.events else []
    return SEPARATOR.join((told.phase, *amounts, *events, *_left(left_s)))


def _left(left_s: float | None) -> tuple[str, ...]:
    return () if left_s is None else (f"{quantities.clock(left_s * 1e9)} left",)


def _label(order: Order) -> str:
    label = plain(name(order.file.path))
    return label if len(label) <= LONGEST_NAME else f"{label[: LONGEST_NAME - 1]}…"


def _size(order: Order) -> int:
    return order.stamp.size_bytes if order.stamp else 0
