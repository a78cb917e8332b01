"""Files are read in processes of their own; whatever becomes of one, the others go on."""

import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import reader_tasks
from logs import EVENT_COUNT, write_run
from programs import running
from same_columns import differences
from stepscope.advice import TraceAdvice
from stepscope.analyses.timeline import timeline
from stepscope.api import prefetch
from stepscope.api.prefetch import prepare
from stepscope.base.config import Settings
from stepscope.base.errors import UnreadableError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Reading
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.trace import Trace
from stepscope.readers.batch import Outcome, read_all
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.pool import TRIES, InProcessReader, ReaderPool
from stepscope.readers.requests import (
    CancelledError,
    ReadProgress,
    ReadRequest,
    ReadResult,
    Step,
    Stop,
)
from stepscope.readers.tasks import advise, analyse
from stepscope.readers.trace_transfer import pack, unpack
from stepscope.storage import discover
from waiting import LONG_SECONDS, until

MIB = 2**20
BUDGET = 4096 * MIB
Task = Callable[[Trace], Any]


@pytest.fixture
def readers() -> Iterator[ReaderPool]:
    """Readers that read nothing in this process."""
    pool = ReaderPool(MemoryBudget(BUDGET), small_bytes=-1)
    yield pool
    pool.close()


def orders_of(
    folder: Path, task: Task = advise, *, returns_trace: bool = False
) -> list[ReadRequest]:
    steps: tuple[Step, ...] = (("analysing", analyse), ("advising", task))
    return [
        ReadRequest(file=file, steps=steps, returns_trace=returns_trace)
        for file in discover.at(str(folder))
    ]


def said(advice: TraceAdvice | None) -> object:
    """What is told of a recording; beside it stands what its run may ask."""
    return advice and (advice.worker, advice.outcomes)


def order_of(folder: Path, task: Task = advise, *, returns_trace: bool = False) -> ReadRequest:
    [order] = orders_of(write_run(folder), task, returns_trace=returns_trace)
    return order


def nothing(_: ReadProgress) -> None:
    """Tell nobody."""


