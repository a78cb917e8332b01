"""What the API answers, and that it always answers in JSON."""

import gzip
import json
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask.testing
import msgspec
import pytest

import stepscope
from logs import EVENT_COUNT, write_long_ago, write_run, write_trace
from stepscope.advice import AdviceSettings, advise
from stepscope.advice.settings import Changes
from stepscope.api import allowed_hosts, run_listing
from stepscope.api.app import create_app
from stepscope.api.encoding import CONTENT_POLICY
from stepscope.api.endpoint import Query, TraceEndpoint
from stepscope.api.endpoints import overview as overview_endpoint
from stepscope.api.messages import Overview, Progress, Runs, RunState, Table
from stepscope.api.openapi import response_schemas
from stepscope.api.prefetch import prepare
from stepscope.base.config import Settings
from stepscope.base.report import RunReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.trace import Trace
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import OnProgress, ReadProgress, ReadRequest, ReadResult, Stop
from stepscope.storage import discover


class AtOnce:
    def submit(self, job: Callable[[], None], /) -> None:
        job()


class Never:
    def submit(self, job: Callable[[], None], /) -> None:
        pass


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A good run of two workers, a run with a bad file beside a good one, and a bad run."""
    folder = tmp_path / "log"
    write_run(folder / "good", "a", "b")
    write_run(folder / "half")
    (folder / "half" / "z.1.pt.trace.json").write_text("{}")
    write_long_ago(folder / "bad" / "w.1.pt.trace.json")
    return folder


def catalog_of(folder: Path, executor: Any = None, **options: Any) -> Catalog:
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(executor=executor or AtOnce(), reader=InProcessReader(), **options),
    )
    catalog.scan()
    return catalog


def client_of(folder: Path, executor: Any = None, **options: Any) -> flask.testing.FlaskClient:
    catalog = catalog_of(folder, executor)
    if executor is None:
        catalog.start_reading()
    return create_app(catalog, **options).test_client()


def overview_by(ask: Callable[[Trace, Query], Overview]) -> TraceEndpoint[Query]:
    return TraceEndpoint(path="overview", meaning="Overview.", response=Overview, handler=ask)


@pytest.fixture
def client(log: Path) -> flask.testing.FlaskClient:
    return client_of(log)


def runs_of(client: flask.testing.FlaskClient) -> Runs:
    return msgspec.json.decode(client.get("/api/runs").data, type=Runs)


def trace_of(client: flask.testing.FlaskClient, run: str, place: int = 0) -> str:
    [found] = [each for each in runs_of(client).runs if each.name == run]
    return [span for worker in found.workers for span in worker.spans][place].trace


def test_the_list_says_what_was_found_and_how_far_reading_has_come(
    client: flask.testing.FlaskClient, log: Path
) -> None:
    runs = runs_of(client)
    assert (runs.logdir, runs.scanning, runs.loading) == (str(log), False, False)
    assert {run.name: run.state for run in runs.runs} == {
        "bad": "unreadable",
        "good": "ready",
        "half": "ready",
    }
    bad = runs.runs[0].workers[0].spans[0]
    assert bad.problem is not None
    assert bad.problem.message == "The file is empty."
    assert [worker.name for worker in runs.runs[1].workers] == ["a", "b"]


def test_a_folder_without_a_trace_says_what_was_looked_for(tmp_path: Path) -> None:
    runs = runs_of(client_of(tmp_path))
    assert runs.runs == ()
    assert "pt.trace.json" in runs.looked_for


def test_the_first_look_at_the_list_begins_the_reading(log: Path) -> None:
    catalog = catalog_of(log)
    client = create_app(catalog).test_client()
    assert {entry.state.__class__.__name__ for entry in catalog.entries()} == {"Queued"}
    assert not runs_of(client).loading


def test_advice_is_a_run_report_of_all_files_that_can_be_read(
    client: flask.testing.FlaskClient, log: Path
) -> None:
    for run, workers in (("good", ["a", "b"]), ("half", ["worker0"])):
        response = client.get(f"/api/runs/{discover.run_identifier(str(log / run))}/advice")
        report = msgspec.json.decode(response.data, type=RunReport)
        assert report.name == run
        assert [worker.name for worker in report.workers] == workers
        assert not [outcome for outcome in report.outcomes if outcome.status == "failed"]


def test_advice_is_by_the_servers_settings_also_where_reading_prepared_none(log: Path) -> None:
    catalog = catalog_of(log, advice=AdviceSettings(changes=Changes(ignore=("all",))))
    catalog.start_reading()
    path = f"/api/runs/{discover.run_identifier(str(log / 'good'))}/advice"
    said = create_app(catalog).test_client().get(path)
    assert msgspec.json.decode(said.data, type=RunReport).outcomes == ()
    assert msgspec.json.decode(client_of(log).get(path).data, type=RunReport).outcomes != ()


def test_runs_of_one_name_are_two(tmp_path: Path) -> None:
    write_run(tmp_path / "log", "outer")
    write_run(tmp_path / "log" / "log", "inner")
    client = client_of(tmp_path / "log")
    runs = runs_of(client).runs
    assert [run.name for run in runs] == [str(tmp_path / "log"), str(tmp_path / "log" / "log")]
    for run, worker in zip(runs, ("outer", "inner"), strict=True):
        report = msgspec.json.decode(client.get(f"/api/runs/{run.id}/advice").data, type=RunReport)
        assert (report.name, [each.name for each in report.workers]) == (run.name, [worker])


def test_advice_of_a_run_beyond_the_bound_is_of_all_its_files(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b", "c")
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path))],
        CatalogOptions(
            settings=Settings(memory_bytes=1),
            reader=InProcessReader(),
            executor=AtOnce(),
            prepare=prepare,
        ),
    )
    catalog.scan()
    client = create_app(catalog).test_client()
    [run] = runs_of(client).runs
    advice = client.get(f"/api/runs/{run.id}/advice")
    report = msgspec.json.decode(advice.data, type=RunReport)
    assert [worker.name for worker in report.workers] == ["a", "b", "c"]
    [again] = runs_of(client).runs
    assert again.workers == run.workers, "nothing is read again for it"
    assert report == advise(stepscope.load(tmp_path))


def test_a_synthetic_run_is_told_as_such_once_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "run" / "w.1.pt.trace.json"
    write_trace(path, stepscope={"synthetic": True})
    catalog = catalog_of(tmp_path)
    assert not run_listing.runs(catalog).runs[0].synthetic
    catalog.start_reading()
    assert run_listing.runs(catalog).runs[0].synthetic


def test_the_overview_adds_up_and_its_short_lists_are_the_tables_own(
    client: flask.testing.FlaskClient,
) -> None:
    trace = trace_of(client, "good")
    overview = msgspec.json.decode(client.get(f"/api/traces/{trace}/overview").data, type=Overview)
    assert overview.trace == trace
    assert overview.step.count == len(overview.steps) == 4
    for step in overview.steps:
        assert sum(step.parts_ns) == step.duration_ns
    assert [category.id for category in overview.categories] == list(overview.step.breakdown_ns)
    assert sum(cause.idle_ns for cause in overview.idle) > 0
    assert [row.name for row in overview.top_kernels] == ["gemm"]
    assert overview.top_kernels[0].value == 16_000_000
    assert [row.name for row in overview.top_operators] == ["aten::mm"]
    assert overview.longest_gaps[0].value == 6_000_000
    assert overview.longest_gaps[0].search == "aten::mm"


@pytest.mark.parametrize("table", ["operators", "kernels"])
def test_tables_come_in_every_grouping_that_they_name(
    client: flask.testing.FlaskClient, table: str
) -> None:
    trace = trace_of(client, "good")
    plain = msgspec.json.decode(client.get(f"/api/traces/{trace}/{table}").data, type=Table)
    for group in plain.groups:
        response = client.get(f"/api/traces/{trace}/{table}?group={group}")
        if group in {"stack", "module"}:  # this recording has no Python functions
            assert response.get_json()["code"] == "not-recorded"
            assert "with_stack=True" in response.get_json()["hint"]
            continue
        answer = msgspec.json.decode(response.data, type=Table)
        assert answer.group == group
        assert answer.row_count > 0
        assert {len(answer.values[column.key]) for column in answer.columns} == {answer.row_count}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/api/runs/nope/advice", 404, "not-found"),
        ("/api/traces/nope/overview", 404, "not-found"),
        ("/api/traces/../../etc/passwd/overview", 404, "not-found"),
        ("/api/traces/{good}/operators?group=nope", 404, "not-found"),
        ("/api/traces/{bad}/overview", 422, "unreadable"),
        ("/api/runs/{bad_run}/advice", 422, "unreadable"),
        ("/api/nope", 404, "not-found"),
        ("/assets/../app.py", 404, "not-found"),
        ("/%2e%2e/__init__.py", 404, "not-found"),
        pytest.param(f"/{'a' * 5000}.js", 404, "not-found", id="a name too long for a file"),
    ],
)
def test_refusals_are_json(
    client: flask.testing.FlaskClient, log: Path, path: str, status: int, code: str
) -> None:
    names = {
        "good": trace_of(client, "good"),
        "bad": trace_of(client, "bad"),
        "bad_run": discover.run_identifier(str(log / "bad")),
    }
    response = client.get(path.format(**names))
    assert response.status_code == status
    assert response.json is not None
    assert response.json["code"] == code
    assert response.json["message"]


def test_only_get_is_answered(client: flask.testing.FlaskClient) -> None:
    for method in (client.post, client.put, client.delete):
        response = method("/api/runs")
        assert response.status_code == 405
        assert response.json is not None


def test_what_is_still_read_is_asked_for_again(log: Path) -> None:
    client = client_of(log, Never())
    [run] = [run for run in runs_of(client).runs if run.name == "good"]
    assert run.state == "queued"
    trace = run.workers[0].spans[0].trace
    for path in (f"/api/traces/{trace}/kernels", f"/api/runs/{run.id}/advice"):
        response = client.get(path)
        assert response.status_code == 409
        assert response.json is not None
        assert response.json["code"] == "still-loading"


def test_our_own_page_gets_everyday_refusals_without_an_error_in_its_console(log: Path) -> None:
    client = client_of(log, executor=Never())
    path = f"/api/traces/{runs_of(client).runs[0].workers[0].spans[0].trace}/kernels"
    plain, ours = client.get(path), client.get(path, headers={"X-Stepscope": "page"})
    assert (plain.status_code, plain.headers.get("X-Stepscope-Status")) == (409, None)
    assert (ours.status_code, ours.headers.get("X-Stepscope-Status")) == (200, "409")
    assert ours.data == plain.data
    unknown = client.get("/api/traces/none/kernels", headers={"X-Stepscope": "page"})
    assert unknown.status_code == 404, "which is nothing of every day"


def test_a_bug_is_logged_and_answered_without_a_traceback(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(trace: Trace, _: Query) -> Overview:
        raise ZeroDivisionError(trace.path)

    client = client_of(log, endpoints=[overview_by(fail)])
    with caplog.at_level(logging.ERROR):
        response = client.get(f"/api/traces/{trace_of(client, 'good')}/overview")
    assert response.status_code == 500
    assert response.json is not None
    assert response.json["code"] == "failed"
    assert str(log) not in response.text
    assert "Traceback" not in response.text
    assert "ZeroDivisionError" in caplog.text
    assert "Traceback" not in caplog.text


def test_an_answer_that_the_client_holds_is_not_worked_out_again(log: Path) -> None:
    asked: list[str] = []

    def overview(trace: Trace, _: Query) -> Overview:
        asked.append(trace.id)
        return overview_endpoint.overview(trace)

    client = client_of(log, endpoints=[overview_by(overview)])
    path = f"/api/traces/{trace_of(client, 'good')}/overview"
    first = client.get(path)
    again = client.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert (first.status_code, again.status_code, again.data) == (200, 304, b"")
    assert again.headers["Content-Type"] == "application/json", "or TensorBoard logs a warning"
    assert again.headers["X-Content-Type-Options"] == "nosniff"
    assert len(asked) == 1


def test_what_another_server_said_is_worked_out_again(log: Path) -> None:
    before, now = client_of(log), client_of(log)  # with other settings of advice, for one
    for path in (
        f"traces/{trace_of(now, 'good')}/overview",
        f"runs/{discover.run_identifier(str(log / 'good'))}/advice",
    ):
        held = before.get(f"/api/{path}").headers["ETag"]
        assert now.get(f"/api/{path}", headers={"If-None-Match": held}).status_code == 200


def test_a_changed_file_has_another_entity_tag(log: Path) -> None:
    catalog = catalog_of(log)
    catalog.start_reading()
    client = create_app(catalog).test_client()
    trace = trace_of(client, "half")
    before = client.get(f"/api/traces/{trace}/kernels").headers["ETag"]
    write_trace(log / "half" / "worker0.1700000000000.pt.trace.json.gz", displayTimeUnit="ms")
    catalog.scan()
    assert client.get(f"/api/traces/{trace}/kernels").headers["ETag"] != before


def test_long_answers_are_compressed_for_those_who_ask(client: flask.testing.FlaskClient) -> None:
    plain = client.get("/api/schema")
    packed = client.get("/api/schema", headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.data) == plain.data
    assert len(packed.data) < len(plain.data) / 2


def test_every_answer_forbids_guessing_its_type(client: flask.testing.FlaskClient) -> None:
    for path in ("/api/runs", "/api/nope", "/index.html", "/index.js", "/"):
        headers = client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", path
        assert headers["Referrer-Policy"] == "no-referrer", path


def test_the_page_has_its_policy_and_its_assets_are_kept(tmp_path: Path) -> None:
    static = tmp_path / "static"
    (static / "assets").mkdir(parents=True)
    (static / "index.html").write_text("<!doctype html>")
    (static / "assets" / "app-1a2b.js").write_text("1")
    (static / "assets" / "secret.pem").write_text("1")
    client = client_of(tmp_path, static=static)
    page = client.get("/index.html")
    assert page.headers["Content-Security-Policy"] == CONTENT_POLICY
    assert page.headers["Cache-Control"] == "no-cache"
    asset = client.get("/assets/app-1a2b.js")
    assert asset.mimetype == "text/javascript"
    assert "immutable" in asset.headers["Cache-Control"]
    assert client.get("/assets/secret.pem").status_code == 404
    assert client.get("/").headers["Location"] == "index.html"


def test_the_policy_holds_nothing_that_tensorboard_warns_of() -> None:
    allowed = {"'self'", "'none'", "data:", "blob:", "'unsafe-inline'"}
    for directive in CONTENT_POLICY.split(";"):
        name, *sources = directive.split()
        assert set(sources) <= allowed
        assert "'unsafe-inline'" not in sources or name == "style-src"


def test_an_unbuilt_page_says_how_to_build_it(tmp_path: Path) -> None:
    client = client_of(tmp_path, static=tmp_path / "none")
    page = client.get("/index.html")
    assert page.status_code == 200
    assert "make demo" in page.text
    assert "<script" not in page.text
    entry = client.get("/index.js")
    assert entry.mimetype == "text/javascript"
    assert "export function render" in entry.text


@pytest.mark.parametrize(
    ("bound", "host", "is_answered"),
    [
        ("127.0.0.1", "localhost:6007", True),
        ("127.0.0.1", "127.0.0.1:6007", True),
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "[::1]:6007", True),
        ("127.0.0.1", "evil.example", False),
        ("127.0.0.1", "localhost.evil.example:6007", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "", False),
        ("gpu.lab", "gpu.lab:80", True),
        ("0.0.0.0", "192.168.7.9:6007", True),  # noqa: S104
        ("0.0.0.0", "evil.example", False),  # noqa: S104
    ],
)
def test_only_our_own_names_are_answered(
    tmp_path: Path, bound: str, host: str, *, is_answered: bool
) -> None:
    client = client_of(tmp_path, host_names=allowed_hosts.accepted_names(bound))
    response = client.get("/api/runs", headers={"Host": host})
    assert response.status_code == (200 if is_answered else 403)
    assert response.is_json


def test_a_name_can_be_allowed(tmp_path: Path) -> None:
    client = client_of(
        tmp_path, host_names=allowed_hosts.accepted_names("127.0.0.1", ["Proxy.Example"])
    )
    assert client.get("/api/runs", headers={"Host": "proxy.example"}).status_code == 200


def test_the_published_schema_is_the_reports(client: flask.testing.FlaskClient) -> None:
    schema = client.get("/api/schema").json
    assert schema is not None
    assert schema["$ref"] == "#/$defs/Report"


def test_the_documented_routes_exist_and_every_answer_has_its_schema() -> None:
    assert set(response_schemas()) >= {"Runs", "RunReport", "Overview", "Table", "ApiError"}


def test_the_list_is_not_sent_twice(client: flask.testing.FlaskClient) -> None:
    tag = client.get("/api/runs").headers["ETag"]
    assert client.get("/api/runs", headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.slow
def test_every_real_trace_has_all_its_answers(shared_traces: Path, tmp_path: Path) -> None:
    """Also those whose names are none of torch's: linked under a name that is."""
    for number, path in enumerate(sorted(shared_traces.rglob("*.json.gz"))):
        folder = tmp_path / f"{number:02}_{re.sub(r'[^a-z0-9]+', '_', path.parent.name.lower())}"
        folder.mkdir()
        (folder / "w.1.pt.trace.json.gz").symlink_to(path)
    client = client_of(tmp_path)
    runs = runs_of(client).runs
    assert len(runs) >= 20
    for run in runs:
        assert run.state == "ready", run.name
        trace = run.workers[0].spans[0].trace
        kinds = ("overview", "operators", "kernels")
        for route in (f"runs/{run.id}/advice", *(f"traces/{trace}/{kind}" for kind in kinds)):
            response = client.get(f"/api/{route}")
            assert response.status_code == 200, (run.name, route, response.text[:300])
            json.loads(response.text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    msg = f"{constant} is no JSON"
    raise AssertionError(msg)


def posted(client: flask.testing.FlaskClient, trace: str, what: str, kind: str = "traces") -> Runs:
    response = client.post(f"/api/{kind}/{trace}/{what}", headers={"X-Stepscope": "1"})
    assert response.status_code == 200
    return msgspec.json.decode(response.data, type=Runs)


def refused(response: Any) -> tuple[int, str]:
    return response.status_code, response.json["code"]


def run_named(runs: Runs, name: str) -> RunState:
    [found] = [run for run in runs.runs if run.name == name]
    return found


def places(run: RunState) -> list[int | None]:
    return [span.place for worker in run.workers for span in worker.spans]


def test_reading_is_cancelled_and_asked_for_again(log: Path) -> None:
    client = client_of(log, Never())
    good = run_named(runs_of(client), "good")
    first, second = (worker.spans[0].trace for worker in good.workers)
    assert places(good) == [1, 2]
    good = run_named(posted(client, first, "cancel"), "good")
    assert (good.state, places(good)) == ("reading", [None, 1])
    assert refused(client.get(f"/api/traces/{first}/overview")) == (409, "cancelled")
    good = run_named(posted(client, second, "cancel"), "good")
    assert (good.state, places(good)) == ("cancelled", [None, None])
    assert refused(client.get(f"/api/runs/{good.id}/advice")) == (409, "cancelled")
    good = run_named(posted(client, second, "read"), "good")
    assert (good.state, places(good)) == ("reading", [None, 1])


def test_all_files_of_a_run_are_cancelled_and_asked_for_again(log: Path) -> None:
    client = client_of(log, Never())
    good = run_named(runs_of(client), "good")
    runs = posted(client, good.id, "cancel", "runs")
    assert run_named(runs, "good").state == "cancelled"
    assert run_named(runs, "half").state == "queued"
    assert places(run_named(posted(client, good.id, "read", "runs"), "good")) == [1, 2]


def test_to_read_all_of_a_run_leaves_what_was_read(log: Path) -> None:
    client = client_of(log)
    half = run_named(runs_of(client), "half")
    assert posted(client, half.id, "read", "runs") == runs_of(client)


def test_a_file_is_told_with_its_size_and_what_was_found_in_it(tmp_path: Path) -> None:
    whole = write_trace(tmp_path / "whole" / "w.1.pt.trace.json")
    write_long_ago(tmp_path / "cut" / "w.1.pt.trace.json", whole.read_bytes()[:-700])
    catalog = catalog_of(tmp_path, prepare=prepare)
    unread = [run.workers[0].spans[0] for run in run_listing.runs(catalog).runs]
    assert [(span.events, span.damage) for span in unread] == [(None, None), (None, None)]
    catalog.start_reading()
    spans = [run.workers[0].spans[0] for run in run_listing.runs(catalog).runs]
    size_bytes = whole.stat().st_size
    assert [span.file_bytes for span in spans] == [size_bytes - 700, size_bytes]
    assert [span.damage for span in spans] == ["warning", None]
    assert spans[1].events == EVENT_COUNT


@pytest.mark.parametrize("kind", ["traces", "runs"])
@pytest.mark.parametrize("what", ["cancel", "read"])
def test_a_page_of_another_origin_changes_nothing(log: Path, what: str, kind: str) -> None:
    client = client_of(log, Never())
    identity = {"traces": trace_of(client, "good"), "runs": runs_of(client).runs[1].id}[kind]
    before = client.get("/api/runs").data
    assert refused(client.post(f"/api/{kind}/{identity}/{what}")) == (403, "not-our-page")
    assert refused(client.get(f"/api/{kind}/{identity}/{what}")) == (404, "not-found")
    assert client.get("/api/runs").data == before
    unknown = client.post(f"/api/{kind}/nope/{what}", headers={"X-Stepscope": "1"})
    assert refused(unknown) == (404, "not-found")


def test_progress_is_told_in_bytes_events_phase_and_time(log: Path) -> None:
    seen: list[Progress | None] = []

    class Watching:
        def read(self, order: ReadRequest, tell: OnProgress, stop: Stop) -> ReadResult:
            tell(ReadProgress(bytes_done=1, bytes_total=4, events=2))
            seen.append(run_listing.runs(catalog).runs[1].workers[0].spans[0].progress)
            return InProcessReader().read(order, tell, stop)

    catalog = Catalog(
        [LogDirectory(path=str(log))], CatalogOptions(executor=AtOnce(), reader=Watching())
    )
    catalog.scan()
    catalog.file(catalog.entries()[1].file.id)
    progress = seen[0]
    assert progress is not None
    known = (progress.phase, progress.bytes_done, progress.bytes_total, progress.events)
    assert known == ("reading", 1, 4, 2)
    assert 0 < progress.elapsed_ns < 10**10
    assert progress.left_ns is None, "a few milliseconds tell nothing"
