"""Log directories are looked through by pages: what was found is there while the look goes on."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from logs import write_run, write_trace
from stepscope import storage
from stepscope.api.app import create_app
from stepscope.base.errors import UnreadableError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Queued, State
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from stepscope.storage import discover
from stepscope.storage.discover import Page
from stepscope.storage.listing import PAGE_COUNT
from waiting import until

LONG_SECONDS = 120


class Never:
    def submit(self, job: Callable[[], None], /) -> None:
        pass


def catalog_of(*folders: Path) -> Catalog:
    return Catalog(
        [LogDirectory(path=str(each)) for each in folders],
        CatalogOptions(executor=Never(), reader=InProcessReader()),
    )


class Slow:
    """A listing that stops behind its first page until it may go on, as a slow server's does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = Event()
        self.error: Exception | None = None
        self._pages = discover.pages
        monkeypatch.setattr(discover, "pages", self._slowly)

    def _slowly(self, root: str, prefix: str = "") -> Iterator[Page]:
        for page in self._pages(root, prefix):
            yield page
            assert self.may_go_on.wait(LONG_SECONDS)
            if self.error is not None:
                raise self.error


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    made = Slow(monkeypatch)
    yield made
    made.may_go_on.set()


def runs_of(catalog: Catalog) -> list[str]:
    return [entry.file.run for entry in catalog.entries()]


def test_a_folder_of_many_files_comes_in_pages_in_any_order(tmp_path: Path) -> None:
    for number in range(PAGE_COUNT + 10):
        (tmp_path / f"{number}.txt").touch()
    for name in ("b", "a"):
        write_trace(tmp_path / "run" / f"{name}.1.pt.trace.json")
    pages = list(storage.walk(str(tmp_path)))
    assert [len(names) for _, names in pages] == [PAGE_COUNT, 10, 2]
    found = list(discover.pages(str(tmp_path)))
    assert [page.file_count for page in found] == [PAGE_COUNT, 10, 2]
    [*_, last] = found
    assert all(file.listed == storage.stamp(file.path) for file in last.files), "asked once"
    assert [file.worker for file in discover.in_folder(str(tmp_path))] == ["a", "b"]


def test_what_was_found_is_there_while_the_look_goes_on(tmp_path: Path, slow: Slow) -> None:
    for run in ("a", "b"):
        write_run(tmp_path / run)
    (tmp_path / "notes.txt").touch()
    write_trace(tmp_path / "w.1.pt.trace.json")
    catalog = catalog_of(tmp_path)
    catalog.watch()
    until(lambda: catalog.has_traces)
    assert (catalog.is_scanning, catalog.directory_scan.file_count) == (True, 2)
    assert runs_of(catalog) == [tmp_path.name]
    slow.may_go_on.set()
    until(lambda: not catalog.is_scanning)
    assert runs_of(catalog) == [tmp_path.name, "a", "b"]
    assert catalog.directory_scan.file_count == 4
    catalog.close()


def test_a_look_that_was_ended_keeps_what_it_found_until_it_is_asked_for(
    tmp_path: Path, slow: Slow
) -> None:
    write_trace(tmp_path / "w.1.pt.trace.json")
    write_run(tmp_path / "a")
    catalog = catalog_of(tmp_path)
    catalog.watch()
    until(lambda: catalog.has_traces)
    catalog.cancel_scan()
    slow.may_go_on.set()
    until(lambda: not catalog.is_scanning)
    catalog.rescan_soon()
    assert runs_of(catalog) == [tmp_path.name]
    assert catalog.directory_scan.is_cancelled
    catalog.rescan_now()
    until(lambda: len(runs_of(catalog)) == 2)
    assert not catalog.directory_scan.is_cancelled
    catalog.close()


def test_a_directory_that_stops_answering_in_the_middle_is_a_problem_and_keeps_what_was_found(
    tmp_path: Path, slow: Slow
) -> None:
    write_trace(tmp_path / "w.1.pt.trace.json")
    write_run(tmp_path / "a")
    catalog = catalog_of(tmp_path)
    slow.may_go_on.set()
    catalog.scan()
    assert len(runs_of(catalog)) == 2
    slow.error = UnreadableError(str(tmp_path), "The server does not answer.", "Try again.")
    catalog.scan()
    assert len(runs_of(catalog)) == 2
    assert [problem.message for problem in catalog.problems] == ["The server does not answer."]