def is_gone(process_id: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(process_id, os.WNOHANG)
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    return False


def killed(process_id: int) -> None:
    """Kill a child of this process, and wait until it is dead; it stays for who started it."""
    os.kill(process_id, signal.SIGKILL)
    os.waitid(os.P_PID, process_id, os.WEXITED | os.WNOWAIT)


def test_a_process_gives_what_reading_here_gives(tmp_path: Path, readers: ReaderPool) -> None:
    order = order_of(tmp_path, prepare, returns_trace=True)
    here, there = (
        InProcessReader().read(order, nothing, Stop()),
        readers.read(order, nothing, Stop()),
    )
    assert here.trace is not None
    assert there.trace is not None
    assert differences(there.trace.columns, here.trace.columns) == []
    assert said(there.prepared.advice) == said(here.prepared.advice) == said(advise(there.trace))
    for name in ("worker", "span", "id", "path", "rank", "is_synthetic", "dialect"):
        assert getattr(there.trace, name) == getattr(here.trace, name), name
    assert there.trace.kernels.equals(here.trace.kernels)


def test_what_was_worked_out_ahead_comes_along_and_frames_do_not(
    tmp_path: Path, readers: ReaderPool
) -> None:
    answer = readers.read(order_of(tmp_path, prepare, returns_trace=True), nothing, Stop())
    assert answer.trace is not None
    assert "stepscope.api.endpoints.overview.overview" in answer.trace.results


def test_the_trace_comes_only_where_it_is_wanted(tmp_path: Path, readers: ReaderPool) -> None:
    answer = readers.read(order_of(tmp_path), nothing, Stop())
    assert answer.trace is None
    assert answer.prepared is not None


@pytest.mark.parametrize("jobs", [1, 3])
def test_the_answers_are_the_same_and_in_order_whatever_the_number_of_jobs(
    tmp_path: Path, readers: ReaderPool, jobs: int
) -> None:
    write_run(tmp_path / "run", *"abcde")
    (tmp_path / "run" / "c.1700000000000.pt.trace.json.gz").write_bytes(b"")
    orders = orders_of(tmp_path)
    expected = read_all(orders, InProcessReader(), jobs=1)
    found = read_all(orders, readers, jobs=jobs)
    assert [str(each) for each in found] == [str(each) for each in expected]
    assert [type(each) for each in found] == [
        ReadResult,
        ReadResult,
        UnreadableError,
        ReadResult,
        ReadResult,
    ]


def test_how_far_it_has_come_is_told(tmp_path: Path, readers: ReaderPool) -> None:
    told: list[ReadProgress] = []
    order = order_of(tmp_path)
    readers.read(order, told.append, Stop())
    size = Path(order.file.path).stat().st_size
    assert [each.phase for each in told] == ["waiting", "reading", "analysing", "advising"]
    assert told[-1] == ReadProgress(
        phase="advising", bytes_done=size, bytes_total=size, events=EVENT_COUNT
    )


def test_what_is_printed_and_logged_there_breaks_nothing_and_is_heard_here(
    tmp_path: Path, readers: ReaderPool, caplog: pytest.LogCaptureFixture
) -> None:
    readers.read(order_of(tmp_path, reader_tasks.talkative), nothing, Stop())
    assert ("reader_tasks", logging.WARNING, "said of worker0") in caplog.record_tuples


@pytest.mark.parametrize(
    ("task", "said", "remedy"),
    [
        (reader_tasks.crashing, "The reader of this file crashed (signal 6, SIGABRT).", "a bug"),
        (reader_tasks.failing, "stepscope failed on this file (ZeroDivisionError", "a bug"),
    ],
)
def test_a_file_on_which_the_reader_fails_costs_itself(
    tmp_path: Path, readers: ReaderPool, task: Task, said: str, remedy: str
) -> None:
    order = order_of(tmp_path, task)
    with pytest.raises(UnreadableError) as failed:
        readers.read(order, nothing, Stop())
    assert failed.value.path == order.file.path
    assert failed.value.message.startswith(said)
    assert remedy in failed.value.remedy
    assert readers.read(order_of(tmp_path), nothing, Stop()).prepared is not None


def test_the_timeline_of_a_large_file_comes_along(
    tmp_path: Path, readers: ReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = order_of(tmp_path, prepare, returns_trace=True)
    answer = readers.read(order, nothing, Stop())
    assert answer.trace is not None
    assert timeline.KEY not in answer.trace.results, "a small one is made when it is asked for"
    made = timeline.timeline(answer.trace)
    sent = unpack(pack(answer.trace))
    assert timeline.timeline(sent) is sent.results[timeline.KEY]
    assert len(sent.results[timeline.KEY].slices) == len(made.slices)
    monkeypatch.setattr(prefetch, "LARGE_COUNT", 1)
    prepare(sent_anew := unpack(pack(replace(answer.trace, results={}))))
    assert timeline.KEY in sent_anew.results


@pytest.mark.skipif(not hasattr(signal, "SIGSEGV"), reason="no such signal here")
def test_a_reader_that_crashes_for_want_of_memory_is_given_all_there_is(tmp_path: Path) -> None:
    readers = ReaderPool(MemoryBudget(BUDGET), small_bytes=-1)
    try:
        answer = readers.read(
            order_of(tmp_path, reader_tasks.crashing_without_memory), nothing, Stop()
        )
    finally:
        readers.close()
    assert answer.prepared is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killing_readers_at_random_costs_no_file(tmp_path: Path, seed: int) -> None:
    write_run(tmp_path / "run", *"abcdefgh")
    orders = orders_of(tmp_path, reader_tasks.slow)
    expected = read_all(orders, InProcessReader(), jobs=1)
    readers = ReaderPool(MemoryBudget(BUDGET), small_bytes=-1)
    chance = random.Random(seed)  # noqa: S311
    killed: list[int] = []
    is_over = threading.Event()

    def kill() -> None:
        while len(killed) < TRIES - 1 and not is_over.wait(chance.uniform(0.05, 0.4)):
            for process_id in readers.process_ids[:1]:
                with suppress(ProcessLookupError):
                    os.kill(process_id, signal.SIGKILL)
                    killed.append(process_id)

    killer = threading.Thread(target=kill)
    killer.start()
    outcomes = read_all(orders, readers, jobs=2)
    is_over.set()
    killer.join()
    readers.close()
    assert list(map(what, outcomes)) == list(map(what, expected))


def what(outcome: Outcome) -> object:
    """What a file gave, its advice or its problem, to be compared."""
    return said(outcome.prepared) if isinstance(outcome, ReadResult) else str(outcome)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_file_whose_reader_is_killed_is_read_again_by_a_fresh_one(
    tmp_path: Path, readers: ReaderPool, how: signal.Signals
) -> None:
    may_end = tmp_path / "go"
    order = order_of(tmp_path, partial(reader_tasks.awaiting, path=str(may_end)))
    seen: list[int] = []

    def tell(told: ReadProgress) -> None:
        if told.phase == "advising":
            seen.extend(readers.process_ids)
            if len(seen) < TRIES:
                os.kill(seen[-1], how)
            else:
                may_end.touch()

    answer = readers.read(order, tell, Stop())
    assert what(answer) == what(InProcessReader().read(order, nothing, Stop()))
    assert len(set(seen)) == TRIES


@pytest.mark.slow
def test_a_file_that_kills_its_readers_costs_itself_after_some_tries(
    tmp_path: Path, readers: ReaderPool
) -> None:
    order = order_of(tmp_path, reader_tasks.killing)
    seen: set[int] = set()
    with pytest.raises(UnreadableError) as failed:
        readers.read(order, lambda _: seen.update(readers.process_ids), Stop())
    assert len(seen) == TRIES
    assert failed.value.path == order.file.path
    assert failed.value.message == (
        "Each reader of this file was killed (signal 9, SIGKILL), "
        "which happens when memory runs out."
    )
    assert "--jobs" in failed.value.remedy
    assert readers.read(order_of(tmp_path), nothing, Stop()).prepared is not None


def test_once_it_is_closed_no_reader_is_started_again(tmp_path: Path, readers: ReaderPool) -> None:
    seen: set[int] = set()

    def tell(told: ReadProgress) -> None:
        seen.update(readers.process_ids)
        if told.phase == "advising":
            readers.close()

    with pytest.raises(CancelledError):
        readers.read(order_of(tmp_path, reader_tasks.endless), tell, Stop())
    assert len(seen) == 1
    assert readers.process_ids == ()


def test_a_process_killed_while_it_does_nothing_costs_nothing(
    tmp_path: Path, readers: ReaderPool
) -> None:
    order = order_of(tmp_path, reader_tasks.slow)
    seen: list[int] = []
    readers.read(order, lambda _: seen.extend(readers.process_ids), Stop())
    killed(seen[-1])
    assert readers.read(order, nothing, Stop()).prepared is not None


def test_a_reading_is_cancelled_at_once(tmp_path: Path, readers: ReaderPool) -> None:
    stop = Stop()
    seen: list[int] = []

    def tell(told: ReadProgress) -> None:
        if told.phase == "advising":
            seen.extend(readers.process_ids)
            threading.Timer(0.05, stop.set).start()

    with pytest.raises(CancelledError):  # it does not come to its end
        readers.read(order_of(tmp_path, reader_tasks.endless), tell, stop)
    until(lambda: is_gone(seen[0]))
    assert readers.read(order_of(tmp_path), nothing, Stop()).prepared is not None


def test_what_is_cancelled_before_it_begins_does_not_begin(
    tmp_path: Path, readers: ReaderPool
) -> None:
    for reader in (InProcessReader(), readers):
        stop = Stop()
        stop.set()
        with pytest.raises(CancelledError):
            reader.read(order_of(tmp_path, reader_tasks.endless), nothing, stop)


def test_more_memory_than_there_may_be_is_a_clear_problem(tmp_path: Path) -> None:
    readers = ReaderPool(MemoryBudget(512 * MIB), small_bytes=-1)
    order = order_of(tmp_path, reader_tasks.greedy)
    with pytest.raises(UnreadableError) as failed:
        readers.read(order, nothing, Stop())
    readers.close()
    assert failed.value.message == "This needs more memory than the limit of 384 MiB."
    assert failed.value.remedy == (
        "Raise the limit (--memory 1G, or STEPSCOPE_MEMORY=1G), or record fewer steps."
    )


@pytest.mark.slow
def test_a_file_that_needs_more_than_its_size_says_is_read_with_all_there_is(
    tmp_path: Path, readers: ReaderPool
) -> None:
    assert (
        readers.read(order_of(tmp_path, reader_tasks.greedy), nothing, Stop()).prepared is not None
    )


def test_a_file_whose_size_says_that_it_cannot_fit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "w.1.pt.trace.json"
    with path.open("wb") as stream:
        stream.truncate(100 * 2**30)
    readers = ReaderPool(MemoryBudget(1024 * MIB))
    [order] = orders_of(path)
    with pytest.raises(UnreadableError) as refused:
        readers.read(order, nothing, Stop())
    assert refused.value.message == (
        "This contains about 100 GiB of JSON: it needs more than 30.0 GiB of memory,"
        " but the limit is 1.00 GiB."
    )
    assert "--memory 30G" in refused.value.remedy


def test_where_no_process_can_be_started_files_are_read_here(
    tmp_path: Path,
    readers: ReaderPool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_run(tmp_path / "run", "a", "b")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "absent"))
    outcomes = read_all(orders_of(tmp_path), readers, jobs=1)
    assert [type(each) for each in outcomes] == [ReadResult, ReadResult]
    assert [record.message.split(" (")[0] for record in caplog.records] == [
        "no process can be started"
    ]


def test_a_python_that_cannot_start_is_as_good_as_none(
    tmp_path: Path, readers: ReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    assert readers.read(order_of(tmp_path), nothing, Stop()).prepared is not None


def test_processes_with_nothing_to_do_end(
    tmp_path: Path, readers: ReaderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.readers.pool.IDLE_SECONDS", 0.05)
    seen: list[int] = []
    readers.read(order_of(tmp_path), lambda _: seen.extend(readers.process_ids), Stop())
    until(lambda: is_gone(seen[0]))


def test_a_file_that_changes_while_it_is_read_gives_what_was_read(
    tmp_path: Path, readers: ReaderPool
) -> None:
    order = order_of(tmp_path, reader_tasks.slow)

    def tell(told: ReadProgress) -> None:
        if told.phase == "advising":
            Path(order.file.path).write_bytes(b"")

    advice = readers.read(order, tell, Stop()).prepared
    assert advice is not None
    assert advice.worker.events == EVENT_COUNT


PARENT = """
import sys
from stepscope.storage import discover
from stepscope.readers.requests import ReadRequest, Stop
from stepscope.readers.pool import ReaderPool
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.tasks import advise, analyse
import reader_tasks
print("began", flush=True)
readers = ReaderPool(MemoryBudget(2**32), small_bytes=-1)
def tell(told):
    if told.phase == "advising":
        print(*readers.process_ids, flush=True)
[file] = discover.at(sys.argv[1])
task = getattr(reader_tasks, sys.argv[2])
readers.read(ReadRequest(file=file, steps=(("advising", task),), returns_trace=False), tell, Stop())
"""
"""A program without `if __name__ == "__main__"`."""


@contextmanager
def program(folder: Path, task: str) -> Iterator[subprocess.Popen[str]]:
    path = folder / "program.py"
    path.write_text(PARENT)
    write_run(folder / "log")
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    with running(
        [sys.executable, path, folder / "log", task],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_readers_end_with_the_program_that_started_them(
    tmp_path: Path, how: signal.Signals
) -> None:
    with program(tmp_path, "endless") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "began\n"
        reader = int(process.stdout.readline())
        process.send_signal(how)
        process.wait()
        until(lambda: is_gone(reader))


def test_a_program_is_not_run_again_by_its_readers(tmp_path: Path) -> None:
    with program(tmp_path, "slow") as process:
        stdout, stderr = process.communicate(timeout=LONG_SECONDS)
    assert stdout.count("began") == 1
    assert (process.returncode, stderr) == (0, "")


def answered(outcome: Outcome) -> bool:
    return isinstance(outcome, ReadResult)


def test_files_that_do_not_fit_together_are_read_one_after_another(tmp_path: Path) -> None:
    write_run(tmp_path / "run", *"abc")
    readers = ReaderPool(MemoryBudget(600 * MIB), small_bytes=-1)
    most: list[int] = []

    def tell(told: ReadProgress) -> None:
        if told.phase == "advising":  # of the first two, until both are at it
            until(lambda: len(readers.process_ids) > 1 or most)
        most.append(len(readers.process_ids))

    orders = orders_of(tmp_path, reader_tasks.slow)
    assert all(
        map(answered, read_all(orders, readers, jobs=3, monitor=lambda _: nullcontext(tell)))
    )
    readers.close()
    assert max(most) == 2, "256 MiB each, of 600"


@pytest.fixture
def watched(tmp_path: Path, readers: ReaderPool) -> Catalog:
    """A catalog of three files, each read in a process for as long as it takes."""
    write_run(tmp_path / "run", *"abc")
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path))],
        CatalogOptions(settings=Settings(jobs=2), reader=readers, prepare=reader_tasks.endless),
    )
    catalog.scan()
    catalog.start_reading()
    return catalog


