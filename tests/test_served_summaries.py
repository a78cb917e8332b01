"""A run of many recordings is served from their summaries, by this start or the next."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from logs import write_run, write_trace
from stepscope import advice
from stepscope.advice import AdviceSettings
from stepscope.api import catalog_factory
from stepscope.api.app import create_app
from stepscope.api.dispatch import PartCache
from stepscope.api.prefetch import prepare
from stepscope.base import config
from stepscope.base.config import SummarySettings
from stepscope.base.errors import UnreadableError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry, Queued, Ready, Summarised
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.catalog.summary_cache import SummaryCache
from stepscope.catalog.trace_cache import FEW_FILES
from stepscope.model.trace import Trace
from stepscope.readers import memory_size
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import OnProgress, ReadRequest, ReadResult, Stop
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile
from stepscope.summaries.store import Store
from waiting import until

WORKERS = [f"w{number}" for number in range(FEW_FILES + 2)]


class AtOnce:
    """Does what is to be done when it is submitted, unless it is told to wait."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []
        self.waits = False

    def submit(self, job: Callable[[], None], /) -> None:
        if self.waits:
            self.jobs.append(job)
        else:
            job()


class Counting:
    """Reads here, and notes what was wanted of it."""

    def __init__(self) -> None:
        self.orders: list[tuple[str, bool]] = []

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        self.orders.append((order.file.worker, order.returns_trace))
        return InProcessReader().read(order, tell, stop)


