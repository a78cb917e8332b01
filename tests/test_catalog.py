"""What the catalog knows of each file, and when."""

import gc
import os
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logs import EVENT_COUNT, write_run, write_trace
from stepscope.api.prefetch import prepare
from stepscope.base.config import Settings
from stepscope.base.errors import UnknownNameError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import (
    Cancelled,
    Queued,
    Reading,
    Ready,
    State,
    Summarised,
    Unreadable,
)
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.catalog.trace_cache import RETAINED_FRACTION
from stepscope.model.trace import Trace
from stepscope.readers import memory_size
from stepscope.readers.batch import DaemonThreads
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import ReadProgress
from stepscope.storage import discover
from waiting import until


class Later:
    """Runs jobs when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], /) -> None:
        self.jobs.append(job)

    def run(self, count: int | None = None) -> None:
        chosen = self.jobs[:count]
        del self.jobs[: len(chosen)]
        for job in chosen:
            job()


def catalog_of(
    *folders: Path,
    kept_bytes: int = 10**9,
    prepare: Callable[..., Any] | None = None,
    advice: Any = None,
) -> tuple[Catalog, Later]:
    later = Later()
    directories = [LogDirectory(path=str(folder)) for folder in folders]
    chosen = Settings(memory_bytes=int(kept_bytes / RETAINED_FRACTION))
    catalog = Catalog(
        directories,
        CatalogOptions(
            settings=chosen,
            executor=later,
            reader=InProcessReader(),
            prepare=prepare,
            advice=advice,
        ),
    )
    return catalog, later


def states(catalog: Catalog) -> dict[str, State]:
    return {entry.file.run: entry.state for entry in catalog.entries()}


def bytes_of_one(folder: Path) -> int:
    """What the one recording in a folder takes when nothing has been computed of it."""
    catalog, later = catalog_of(folder)
    read_all(catalog, later)
    [entry] = catalog.entries()
    assert isinstance(entry.state, Ready)
    return memory_size.columns_bytes(entry.state.trace)


def read_all(catalog: Catalog, later: Later) -> None:
    catalog.scan()
    catalog.start_reading()
    later.run()


def test_a_file_is_queued_when_found_and_ready_when_read(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    catalog, later = catalog_of(tmp_path)
    assert catalog.is_scanning
    assert not catalog.has_traces
    catalog.scan()
    assert not catalog.is_scanning
    assert catalog.has_traces
    assert states(catalog) == {"run": Queued()}
    assert not later.jobs, "nothing is read before anyone asks"
    catalog.start_reading()
    catalog.start_reading()
    later.run()
    [entry] = catalog.entries()
    assert isinstance(entry.state, Ready)
    assert entry.facts is not None
    assert entry.facts.events == len(entry.state.trace) == EVENT_COUNT


def test_each_file_is_read_once(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    seen: list[str] = []
    catalog, later = catalog_of(tmp_path, prepare=lambda trace: seen.append(trace.worker))
    read_all(catalog, later)
    catalog.scan()
    later.run()
    assert seen == ["a", "b"]


def test_new_files_are_seen_and_changed_ones_read_again(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run") / "worker0.1700000000000.pt.trace.json.gz"
    catalog, later = catalog_of(tmp_path)
    read_all(catalog, later)
    write_run(tmp_path / "run", "worker1")
    path.write_bytes(b"")
    os.utime(path, ns=(1, 1))
    catalog.scan()
    assert [entry.state for entry in catalog.entries()] == [Queued(), Queued()]
    later.run()
    first, second = (entry.state for entry in catalog.entries())
    assert isinstance(first, Unreadable)
    assert first.problem.message == "The file is empty."
    assert isinstance(second, Ready)


def test_a_file_that_went_is_forgotten(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    catalog, later = catalog_of(tmp_path)
    read_all(catalog, later)
    (tmp_path / "run" / "a.1700000000000.pt.trace.json.gz").unlink()
    catalog.scan()
    assert [entry.file.worker for entry in catalog.entries()] == ["b"]


def test_a_file_that_went_while_it_was_read_stays_forgotten(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "run" / "a.1.pt.trace.json")

    def vanish(_: Trace) -> None:
        path.unlink()
        catalog.scan()

    catalog, later = catalog_of(tmp_path, prepare=vanish)
    read_all(catalog, later)
    assert catalog.entries() == ()


def test_a_bad_file_is_unreadable_and_the_others_are_not(tmp_path: Path) -> None:
    write_run(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "w.1.pt.trace.json").write_text("no trace")
    catalog, later = catalog_of(tmp_path)
    read_all(catalog, later)
    bad = states(catalog)["bad"]
    assert isinstance(bad, Unreadable)
    assert bad.problem.path.endswith("w.1.pt.trace.json")
    assert bad.problem.remedy
    assert isinstance(states(catalog)["good"], Ready)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "This needs more memory than is available."),
        (
            ZeroDivisionError("by zero"),
            "stepscope failed on this file (ZeroDivisionError: by zero at ",
        ),
    ],
)
def test_a_failure_is_told_and_ends_nothing(tmp_path: Path, error: Exception, said: str) -> None:
    write_run(tmp_path / "run", "a", "b")

    def fail(trace: Trace) -> None:
        if trace.worker == "a":
            raise error

    catalog, later = catalog_of(tmp_path, prepare=fail)
    read_all(catalog, later)
    first, second = (entry.state for entry in catalog.entries())
    assert isinstance(first, Unreadable)
    assert first.problem.message.startswith(said)
    assert isinstance(second, Ready)


def test_progress_is_seen_while_a_file_is_read(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    seen: list[State] = []
    catalog, later = catalog_of(tmp_path, prepare=lambda _: seen.append(catalog.entries()[0].state))
    read_all(catalog, later)
    size = catalog.entries()[0].stamp.size_bytes
    told = ReadProgress(phase="advising", bytes_done=size, bytes_total=size, events=EVENT_COUNT)
    assert seen == [Reading(progress=told)]


def test_what_is_asked_for_is_read_first(tmp_path: Path) -> None:
    for run in ("a", "b", "c"):
        write_run(tmp_path / run)
    catalog, later = catalog_of(tmp_path)
    catalog.scan()
    catalog.run(discover.run_identifier(str(tmp_path / "b")))
    later.run(1)
    assert {run for run, state in states(catalog).items() if isinstance(state, Ready)} == {"b"}


def test_what_was_recorded_last_is_read_before_what_nobody_asked_for(tmp_path: Path) -> None:
    for run, when in (("a", 1700000000000), ("b", 1700000000001000000), ("c", 1700000000000)):
        write_trace(tmp_path / run / f"w.{when}.pt.trace.json")
    catalog, later = catalog_of(tmp_path)
    catalog.scan()
    catalog.start_reading()
    later.run(1)
    assert {run for run, state in states(catalog).items() if isinstance(state, Ready)} == {"b"}


def test_beyond_the_bound_the_run_asked_for_least_lately_is_dropped_and_read_again_on_demand(
    tmp_path: Path,
) -> None:
    for run in ("a", "b", "c"):
        write_run(tmp_path / run)
    catalog, later = catalog_of(tmp_path, kept_bytes=2 * bytes_of_one(tmp_path / "a"))
    catalog.scan()
    catalog.run(discover.run_identifier(str(tmp_path / "a")))
    catalog.run(discover.run_identifier(str(tmp_path / "b")))
    later.run()
    assert {run for run, state in states(catalog).items() if state == Summarised()} == {"c"}
    [found] = catalog.run(discover.run_identifier(str(tmp_path / "c")))
    assert found.state == Summarised()
    asked = catalog.file(found.file.id)
    assert asked.state == Queued()
    assert asked.facts is not None, "what was learned of it is kept"
    later.run()
    assert {run for run, state in states(catalog).items() if state == Summarised()} == {"a"}


def test_what_is_dropped_is_freed(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write_run(tmp_path / run)
    seen: list[weakref.ref[Trace]] = []

    def prepare_and_note(trace: Trace) -> None:
        prepare(trace)
        seen.append(weakref.ref(trace))

    catalog, later = catalog_of(tmp_path, kept_bytes=1, prepare=prepare_and_note)
    read_all(catalog, later)
    gc.collect()
    assert [trace() is None for trace in seen] == [False, True]


def test_a_run_beyond_the_bound_by_itself_keeps_what_was_asked_for_last(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b", "c")
    catalog, later = catalog_of(tmp_path, kept_bytes=1, prepare=prepare)
    read_all(catalog, later)
    assert [type(entry.state) for entry in catalog.entries()] == [Ready, Summarised, Summarised]
    second = catalog.entries()[1].file.id
    assert catalog.file(second).state == Queued()
    later.run()
    assert [type(entry.state) for entry in catalog.entries()] == [Summarised, Ready, Summarised]


def test_the_advice_of_what_was_dropped_is_kept_and_nothing_is_read_for_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    catalog, later = catalog_of(tmp_path, kept_bytes=1, prepare=prepare)
    read_all(catalog, later)
    entries = catalog.run(discover.run_identifier(str(tmp_path / "run")))
    assert [type(entry.state) for entry in entries] == [Ready, Summarised]
    advice = [entry.facts.advice for entry in entries if entry.facts]
    assert [each.worker.name for each in advice if each] == ["a", "b"]
    assert not later.jobs


def test_several_directories_give_their_runs_their_names(tmp_path: Path) -> None:
    write_run(tmp_path / "one" / "run")
    write_run(tmp_path / "two" / "run")
    directories = [LogDirectory(path=str(tmp_path / name), name=name) for name in ("one", "two")]
    catalog = Catalog(directories, CatalogOptions(executor=Later(), reader=InProcessReader()))
    catalog.scan()
    assert [entry.file.run for entry in catalog.entries()] == ["one/run", "two/run"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("absent", "There is no such folder."),
        ("file", "This is a file, not a folder."),
        ("nosuch://bucket/log", "stepscope cannot read addresses that begin with nosuch://."),
    ],
)
def test_a_directory_that_cannot_be_used_is_a_problem(tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "file").touch()
    full = path if "://" in path else str(tmp_path / path)
    catalog = Catalog([LogDirectory(path=full)], CatalogOptions(executor=Later()))
    catalog.scan()
    [problem] = catalog.problems
    assert (problem.path, problem.message) == (full, said)
    assert not catalog.has_traces


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    catalog, _ = catalog_of(tmp_path)
    with pytest.raises(UnknownNameError, match="no trace has the id 'x'"):
        catalog.file("x")
    with pytest.raises(UnknownNameError, match="no run has the id 'x'"):
        catalog.run("x")


def test_it_watches_and_reads_in_the_background(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path))],
        CatalogOptions(executor=DaemonThreads(1), prepare=prepare),
    )
    catalog.start_reading()
    catalog.watch()
    until(lambda: any(isinstance(state, Ready) for state in states(catalog).values()))


def test_what_is_cancelled_while_it_waits_is_not_read_until_that_is_asked_for(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "run", "a", "b")
    catalog, later = catalog_of(tmp_path)
    catalog.scan()
    catalog.start_reading()
    first, second = catalog.entries()
    catalog.cancel(first.file.id)
    later.run()
    assert [type(entry.state) for entry in catalog.entries()] == [Cancelled, Ready]
    assert catalog.file(first.file.id).state == Cancelled()
    catalog.scan()
    later.run()
    assert catalog.entries()[0].state == Cancelled()
    catalog.read_again(first.file.id)
    catalog.read_again(second.file.id)
    later.run()
    assert [type(entry.state) for entry in catalog.entries()] == [Ready, Ready]


def test_what_is_cancelled_while_it_is_read_ends_there_and_may_be_read_again_at_once(
    tmp_path: Path,
) -> None:
    write_run(tmp_path / "run")

    def cancel_and_ask_again(trace: Trace) -> None:
        catalog.cancel(trace.id)
        seen.append(catalog.entries()[0].state)
        catalog.read_again(trace.id)
        seen.append(catalog.entries()[0].state)

    seen: list[State] = []
    catalog, later = catalog_of(tmp_path, prepare=cancel_and_ask_again)
    read_all(catalog, later)
    assert seen == [Cancelled(), Queued()]
    assert catalog.entries()[0].state == Queued(), "the first reading has no say any more"
    assert len(later.jobs) == 1


def test_a_file_that_cannot_be_read_is_tried_again_when_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "run" / "w.1.pt.trace.json"
    write_trace(path)
    whole = path.read_bytes()
    path.write_text("")
    os.utime(path, ns=(1, 1))
    catalog, later = catalog_of(tmp_path)
    read_all(catalog, later)
    [entry] = catalog.entries()
    assert isinstance(entry.state, Unreadable)
    path.write_bytes(whole)
    catalog.read_again(entry.file.id)
    later.run()
    assert isinstance(catalog.entries()[0].state, Ready)


def test_the_queue_is_in_the_order_of_reading(tmp_path: Path) -> None:
    for run in ("a", "b", "c"):
        write_run(tmp_path / run)
    catalog, later = catalog_of(tmp_path)
    catalog.scan()
    catalog.run(discover.run_identifier(str(tmp_path / "b")))
    runs = {entry.file.id: entry.file.run for entry in catalog.entries()}
    assert [runs[identity] for identity in catalog.queue()] == ["b", "a", "c"]
    later.run(1)
    assert [runs[identity] for identity in catalog.queue()] == ["a", "c"]


def traces_of(catalog: Catalog) -> list[Trace]:
    return [entry.state.trace for entry in catalog.entries() if isinstance(entry.state, Ready)]


def test_what_was_computed_goes_before_what_was_read(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    catalog, later = catalog_of(tmp_path, prepare=prepare)
    read_all(catalog, later)
    total = sum(
        memory_size.columns_bytes(trace) + memory_size.results_bytes(trace)
        for trace in traces_of(catalog)
    )
    catalog, later = catalog_of(tmp_path, kept_bytes=total - 1, prepare=prepare)
    read_all(catalog, later)
    first, second = traces_of(catalog)
    assert first.results
    assert not second.results, "nobody asked for either, and it comes later"
    assert catalog.file(second.id).facts == catalog.entries()[1].facts


def test_room_is_made_for_a_file_that_does_not_fit(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b", "c")
    catalog, later = catalog_of(tmp_path)
    read_all(catalog, later)
    catalog.release_memory(1)
    assert [type(entry.state) for entry in catalog.entries()] == [Ready, Ready, Summarised]
    catalog.release_memory(10**9)
    assert [type(entry.state) for entry in catalog.entries()] == [Ready, Summarised, Summarised]
