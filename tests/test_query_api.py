"""SQL queries of the page: over a trace or a run, bounded, with errors that say what to do."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from logs import ROWS, write_run, write_trace
from stepscope.api import table_queries
from stepscope.api.app import create_app
from stepscope.api.endpoints import queries
from stepscope.api.table_queries import MOST_ROWS
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.queries import statement
from stepscope.queries.examples import EXAMPLES
from stepscope.readers.pool import InProcessReader
from stepscope.readers.tasks import summarise
from stepscope.render.table_export import schema_of
from stepscope.tables import all_tables

OUR_PAGE = {"X-Stepscope": "page"}


class _AtOnce:
    def submit(self, job: Callable[[], None], /) -> None:
        job()


class _Page:
    """Requests of the page about one run."""

    def __init__(self, client: flask.testing.FlaskClient, catalog: Catalog) -> None:
        self.catalog = catalog
        self.client = client
        [run] = client.get("/api/runs").get_json()["runs"]
        self.run = run["id"]
        self.traces = [worker["spans"][0]["trace"] for worker in run["workers"]]

    def query(self, sql: str, **parameters: Any) -> Any:
        sent = {"sql": sql, **parameters}
        path = f"/api/runs/{self.run}/query"
        return self.client.get(path, query_string=sent, headers=OUR_PAGE).get_json()


@pytest.fixture
def page(tmp_path: Path) -> _Page:
    write_run(tmp_path / "log", "a", "b")
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path / "log"))],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader(), prepare=summarise),
    )
    catalog.scan()
    catalog.start_reading()
    return _Page(create_app(catalog).test_client(), catalog)


def test_a_query_reads_a_trace_or_all_of_its_run(page: _Page) -> None:
    sql = "select worker, name, total_ns, total_ns / 1e6 as ms from kernels order by worker"
    of_run = page.query(sql)
    assert of_run["values"] == {
        "worker": ["a", "b"],
        "name": ["gemm", "gemm"],
        "total_ns": [16_000_000] * 2,
        "ms": [16.0] * 2,
    }
    assert [(each["key"], each["unit"]) for each in of_run["columns"]] == [
        ("worker", "text"),
        ("name", "text"),
        ("total_ns", "ns"),
        ("ms", "count"),
    ]
    assert (of_run["row_count"], of_run["all_row_count"], of_run["notes"]) == (2, None, [])
    assert page.query(sql, trace=page.traces[1])["values"]["worker"] == ["b"]


def test_tables_of_a_run_are_of_all_its_traces(page: _Page) -> None:
    of_trace = page.query("select worker from ranks order by 1", trace=page.traces[0])
    assert of_trace["values"] == {"worker": ["a", "b"]}


def test_a_query_is_of_a_time_range(page: _Page) -> None:
    sql = "select start_ns from kernel_events"
    inside = page.query(sql, trace=page.traces[0], start_ns=10_000_000, end_ns=20_000_000)
    assert inside["values"] == {"start_ns": [10_200_000]}


def test_units_follow_from_tables_and_names(page: _Page) -> None:
    sql = (
        "select event, grid, event * 2 as twice, max(duration_ns) over () as longest_ns,"
        " 3 as x_bytes, 0.5 as busy_share, 1.0 as bus_bytes_per_second, true as yes,"
        " null as unknown from kernel_events limit 1"
    )
    response = page.query(sql, trace=page.traces[0])
    units = {each["key"]: each["unit"] for each in response["columns"]}
    assert units == {
        "event": "text",
        "grid": "code",
        "twice": "count",
        "longest_ns": "ns",
        "x_bytes": "bytes",
        "busy_share": "share",
        "bus_bytes_per_second": "bytes/s",
        "yes": "text",
        "unknown": "text",
    }
    assert response["values"]["yes"] == ["yes"]
    assert response["values"]["unknown"] == [None]


def test_the_rows_are_bounded_and_counted(page: _Page) -> None:
    response = page.query("from range(12345)")
    assert (response["row_count"], response["all_row_count"]) == (MOST_ROWS, 12_345)
    assert len(response["values"]["range"]) == MOST_ROWS
    assert response["is_counted"]
    assert not page.query("from range(100000000)")["is_counted"]


def test_no_rows_are_no_error(page: _Page) -> None:
    response = page.query("select name from kernels where false", trace=page.traces[0])
    assert (response["row_count"], response["values"]) == (0, {"name": []})


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("selec 1", "LINE 1: selec 1"),
        ("select nme from kernels", 'Candidate bindings: "name"'),
        ("from kernal_events", "Did you mean kernel_events"),
        ("copy kernels to 'x'", "one statement that reads"),
        ("select * from read_text('/etc/passwd')", "disabled by configuration"),
        ("select len(range(400000000))", "of memory"),
    ],
)
def test_a_query_that_cannot_run_says_why(page: _Page, sql: str, words: str) -> None:
    refusal = page.query(sql, trace=page.traces[0])
    assert refusal["code"] == "bad-query"
    assert words in refusal["message"]


def test_a_bad_query_is_no_error_of_the_pages_console(page: _Page) -> None:
    path = f"/api/runs/{page.run}/query?sql=selec"
    assert page.client.get(path).status_code == 400
    shown = page.client.get(path, headers=OUR_PAGE)
    assert (shown.status_code, shown.headers["X-Stepscope-Status"]) == (200, "400")


def test_other_parameters_are_checked(page: _Page) -> None:
    assert page.query("select 1", trace="nothing")["code"] == "bad-request"
    assert page.query("x" * 10_001)["code"] == "bad-request"
    path = "/api/runs/nothing/query?sql=select+1"
    assert page.client.get(path).status_code == 404


def test_a_slow_query_is_ended(page: _Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_queries, "MOST_SECONDS", 1)
    refusal = page.query("select count(*) from range(1000000000000) where hash(range) = 1")
    assert refusal["message"] == "the query took longer than 1 s"


def test_a_query_is_a_long_response() -> None:
    """Of which one is computed at a time."""
    lanes = {endpoint.path: endpoint.lane for endpoint in queries.ENDPOINTS}
    assert lanes["runs/<run>/query"] == "long"


def test_data_that_was_not_recorded_comes_with_the_line_that_records_it(page: _Page) -> None:
    refusal = page.query("from modules", trace=page.traces[0])
    assert (refusal["code"], refusal["message"][:9]) == ("not-recorded", "modules: ")
    assert "with_stack=True" in refusal["hint"]


def test_traces_without_the_data_are_named(page: _Page, tmp_path: Path) -> None:
    rows = (*ROWS, ["python_function", "nn.Module: Linear_0", 100, 50, {"Python id": 1}])
    write_trace(tmp_path / "log" / "c.1700000000000.pt.trace.json", rows)
    page.catalog.scan()
    response = page.query("select distinct worker from modules")
    assert response["values"] == {"worker": ["c"]}
    [note] = response["notes"]
    assert note.startswith("modules: withheld for")
    assert "and 1 more" in note


def test_traces_whose_events_were_released_are_named(page: _Page) -> None:
    page.catalog.release_memory(2**62)
    response = page.query("select distinct worker from steps")
    assert response["values"] == {"worker": ["a"]}
    assert response["notes"] == [
        "The events of 1 of 2 traces are not in memory: their rows are missing. "
        "`stepscope query` reads all traces."
    ]
    assert page.query("select worker from ranks order by 1")["values"] == {"worker": ["a", "b"]}


def test_the_names_of_queries_are_listed(page: _Page) -> None:
    names = page.client.get("/api/query-tables").get_json()
    assert names["is_available"]
    columns = {
        table["name"]: [each["name"].strip('"') for each in table["columns"]]
        for table in names["tables"]
    }
    assert columns == {
        statement.sql_name(name): [column.name for column in schema_of(table)]
        for name, table in all_tables().items()
    }
    assert [each["sql"] for each in names["examples"]] == [example.sql for example in EXAMPLES]


def test_without_duckdb_it_is_said_how_to_install_it(
    page: _Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statement, "find_spec", lambda _: None)
    names = page.client.get("/api/query-tables").get_json()
    assert (names["is_available"], names["install"]) == (False, 'pip install "stepscope[sql]"')
    refusal = page.query("select 1")
    assert refusal["code"] == "bad-query"
    assert names["install"] in refusal["message"]