class Served:
    """A server on a log folder, with what it had read."""

    def __init__(self, folder: Path, place: Path | None = None, **options: Any) -> None:
        self.reader = Counting()
        self.executor = AtOnce()
        summaries = SummarySettings(location=str(place), least_count=2) if place else None
        self.catalog = Catalog(
            [LogDirectory(path=str(folder))],
            CatalogOptions(
                executor=self.executor,
                reader=self.reader,
                prepare=prepare,
                store=(lambda: Store(summaries, AdviceSettings())) if summaries else None,
                **options,
            ),
        )
        self.catalog.scan()
        self.client: flask.testing.FlaskClient = create_app(self.catalog).test_client()
        self.get("runs")

    def get(self, path: str, status: int = 200) -> Any:
        answer = self.client.get(f"/api/{path}")
        assert answer.status_code == status, answer.text
        return answer.json

    @property
    def run(self) -> str:
        return self.catalog.entries()[0].file.run_id

    @property
    def states(self) -> list[str]:
        return [type(entry.state).__name__ for entry in self.catalog.entries()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("log")
    write_run(made / "run", *WORKERS)
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where summaries are kept from one start to the next."""
    return tmp_path_factory.mktemp("summaries") / "kept"


@pytest.fixture(scope="module")
def first(folder: Path, place: Path) -> Served:
    """A first start, after which summaries are kept."""
    served = Served(folder, place)
    served.catalog.close()
    return served


def asked(served: Served) -> dict[str, Any]:
    """What is said of the run as a whole, by every view of it."""
    run = served.run
    return {
        "advice": served.get(f"runs/{run}/advice"),
        "distributed": served.get(f"distributed?run={run}"),
        "trends": served.get(f"trends?run={run}"),
        "table": served.get(f"runs/{run}/tables/ranks"),
        "comparison": served.get(f"comparison?base_run={run}&run={run}"),
    }


def test_of_a_large_run_one_recording_is_kept_and_of_the_others_the_summaries(
    first: Served,
) -> None:
    assert first.states == ["Ready", *["Summarised"] * (len(WORKERS) - 1)]
    assert [worker for worker, returns_trace in first.reader.orders if returns_trace] == [
        WORKERS[0]
    ]


def test_a_second_start_answers_for_the_run_and_reads_nothing(
    first: Served, folder: Path, place: Path
) -> None:
    second = Served(folder, place)
    assert second.states == ["Summarised"] * len(WORKERS)
    assert asked(second) == asked(first)
    [run] = second.get("runs")["runs"]
    assert (run["state"], len(run["workers"])) == ("ready", len(WORKERS))
    assert second.reader.orders == []


@pytest.mark.usefixtures("first")
def test_the_events_of_one_are_read_when_its_own_views_are_asked_for(
    folder: Path, place: Path
) -> None:
    served = Served(folder, place)
    third = served.catalog.entries()[2]
    served.executor.waits = True
    assert served.get(f"traces/{third.file.id}/overview", 409)["code"] == "still-loading"
    for job in served.executor.jobs:
        job()
    assert served.get(f"traces/{third.file.id}/overview")["worker"] == third.file.worker
    assert served.reader.orders == [(third.file.worker, True)]
    assert served.states.count("Ready") == 1


def test_a_file_that_changed_is_read_and_the_others_are_not(tmp_path: Path) -> None:
    write_run(tmp_path / "log" / "run", "a", "b", "c")
    Served(tmp_path / "log", tmp_path / "kept").catalog.close()
    write_trace(tmp_path / "log" / "run" / "b.1700000000000.pt.trace.json.gz", more="x")
    served = Served(tmp_path / "log", tmp_path / "kept")
    assert [worker for worker, _ in served.reader.orders] == ["b"]
    assert served.states == ["Summarised", "Ready", "Summarised"]


def test_what_was_read_while_the_run_was_small_is_kept_when_it_has_grown(tmp_path: Path) -> None:
    write_run(tmp_path / "log" / "run", "a")
    served = Served(tmp_path / "log", tmp_path / "kept")
    write_run(tmp_path / "log" / "run", "b")
    served.catalog.scan()
    served.catalog.close()
    assert Served(tmp_path / "log", tmp_path / "kept").reader.orders == []


def test_where_nothing_is_kept_from_one_start_to_the_next_memory_holds_it(tmp_path: Path) -> None:
    write_run(tmp_path / "run", *WORKERS)
    served = Served(tmp_path)
    said = asked(served)
    assert len(said["distributed"]["ranks"]) == len(said["table"]["values"]["worker"]) > 1
    assert len(served.reader.orders) == len(WORKERS)


def test_a_cluster_reads_summaries_and_this_machine_what_is_looked_at(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    cluster = Counting()
    served = Served(tmp_path, summary_reader=cluster, summary_jobs=1)

    until(lambda: served.states == ["Summarised", "Summarised"])
    assert sorted(cluster.orders) == [("a", False), ("b", False)]
    identity = served.catalog.entries()[1].file.id
    served.catalog.file(identity)
    assert served.reader.orders == [("b", True)]


class Down(Counting):
    """A cluster that is not there at first."""

    is_down = True

    def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
        if self.is_down:
            raise UnreadableError(order.file.path, "The cluster is lost.", "Start it.")
        return super().read(order, tell, stop)


def test_a_run_that_is_read_again_is_read_as_a_run_is(tmp_path: Path) -> None:
    """By its summaries: nobody has asked for the events of each of its files."""
    write_run(tmp_path / "run", "a", "b")
    cluster = Down()
    served = Served(tmp_path, summary_reader=cluster, summary_jobs=1)
    until(lambda: served.states == ["Unreadable", "Unreadable"])
    cluster.is_down = False
    served.catalog.read_run_again(served.run)
    until(lambda: served.states == ["Summarised", "Summarised"])
    assert (sorted(cluster.orders), served.reader.orders) == ([("a", False), ("b", False)], [])


def test_the_advice_is_merged_once_for_what_is_known(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(folder)
    merges: list[int] = []
    merged = advice.run_report

    def counted(name: str, recordings: Any, *rest: Any, **more: Any) -> Any:
        merges.append(len(recordings))
        return merged(name, recordings, *rest, **more)

    monkeypatch.setattr("stepscope.api.run_advice.run_report", counted)
    whole = served.get(f"runs/{served.run}/advice")
    traces = [worker["trace"] for worker in whole["workers"]]
    for trace in traces[:3]:
        part = served.get(f"runs/{served.run}/advice?trace={trace}")
        assert [worker["trace"] for worker in part["workers"]] == [trace]
        assert {each["trace"] for each in part["outcomes"]} <= {"", trace}
        assert part["merged"] == whole["merged"]
    assert merges == [len(WORKERS)]
    assert served.get(f"runs/{served.run}/advice?trace=x", 404)["code"] == "not-found"


def test_the_list_is_not_made_again_for_who_holds_it(
    first: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = first.client.get("/api/runs")
    monkeypatch.setattr("stepscope.api.run_listing.runs", None)
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert first.client.get("/api/runs", headers=tag).status_code == 304


def test_what_recordings_said_is_bounded_by_its_size(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b", "c")
    served = Served(tmp_path)
    entries = served.catalog.entries()
    assert all(isinstance(entry.state, Ready | Summarised) for entry in entries)

    def said(trace: Trace) -> str:
        return trace.worker * 1000

    one = memory_size.size_bytes("a" * 1000)
    parts = PartCache(2 * one)
    for entry in entries:
        assert parts.of(entry, said) == (entry.file.worker * 1000,)
    assert parts.bytes == 2 * one


def test_without_pyarrow_summaries_are_off_which_is_said_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(config, "find_spec", lambda _: None)
    monkeypatch.setattr(catalog_factory, "find_spec", lambda _: None)
    for worker in ("a", "b"):
        write_trace(tmp_path / "run" / f"{worker}.1.pt.trace.json")
    with caplog.at_level("INFO", logger="stepscope"):
        directories = [LogDirectory(path=str(tmp_path))]
        catalog = catalog_factory.catalog_for(directories, config.settings({}), None, None)
        catalog.scan()
        catalog.start_reading()
        until(lambda: all(isinstance(entry.state, Ready) for entry in catalog.entries()))
        catalog.close()
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("INFO", catalog_factory.MISSING)
    ]
    assert "pip install 'stepscope[cache]'" in catalog_factory.MISSING


@pytest.mark.parametrize("error", [ImportError("numpy is too old"), OSError("no folder")])
def test_a_store_that_cannot_be_opened_is_said_once(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    def broken() -> Store:
        raise error

    cache = SummaryCache(broken, lambda _: 100)
    file = TraceFile(id="1", path="/log/a/w.pt.trace.json", run="a", worker="w", span="")
    entry = Entry(file=file, stamp=FileStamp(size_bytes=1, modified_ns=1), state=Queued())
    for _ in range(3):
        assert cache.find([entry]) == {}
    [warning] = caplog.messages
    assert "summaries are not stored" in warning
    assert not cache.is_enabled


@pytest.mark.parametrize("option", ["0", "off"])
def test_turned_off_no_store_is_opened(option: str) -> None:
    settings = config.settings({}, summaries=option)
    catalog = catalog_factory.catalog_for([], settings, None, None)
    assert not catalog._queue.summaries.is_enabled  # noqa: SLF001
