"""A growing log folder is followed: what somebody still writes waits, and the rest is read once."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logs import write_run, write_trace
from stepscope.api import run_listing
from stepscope.api.prefetch import prepare
from stepscope.catalog import write_detection
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Growing, Queued, Ready, Summarised, Unreadable
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import OnProgress, ReadRequest, ReadResult, Stop
from stepscope.storage import FileStamp
from waiting import until

LONG_AGO_NS = 10**9


class AtOnce:
    def submit(self, job: Callable[[], None], /) -> None:
        job()


class Counting:
    """Reads here, and notes what."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        self.names.append(order.file.worker)
        return InProcessReader().read(order, tell, stop)


def catalog_of(folder: Path, reader: Any = None) -> Catalog:
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(executor=AtOnce(), reader=reader or InProcessReader(), prepare=prepare),
    )
    catalog.start_reading()
    return catalog


def state_of(catalog: Catalog) -> Any:
    [entry] = catalog.entries()
    return entry.state


def stamp(size_bytes: int, *, age_s: float = 0.0, tag: str = "") -> FileStamp:
    return FileStamp(size_bytes=size_bytes, modified_ns=time.time_ns() - int(age_s * 1e9), tag=tag)


LARGE = write_detection.QUICK_BYTES + 1


@pytest.fixture(autouse=True)
def slow_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a test takes here, a file that was just written is a fresh one."""
    monkeypatch.setattr(write_detection, "GIVEN_UP_SECONDS", 10_000.0)


IN_AN_HOUR = -3600.0


@pytest.mark.parametrize(
    ("size_bytes", "age_s", "tag", "waits"),
    [
        (LARGE, IN_AN_HOUR, "", True),
        (LARGE, 60, "", False),
        (write_detection.QUICK_BYTES, IN_AN_HOUR, "", False),
        (LARGE, IN_AN_HOUR, "an object is there when it is whole", False),
    ],
)
def test_a_large_file_that_changed_a_moment_ago_waits(
    size_bytes: int, age_s: float, tag: str, *, waits: bool
) -> None:
    now = stamp(size_bytes, age_s=age_s, tag=tag)
    assert (write_detection.seconds_until_read(now, time.monotonic() + 3600) > 0) is waits


def test_where_no_time_of_change_is_told_nothing_waits() -> None:
    assert not write_detection.seconds_until_read(
        FileStamp(size_bytes=LARGE, modified_ns=0), time.monotonic()
    )


def test_where_clocks_differ_it_counts_since_when_a_file_is_known_as_it_is() -> None:
    assert not write_detection.seconds_until_read(
        stamp(LARGE, age_s=IN_AN_HOUR), time.monotonic() - 60
    )


def test_the_oftener_a_file_turned_out_to_grow_the_longer_it_waits() -> None:
    seen_at, small = time.monotonic() + 3600, stamp(1, age_s=IN_AN_HOUR)
    never, once, often = (
        write_detection.seconds_until_read(small, seen_at, count) for count in (0, 1, 20)
    )
    assert never == 0 < once < often


@pytest.mark.parametrize("name", ["w.1.pt.trace.json", "w.1.pt.trace.json.gz"])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_file_without_its_end_is_still_written_and_read_when_it_is_there(
    tmp_path: Path, name: str, share: float
) -> None:
    path = write_trace(tmp_path / "run" / name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    catalog = catalog_of(tmp_path)
    catalog.scan()
    assert isinstance(state_of(catalog), Growing)
    [run] = run_listing.runs(catalog).runs
    [span] = run.workers[0].spans
    assert (span.state, span.is_growing, span.problem, span.damage) == ("queued", True, None, None)
    path.write_bytes(whole)
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    catalog.scan()
    assert isinstance(state_of(catalog), Ready)


def test_a_file_that_stays_without_its_end_is_damaged_in_the_end(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "run" / "w.1.pt.trace.json")
    path.write_bytes(path.read_bytes()[:-700])
    catalog = catalog_of(tmp_path)
    catalog.scan()
    catalog.check_growing()
    assert isinstance(state_of(catalog), Growing), "not due yet"
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    catalog.scan()
    assert isinstance(state_of(catalog), Ready)
    [run] = run_listing.runs(catalog).runs
    assert run.workers[0].spans[0].damage == "warning"


def test_a_file_that_has_settled_is_read_between_two_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_detection, "QUICK_BYTES", 1)
    write_run(tmp_path / "run")
    catalog = catalog_of(tmp_path)
    catalog.watch()
    until(lambda: isinstance(state_of(catalog), Ready) if catalog.has_traces else False)
    catalog.close()


def test_what_is_still_written_is_read_at_once_where_that_is_asked_for(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "run" / "w.1.pt.trace.json")
    path.write_bytes(b"")
    catalog = catalog_of(tmp_path)
    catalog.scan()
    [entry] = catalog.entries()
    assert isinstance(entry.state, Growing)
    write_trace(path)
    catalog.read_again(entry.file.id)
    assert isinstance(state_of(catalog), Ready)


def test_what_has_settled_is_not_read_before_anybody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "run")
    reader = Counting()
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path))], CatalogOptions(executor=AtOnce(), reader=reader)
    )
    monkeypatch.setattr(write_detection, "QUICK_BYTES", 1)
    monkeypatch.setattr(write_detection, "SETTLED_SECONDS", 0.001)
    catalog.scan()

    def has_settled() -> bool:
        catalog.check_growing()
        return isinstance(state_of(catalog), Queued)

    until(has_settled)
    assert reader.names == []
    catalog.start_reading()
    assert reader.names == ["worker0"]


def test_what_is_still_written_can_be_cancelled(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "run" / "w.1.pt.trace.json")
    path.write_bytes(b"")
    catalog = catalog_of(tmp_path)
    catalog.scan()
    [entry] = catalog.entries()
    catalog.cancel(entry.file.id)
    assert type(state_of(catalog)).__name__ == "Cancelled"


def test_of_a_folder_that_grows_only_what_is_new_is_read(tmp_path: Path) -> None:
    reader = Counting()
    catalog = catalog_of(tmp_path, reader)
    for worker in "abc":
        write_run(tmp_path / "run", worker)
        (tmp_path / "run" / f"{worker}.2.pt.trace.json.partial").touch()
        catalog.scan()
    assert reader.names == ["a", "b", "c"]
    path = write_run(tmp_path / "run", "b") / "b.1700000000000.pt.trace.json.gz"
    os.utime(path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    catalog.scan()
    assert reader.names == ["a", "b", "c", "b"]


def test_what_cannot_be_read_and_does_not_change_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.1.pt.trace.json").write_text("no trace")
    catalog = catalog_of(tmp_path)
    catalog.scan()
    assert isinstance(state_of(catalog), Unreadable)
    assert not catalog.queue()
    assert not isinstance(state_of(catalog), Queued | Summarised)


def test_a_file_that_was_cut_off_very_often_waits_no_longer_than_others() -> None:
    now = FileStamp(size_bytes=1, modified_ns=time.time_ns())
    seconds_until_read = write_detection.seconds_until_read(
        now, time.monotonic(), cut_off_count=10_000
    )
    assert 0 < seconds_until_read <= write_detection.MOST_SETTLED_SECONDS