def phases(catalog: Catalog) -> list[str]:
    """What is known of each file: its state, or the phase in which it is being read."""
    states = (entry.state for entry in catalog.entries())
    return [
        state.progress.phase if isinstance(state, Reading) else type(state).__name__
        for state in states
    ]


def test_a_catalog_reads_again_what_a_killed_reader_read(
    watched: Catalog, readers: ReaderPool
) -> None:
    until(lambda: phases(watched) == ["advising", "advising", "Queued"])
    other, victim = readers.process_ids
    os.kill(victim, signal.SIGKILL)
    until(lambda: len({*readers.process_ids} - {other, victim}) == 1)
    until(lambda: phases(watched) == ["advising", "advising", "Queued"])
    assert other in readers.process_ids


def test_a_catalog_cancels_and_reads_again(watched: Catalog, readers: ReaderPool) -> None:
    until(lambda: phases(watched) == ["advising", "advising", "Queued"])
    first = watched.entries()[0].file
    watched.cancel(first.id)
    assert phases(watched)[0] == "Cancelled"
    until(lambda: phases(watched) == ["Cancelled", "advising", "advising"])
    assert len(readers.process_ids) == 2
    watched.read_again(first.id)
    assert phases(watched)[0] == "Queued"
    watched.cancel(watched.entries()[1].file.id)
    until(lambda: phases(watched) == ["advising", "Cancelled", "advising"])


def test_a_catalog_stops_reading_what_is_gone(watched: Catalog, readers: ReaderPool) -> None:
    until(lambda: phases(watched) == ["advising", "advising", "Queued"])
    before = set(readers.process_ids)
    for entry in watched.entries():
        Path(entry.file.path).unlink()
    watched.scan()
    assert watched.entries() == ()
    until(lambda: not readers.process_ids)
    until(lambda: all(map(is_gone, before)))
