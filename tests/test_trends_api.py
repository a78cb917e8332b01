"""What the API says of figures from span to span, and from run to run."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import flask.testing
import msgspec
import pytest

import stepscope
from logs import ROWS, write_long_ago, write_trace
from stepscope.api.app import create_app
from stepscope.api.endpoints.trends import TraceTrend, TrendPoint, Trends, points
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.comparison.trends import FIGURES, Trend, trend
from stepscope.readers.pool import InProcessReader


class InTurn:
    """Does one job when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], /) -> None:
        self.jobs.append(job)

    def work(self) -> None:
        while self.jobs:
            self.jobs.pop(0)()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two runs of one folder, the second recorded first; one elsewhere; one that is broken."""
    folder = tmp_path / "log"
    for worker, time in (("a", 1700000060000), ("b", 1700000060001), ("a", 1700000120000)):
        write_trace(folder / "same" / "late" / f"{worker}.{time}.pt.trace.json", ROWS)
    write_trace(folder / "same" / "early" / "a.1700000000000.pt.trace.json", ROWS)
    write_trace(folder / "elsewhere" / "run" / "a.1700000200000.pt.trace.json", ROWS)
    write_long_ago(folder / "same" / "broken" / "a.1700000300000.pt.trace.json")
    return folder


@pytest.fixture
def turns() -> InTurn:
    return InTurn()


@pytest.fixture
def client(log: Path, turns: InTurn) -> flask.testing.FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(log))], CatalogOptions(executor=turns, reader=InProcessReader())
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def run_id(client: flask.testing.FlaskClient, name: str) -> str:
    runs = json.loads(client.get("/api/runs").data)["runs"]
    return str(next(run["id"] for run in runs if run["name"] == name))


def followed(client: flask.testing.FlaskClient, run: str, **query: str) -> Trends:
    response = client.get("/api/trends", query_string={"run": run_id(client, run), **query})
    assert response.status_code == 200, response.data
    return msgspec.json.decode(response.data, type=Trends)


def places(found: Trends) -> list[tuple[str, int, int]]:
    return [(each.run_name, each.span, len(each.traces)) for each in found.points]


def test_the_spans_of_a_run_are_means_over_its_workers(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    assert places(followed(client, "same/late")) == [("same/late", 1, 2), ("same/late", 2, 1)]
    of_b = followed(client, "same/late", worker="b")
    assert places(of_b) == [("same/late", 1, 1)]


def test_runs_come_in_the_order_in_which_they_were_recorded_and_broken_ones_are_counted(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = followed(client, "same/late", scope="folder")
    assert places(found) == [("same/early", 1, 1), ("same/late", 1, 2), ("same/late", 2, 1)]
    assert found.unreadable_count == 1
    everywhere = followed(client, "same/early", scope="all")
    assert [each.run_name for each in everywhere.points][-1] == "elsewhere/run"


def test_where_there_are_more_the_latest_are_followed(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = followed(client, "same/late", scope="all", most="2")
    assert places(found) == [("elsewhere/run", 1, 1)]
    assert found.unreadable_count == 1


def test_a_point_says_what_the_library_says(
    client: flask.testing.FlaskClient, turns: InTurn, log: Path
) -> None:
    turns.work()
    [point] = followed(client, "same/early").points
    [trace] = stepscope.load(log / "same" / "early").workers
    told = trend(trace)
    for name, value in told.figures.items():
        assert point.figures[name] == (None if math.isnan(value) else value)
    assert point.recoverable_shares == told.recoverable_share
    assert sum(point.severity_counts.values()) == point.finding_count == told.finding_count


def test_what_is_read_is_shown_before_the_rest_is_there(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    response = client.get(
        "/api/trends", query_string={"run": run_id(client, "same/late"), "scope": "all"}
    )
    assert (response.status_code, json.loads(response.data)["code"]) == (409, "still-loading")
    for _ in range(2):
        turns.jobs.pop(0)()
    found = followed(client, "same/late", scope="all")
    read_count = sum(len(each.traces) for each in found.points) + found.unreadable_count
    assert (read_count, found.waiting_count) == (2, 4)


def test_only_an_answer_that_waits_for_nothing_is_kept_by_the_client(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    path = "/api/trends?scope=all&run=" + run_id(client, "same/late")
    client.get(path)
    turns.jobs.pop(0)()
    early = client.get(path)
    turns.work()
    late = client.get(path)
    kept = [(each.headers["Cache-Control"], "ETag" in each.headers) for each in (early, late)]
    assert kept == [("no-store", False), ("no-cache", True)]


def test_an_unknown_worker_and_an_unknown_scope_are_refused(
    client: flask.testing.FlaskClient,
) -> None:
    run = run_id(client, "same/late")
    unknown = client.get("/api/trends", query_string={"run": run, "worker": "nobody"})
    assert (unknown.status_code, "nobody" in str(unknown.data)) == (404, True)
    other = client.get("/api/trends", query_string={"run": run, "scope": "galaxy"})
    assert other.status_code == 400


def told(step_ns: float, peak_bytes: float, shares: dict[str, float]) -> Trend:
    nothing = {column.name: float("nan") for column in FIGURES}
    return Trend(
        worker="w",
        span=1,
        rank=None,
        step_count=3,
        finding_count=len(shares),
        figures={**nothing, "step_ns": step_ns, "memory_peak_bytes": peak_bytes},
        recoverable_share=shares,
        severities=dict.fromkeys(shares, "warning"),
    )


def test_a_point_is_the_mean_of_what_is_known_and_the_largest_peak() -> None:
    nan = float("nan")
    parts = [
        TraceTrend(trace="x", trend=told(10.0, 5.0, {"slow": 0.2})),
        TraceTrend(trace="y", trend=told(30.0, 9.0, {})),
        TraceTrend(trace="z", trend=told(nan, nan, {})),
    ]
    [point] = points("r", "run", parts)
    assert isinstance(point, TrendPoint)
    assert (point.figures["step_ns"], point.figures["memory_peak_bytes"]) == (20.0, 9.0)
    assert (point.least_step_ns, point.most_step_ns) == (10.0, 30.0)
    assert point.figures["busy_share"] is None
    assert point.recoverable_shares == {"slow": pytest.approx(0.2 / 3)}
    assert point.step_count == 9
    assert (point.finding_count, point.severity_counts) == (
        1,
        {"critical": 0, "warning": 1, "info": 0},
    )


def test_a_finding_of_several_workers_counts_once_as_the_most_serious() -> None:
    serious = replace(told(10.0, 5.0, {}), severities={"slow": "critical", "rare": "info"})
    parts = [
        TraceTrend(trace="x", trend=told(10.0, 5.0, {"slow": 0.2})),
        TraceTrend(trace="y", trend=serious),
    ]
    [point] = points("r", "run", parts)
    assert (point.finding_count, point.severity_counts) == (
        2,
        {"critical": 1, "warning": 0, "info": 1},
    )
