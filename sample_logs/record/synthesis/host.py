"""The host: one clock, its threads, and their open scopes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any

from synthesis.recording import Record
from synthesis.schedule import Schedule

MAIN_THREAD = "main"


@dataclass
class Thread:
    """One host thread: its number and its open scopes, outermost first."""

    number: int
    open_ids: list[int] = field(default_factory=list)
    annotation_ids: list[int] = field(default_factory=list)
    frames: list[tuple[int, str]] = field(default_factory=list)


class Host:
    """Clock of the host, and the events on its threads."""

    def __init__(self, schedule: Schedule) -> None:
        self.now_ns = round(schedule.start_us * 1000)
        self.records: list[Record] = []
        self.threads = {MAIN_THREAD: Thread(0)}
        self.thread = self.threads[MAIN_THREAD]
        self._random = Random(schedule.seed)  # noqa: S311 (jitter, no secret)
        self._jitter = schedule.jitter
        self._around_us = schedule.around_us
        self._external_ids = count(1)
        self._python_ids = count(1)

    def varied_ns(self, us: float) -> int:
        """Return a written duration in nanoseconds, with the schedule's jitter."""
        factor = 1 + self._jitter * self._random.uniform(-1, 1) if self._jitter else 1
        return round(us * 1000 * factor)

    def pass_us(self, us: float) -> None:
        """Advance the clock."""
        self.now_ns += self.varied_ns(us)

    def record(
        self,
        event: tuple[str, str],
        start_ns: int,
        *,
        details: Mapping[str, Any],
        external_id: int | None = None,
        correlation: int | None = None,
    ) -> None:
        """Record an event (its kind and name) from a start until now, on this thread."""
        kind, name = event
        self.records.append(
            Record(
                kind=kind,
                name=name,
                start_ns=start_ns,
                dur_ns=self.now_ns - start_ns,
                lane=self.thread.number,
                external_id=external_id,
                correlation=correlation,
                details=details,
            )
        )

    @property
    def external_id(self) -> int | None:
        """Id of the innermost open operator or annotation on this thread."""
        return self.thread.open_ids[-1] if self.thread.open_ids else None

    @contextmanager
    def scope(self, kind: str, name: str, details: Mapping[str, Any]) -> Iterator[None]:
        """Open an operator or an annotation; it is recorded when it closes."""
        external_id, start_ns = next(self._external_ids), self.now_ns
        ids = [self.thread.open_ids]
        if kind == "annotation":
            ids.append(self.thread.annotation_ids)
        for stack in ids:
            stack.append(external_id)
        yield
        self.pass_us(self._around_us)
        for stack in ids:
            stack.pop()
        self.record((kind, name), start_ns, external_id=external_id, details=details)
        self.pass_us(self._around_us)

    @contextmanager
    def frame(self, name: str, *, is_recorded: bool) -> Iterator[None]:
        """Enter a Python frame, or a module's forward."""
        frame_id, start_ns, frames = next(self._python_ids), self.now_ns, self.thread.frames
        details: dict[str, Any] = {
            "Python parent id": frames[-1][0] if frames else None,
            "Python id": frame_id,
        }
        if name.startswith("nn.Module: "):
            details["Python module id"] = int(name.rpartition("_")[2] or 0)
        frames.append((frame_id, name))
        yield
        self.pass_us(self._around_us)
        frames.pop()
        if is_recorded:
            self.record(("python", name), start_ns, details=details)
        self.pass_us(self._around_us)

    @contextmanager
    def on_thread(self, name: str) -> Iterator[None]:
        """Continue on another thread while this one waits."""
        waiting = self.thread
        self.thread = self.threads.setdefault(name, Thread(len(self.threads)))
        yield
        self.thread = waiting
