"""What recordings say for their runs is worked out once, and what is known waits for nobody."""

from pathlib import Path
from threading import Event, Thread

from logs import write_run
from stepscope.api.dispatch import PartCache
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.trace import Trace
from stepscope.readers.pool import InProcessReader

PATIENCE = 20
"""Seconds until a thread is taken to wait for ever."""


class _AtOnce:
    def submit(self, job: object, /) -> None:
        assert callable(job)
        job()


def _entries(log: Path) -> tuple[Entry, ...]:
    catalog = Catalog(
        [LogDirectory(path=str(log))],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return tuple(catalog.entries())


def test_what_is_known_is_said_while_another_recording_is_worked_on(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    first, second = _entries(tmp_path)
    begun, may_end = Event(), Event()

    def name(trace: Trace) -> str:
        if trace.worker == second.file.worker:
            begun.set()
            assert may_end.wait(PATIENCE)
        return trace.worker

    parts = PartCache(10**9)
    assert parts.of(first, name) == ("a",)
    said: list[object] = []
    slow = Thread(target=lambda: said.append(parts.of(second, name)))
    quick = Thread(target=lambda: said.append(parts.of(first, name)))
    slow.start()
    assert begun.wait(PATIENCE)
    quick.start()
    quick.join(PATIENCE)
    assert said == [("a",)]
    may_end.set()
    slow.join(PATIENCE)
    assert said == [("a",), ("b",)]


def test_two_that_ask_at_once_have_it_worked_out_once(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a")
    [entry] = _entries(tmp_path)
    asked: list[str] = []
    begun, may_end = Event(), Event()

    def name(trace: Trace) -> str:
        asked.append(trace.worker)
        begun.set()
        assert may_end.wait(PATIENCE)
        return trace.worker

    parts = PartCache(10**9)
    said: list[object] = []
    both = [Thread(target=lambda: said.append(parts.of(entry, name))) for _ in range(2)]
    both[0].start()
    assert begun.wait(PATIENCE)
    both[1].start()
    may_end.set()
    for each in both:
        each.join(PATIENCE)
    assert (said, asked) == ([("a",), ("a",)], ["a"])