def test_a_directory_of_which_nobody_tells_why_it_is_empty_costs_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(path: str) -> bool:
        raise UnreadableError(path, "The server does not answer.", "Try again.")

    write_run(tmp_path / "full" / "run")
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(storage, "is_folder", silent)
    catalog = catalog_of(tmp_path / "empty", tmp_path / "full")
    catalog.scan()
    assert runs_of(catalog) == ["run"]
    assert [problem.message for problem in catalog.problems] == ["The server does not answer."]


def test_an_unchanged_folder_leaves_everything_as_it_is(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    catalog = catalog_of(tmp_path)
    catalog.scan()
    before, standing = catalog.entries(), catalog.state_key()
    catalog.scan()
    assert all(old is new for old, new in zip(before, catalog.entries(), strict=True))
    assert catalog.state_key() == standing


def test_the_page_can_end_a_look_and_begin_it_again(tmp_path: Path) -> None:
    catalog = catalog_of(tmp_path)
    client = create_app(catalog).test_client()
    own = {"X-Stepscope": "page"}
    assert client.post("/api/listing/cancel").status_code == 403
    for what, is_cancelled in (("cancel", True), ("read", False)):
        said = client.post(f"/api/listing/{what}", headers=own).json
        assert said is not None
        assert said["is_cancelled"] is catalog.directory_scan.is_cancelled is is_cancelled


def states(catalog: Catalog) -> list[State]:
    return [entry.state for entry in catalog.entries()]


def test_a_file_that_goes_between_the_look_and_the_reading_costs_itself(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    jobs: list[Callable[[], None]] = []

    class Later:
        def submit(self, job: Callable[[], None], /) -> None:
            jobs.append(job)

    catalog = Catalog(
        [LogDirectory(path=str(tmp_path))],
        CatalogOptions(executor=Later(), reader=InProcessReader()),
    )
    catalog.scan()
    assert states(catalog) == [Queued(), Queued()]
    (tmp_path / "run" / "a.1700000000000.pt.trace.json.gz").unlink()
    catalog.start_reading()
    for job in jobs:
        job()
    assert [type(state).__name__ for state in states(catalog)] == ["Unreadable", "Ready"]
    catalog.scan()
    assert [entry.file.worker for entry in catalog.entries()] == ["b"]


def write_scalar(folder: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event as Written
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    value = Summary.Value(tag="loss", simple_value=0.5)
    writer.add_event(Written(step=1, wall_time=1.0, summary=Summary(value=[value])))
    writer.close()


def asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=LONG_SECONDS) as answer:  # noqa: S310
        return json.load(answer)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_tensorboard_and_its_tabs_do_not_wait_for_a_look_that_takes_long(
    tmp_path: Path, slow: Slow
) -> None:
    from tensorboard import program
    from tensorboard.plugins.core.core_plugin import CorePluginLoader
    from tensorboard.plugins.scalar.scalars_plugin import ScalarsPlugin

    from stepscope.tensorboard import StepscopeLoader

    write_scalar(tmp_path)
    write_trace(tmp_path / "w.1.pt.trace.json")
    write_run(tmp_path / "later")
    board = program.TensorBoard([CorePluginLoader(), ScalarsPlugin, StepscopeLoader()])
    board.configure(("", "--logdir", str(tmp_path), "--port", "0", "--load_fast", "false"))
    address = board.launch().rstrip("/")
    runs = f"{address}/data/plugin/stepscope/api/runs"
    until(lambda: "." in asked(f"{address}/data/plugin/scalars/tags"))
    until(lambda: asked(runs)["runs"])
    assert "loss" in asked(f"{address}/data/plugin/scalars/tags")["."]
    assert asked(f"{address}/data/plugins_listing")["stepscope"]["enabled"]
    during = asked(runs)
    assert (during["scanning"], during["looked_at_count"]) == (True, 2)
    slow.may_go_on.set()
    until(lambda: len(asked(runs)["runs"]) == 2)
