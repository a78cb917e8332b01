"""Shared files: the responses in them, their size, and the command that writes them."""

import gzip
import json
import re
import shutil
import zlib
from base64 import b64decode
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import flask
import numpy as np
import pytest
from click.testing import CliRunner

from logs import write_long_ago, write_run, write_trace
from stepscope.api import page, shared_file
from stepscope.api.app import create_app
from stepscope.api.shared_file import Options
from stepscope.api.shared_requests import Request, key, request
from stepscope.api.shared_responses import Responses, Space
from stepscope.api.shared_timeline import SharedTimeline
from stepscope.api.timeline_tiles import compressible, merged_count
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.cli import cli
from stepscope.cli.share import FileSize
from stepscope.library import load
from stepscope.readers.pool import InProcessReader
from stepscope.render.shared_file import encoded

SAMPLE_LOGS = Path(__file__).resolve().parents[1] / "sample_logs"
SAMPLE = SAMPLE_LOGS / "synthetic_item_sync"


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small page."""
    folder = tmp_path_factory.mktemp("static")
    (folder / "shared").mkdir()
    (folder / "shared" / "page.js").write_text("document.title = '</script>';", encoding="utf-8")
    (folder / "shared" / "page.css").write_text("body { margin: 0 }", encoding="utf-8")
    return folder


def app_of(log: Path, static: Path) -> flask.Flask:
    options = CatalogOptions(executor=_AtOnce(), reader=InProcessReader())
    catalog = Catalog([LogDirectory(path=str(log))], options)
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog, static=static)


@pytest.fixture(scope="module")
def app(static: Path) -> flask.Flask:
    return app_of(SAMPLE, static)


@pytest.fixture(scope="module")
def html(app: flask.Flask) -> str:
    return shared_file.of_app(app).html.decode()


def content_of(html: str) -> Any:
    block = re.search(r'id="stepscope-file">(.*?)</script>', html, re.DOTALL)
    assert block is not None
    return json.loads(block[1])


def response_in(html: str, name: str) -> Any:
    return json.loads(zlib.decompress(b64decode(content_of(html)["responses"][name])))


def response_of(app: flask.Flask, name: str) -> Any:
    return json.loads(app.test_client().get(f"/api/{name}").data)


def traces_of(runs: Any) -> list[str]:
    spans = [worker["spans"] for run in runs["runs"] for worker in run["workers"]]
    return [span["trace"] for of_worker in spans for span in of_worker]


def test_a_request_has_one_key_whatever_the_page_leaves_to_itself() -> None:
    tile = request("traces/t/timeline/tiles", tracks="1,2", level=3, tile=0)
    assert key(tile) == "traces/t/timeline/tiles?level=3&tile=0"
    table = request("traces/t/tables/steps", limit=5, sort="a", descending=True)
    assert key(table) == "traces/t/tables/steps"
    changed = request("traces/t/what-if", scale=["a", "b"], host=1, no_waits=False, fix=None)
    assert key(changed) == "traces/t/what-if?host=1&no_waits=false&scale=a&scale=b"


def test_the_responses_are_those_of_the_app(app: flask.Flask, html: str) -> None:
    client = app.test_client()
    runs = response_in(html, "runs")
    assert [run["name"] for run in runs["runs"]] == ["fault", "fix"]
    for trace in traces_of(runs):
        for path in ("overview", "operators", "flame/graph?by_class=true"):
            name = f"traces/{trace}/{path}"
            assert response_in(html, name) == client.get(f"/api/{name}").json, name


def test_a_refusal_is_in_the_file_with_its_status(app: flask.Flask, html: str) -> None:
    content = content_of(html)
    refused = next(name for name in content["statuses"] if "/operators?group=stack" in name)
    response = app.test_client().get(f"/api/{refused}")
    assert content["statuses"][refused] == response.status_code == 422
    assert response_in(html, refused) == response.json


def test_no_folder_of_this_machine_is_in_the_file(html: str) -> None:
    content = content_of(html)
    for name, packed in content["responses"].items():
        body = zlib.decompress(b64decode(packed))
        assert str(SAMPLE_LOGS.parent).encode() not in body, name
    assert str(SAMPLE_LOGS.parent) not in html


def bodies_in(html: str) -> dict[str, bytes]:
    responses = content_of(html)["responses"].items()
    return {name: zlib.decompress(b64decode(packed)) for name, packed in responses}


def test_no_folder_of_an_unreadable_file_is_in_the_file(static: Path, tmp_path: Path) -> None:
    name = "worker1.1700000000000.pt.trace.json.gz"
    for run in ("damaged", "unreadable"):
        write_long_ago(tmp_path / run / name, gzip.compress(b"{no trace"))
    write_run(tmp_path / "damaged")
    write_run(tmp_path / "whole")
    app = app_of(tmp_path, static)
    bodies = bodies_in(shared_file.of_app(app).html.decode())
    assert [key for key, body in bodies.items() if str(tmp_path).encode() in body] == []
    runs = response_of(app, "runs")["runs"]
    ids = {run["name"]: run["id"] for run in runs}
    damaged = bodies[f"comparison?base_run={ids['whole']}&run={ids['damaged']}"]
    assert [of["path"] for of in json.loads(damaged)["after"]["problems"]] == [name]
    refused = json.loads(bodies[f"trends?run={ids['unreadable']}&scope=spans"])
    assert refused["code"] == "unreadable"
    assert refused["message"].startswith(f"{name}: ")


@pytest.fixture(scope="module")
def of_six_runs(static: Path, tmp_path_factory: pytest.TempPathFactory) -> flask.Flask:
    """Return the app of six runs, of which the listing's last is the baseline of its first."""
    folder = tmp_path_factory.mktemp("log")
    for number, run in enumerate(("b", "c", "d", "e", "f", "a"), start=1):
        write_trace(folder / run / f"worker0.170000000{number}000.pt.trace.json.gz")
    return app_of(folder, static)


def test_compare_has_its_candidates_and_its_default_comparison(of_six_runs: flask.Flask) -> None:
    bodies = bodies_in(shared_file.of_app(of_six_runs).html.decode())
    ids = {run["name"]: run["id"] for run in response_of(of_six_runs, "runs")["runs"]}
    assert list(ids) == ["a", "b", "c", "d", "e", "f"]
    for run, baseline in [("a", "f"), ("f", "e"), ("c", "b")]:
        name = f"comparison/candidates?run={ids[run]}"
        assert json.loads(bodies[name]) == response_of(of_six_runs, name)
        assert f"comparison?base_run={ids[baseline]}&run={ids[run]}" in bodies
    compared = [name for name in bodies if name.endswith(f"&run={ids['a']}")]
    assert len(compared) == shared_file.MOST_COMPARED


def test_the_policy_names_the_scripts_and_the_page_does_not_end_its_own_block(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert policy[1].count("sha256-") == 2
    assert html.count("</script>") == 3


def test_one_run_of_several_is_shared_alone(app: flask.Flask) -> None:
    run = response_of(app, "runs")["runs"][1]
    response = app.test_client().get(f"/api/runs/{run['id']}/share")
    assert response.mimetype == "text/html"
    assert response.headers["Content-Disposition"] == "attachment; filename=stepscope.html"
    bodies = bodies_in(response.get_data(as_text=True))
    assert [entry["name"] for entry in json.loads(bodies["runs"])["runs"]] == ["fix"]
    [other] = (of for of in response_of(app, "runs")["runs"] if of["name"] != "fix")
    assert [name for name, body in bodies.items() if other["id"].encode() in body] == []
    trends = [bodies[f"trends?run={run['id']}&scope={scope}"] for scope in shared_file.SCOPES]
    assert [point["run_name"] for point in json.loads(trends[0])["points"]] == ["fix"]
    assert trends == trends[:1] * 3
    assert json.loads(bodies[f"comparison/candidates?run={run['id']}"])["candidates"] == []


def test_no_response_in_the_file_waits_for_a_trace(
    static: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_file, "MOST_POLLS", 1)
    whole = write_trace(tmp_path / "run" / "worker0.1700000000000.pt.trace.json.gz")
    growing = tmp_path / "run" / "worker1.1700000000000.pt.trace.json.gz"
    growing.write_bytes(whole.read_bytes()[:200])
    app = app_of(tmp_path, static)
    [run] = response_of(app, "runs")["runs"]
    address = f"trends?run={run['id']}&scope=spans"
    assert response_of(app, address)["waiting_count"] == 1
    file = shared_file.of_app(app)
    assert "1 of 2 traces was not read." in file.notes
    bodies = bodies_in(file.html.decode())
    assert json.loads(bodies[address])["waiting_count"] == 0
    waiting = re.compile(rb'"waiting_count":[1-9]')
    assert [name for name, body in bodies.items() if waiting.search(body)] == []


def test_a_run_that_does_not_exist_is_refused(app: flask.Flask) -> None:
    assert app.test_client().get("/api/runs/no-such-id/share").status_code == 404


@pytest.mark.parametrize("most_bytes", [60_000, 300_000])
def test_a_small_file_holds_the_advice_and_says_what_it_leaves_out(
    app: flask.Flask, most_bytes: int
) -> None:
    file = shared_file.of_app(app, options=Options(most_bytes=most_bytes))
    assert len(file.html) <= most_bytes
    assert any("Left out for its size" in note for note in file.notes)
    names = content_of(file.html.decode())["responses"]
    assert any("/advice" in name for name in names)
    assert content_of(file.html.decode())["notes"] == list(file.notes)


@pytest.mark.parametrize("most_bytes", [3000, 6000])
def test_a_file_too_small_for_any_advice_is_refused(app: flask.Flask, most_bytes: int) -> None:
    limit = f"{most_bytes // 1000}.00 kB"
    with pytest.raises(UsageError, match=f"{limit} cannot hold the advice: select fewer traces"):
        shared_file.of_app(app, options=Options(most_bytes=most_bytes))


def size_in_file(responses: Responses) -> int:
    return sum(len(encoded(part).encode()) for part in (responses.packed, responses.statuses))


def test_responses_take_the_space_that_they_have_in_the_file(app: flask.Flask) -> None:
    responses = Responses(app.test_client(), None)
    responses.space = Space(10_000)
    empty_bytes = size_in_file(responses)
    rows = [(request("rows", name=f"<genexpr> é {row}"), b"{}") for row in range(9)]
    assert responses.store(rows[:5])
    assert responses.store(rows[5:], status=422)
    needed_bytes = size_in_file(responses) - empty_bytes
    assert needed_bytes <= 10_000 - responses.space.left_bytes <= needed_bytes + 2
    responses.space = Space(needed_bytes // 10)
    responses.statuses.clear()
    assert not responses.store([(request("more", name="<" * 90), b"{}")], status=422)
    assert responses.statuses == {}


def test_what_the_app_refuses_is_not_left_out_for_its_size(app: flask.Flask) -> None:
    responses = Responses(app.test_client(), None)
    responses.space = Space(2010)
    responses.add("chart", [request("runs/none/memory-files"), request("tables")])
    assert responses.left_out == {"chart": 1}
    assert responses.unrequested == set()
    responses.space = Space(0)
    responses.add("detail", [request("tools")])
    assert responses.left_out["detail"] == 1
    assert responses.unrequested == {"detail"}


@pytest.mark.parametrize("most_bytes", [60_000, 240_000, 300_000])
def test_a_timeline_is_in_the_file_with_its_tracks_and_a_level_or_not_at_all(
    of_six_runs: flask.Flask, most_bytes: int
) -> None:
    file = shared_file.of_app(of_six_runs, options=Options(most_bytes=most_bytes))
    assert len(file.html) <= most_bytes
    names = content_of(file.html.decode())["responses"]
    listed = [name for name in names if name.endswith("/timeline/tracks")]
    tiled = {name.partition("tiles")[0] + "tracks" for name in names if "/timeline/tiles" in name}
    assert set(listed) == tiled
    missing = 6 - len(listed)
    noun = "timeline" if missing == 1 else "timelines"
    assert (f"{missing} {noun}" in " ".join(file.notes)) == (missing > 0)


def test_without_a_built_page_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(MissingDataError, match="not built"):
        shared_file.of_app(app_of(SAMPLE, tmp_path))


def test_the_timeline_names_the_levels_in_the_file(html: str) -> None:
    for trace in traces_of(response_in(html, "runs")):
        tracks = response_in(html, f"traces/{trace}/timeline/tracks")
        tiles = [
            int(level[1])
            for name in content_of(html)["responses"]
            if (level := re.match(rf"traces/{trace}/timeline/tiles\?level=(\d+)&", name))
        ]
        assert sorted(set(tiles), reverse=True) == tracks["levels"]
        assert len(tracks["levels"]) > 1


def timeline(end_ns: int) -> SharedTimeline:
    tracks = {"note": ""}
    return SharedTimeline(
        trace="t", tracks=tracks, end_ns=end_ns, counters=(), coarsest=12, next_level=12
    )


def tile(app: flask.Flask, level: int) -> bytes:
    trace = traces_of(response_of(app, "runs"))[0]
    address = f"/api/traces/{trace}/timeline/tiles?level={level}&tile=0"
    return app.test_client().get(address).get_data()


def _answer(body: bytes, _: Request) -> bytes:
    return body


def _consumed(bodies: Iterable[tuple[Request, bytes]], *, result: bool) -> bool:
    assert list(bodies)
    return result


def test_a_level_without_all_its_tiles_is_not_listed() -> None:
    line = timeline(1 << 20)
    while line.next_level is not None:
        line.add_level(lambda _: None, lambda bodies: not list(bodies))
    assert line.levels == []


def test_levels_are_added_until_nothing_is_merged(app: flask.Flask) -> None:
    merged, single = tile(app, 20), tile(app, 0)
    assert merged_count(merged)[0] > 0
    assert merged_count(single)[0] == 0
    line = timeline(1 << 20)
    while line.next_level is not None:
        body = merged if line.next_level > 6 else single
        line.add_level(partial(_answer, body), partial(_consumed, result=True))
    assert line.levels == [12, 9, 6]
    assert line.note == ""
    assert line.rounding_ns == 4


def test_a_level_that_does_not_fit_is_left_out_for_a_coarser_one(app: flask.Flask) -> None:
    merged = tile(app, 20)
    line = timeline(1 << 20)
    while line.next_level is not None:
        fits = line.next_level >= 7
        line.add_level(partial(_answer, merged), partial(_consumed, result=fits))
    assert line.levels == [12, 9, 7]
    assert line.note == "Decimated in this file: slices shorter than 128 ns are merged."


def test_a_tile_is_the_same_after_packing_its_bytes(app: flask.Flask) -> None:
    plain = tile(app, 18)
    count = merged_count(plain)[1]
    packed = compressible(plain)
    at = len(plain) - 18 * count
    assert packed[:at] == plain[:at]
    for size, is_difference in ((4, 0), (4, 1), (4, 0), (2, 1), (2, 0), (1, 0), (1, 0)):
        of_column = slice(at, at + size * count)
        columns = np.frombuffer(packed[of_column], "u1").reshape(size, count).T.copy()
        values = columns.view(f"<u{size}")[:, 0]
        restored = np.cumsum(values, dtype=values.dtype) if is_difference else values
        assert restored.tobytes() == plain[of_column]
        at += size * count
    assert len(zlib.compress(packed, 9)) < len(zlib.compress(plain, 9))


def run(*arguments: str | Path) -> Any:
    return CliRunner().invoke(cli, ["share", *map(str, arguments)])


def test_the_command_writes_the_selected_run_and_says_how_large_it_is(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    result = run(SAMPLE, "--run", "fix", "-o", path, "--max-size", "3MB")
    assert result.exit_code == 0, result.output
    assert "report.html is written, " in result.stderr
    assert [each["name"] for each in response_in(path.read_text(), "runs")["runs"]] == ["fix"]
    assert path.stat().st_size <= 3_000_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-size", "many"], "is no size"),
        (["--max-size", "10k"], "--max-size is at least 1.00 MB"),
        (["--max-size", "9" * 400], "it is at most 1,000 GB"),
        (["-o", "none/report.html"], "none is no folder in which files can be written"),
        (["--run", "none"], "there is no run 'none'"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = run(SAMPLE, "-o", tmp_path / "report.html", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("text", ["5MB", "5mb", "5 M", "5000KB", "0.005g", "5000000"])
def test_a_size_is_read_in_any_case(text: str) -> None:
    assert FileSize().convert(text, None, None) == 5_000_000


def test_files_that_cannot_be_read_are_counted_or_refused(tmp_path: Path) -> None:
    broken = tmp_path / "log" / "run" / "worker1.1700000000000.pt.trace.json.gz"
    write_long_ago(broken, gzip.compress(b"{no trace"))
    result = run(tmp_path / "log", "-o", tmp_path / "report.html")
    assert result.exit_code == 2
    assert broken.name in result.stderr
    [sample] = (SAMPLE / "fix").glob("*.gz")
    shutil.copy(sample, broken.parent)
    result = run(tmp_path / "log", "-o", tmp_path / "report.html")
    assert result.exit_code == 0
    assert "1 of 2 traces was not read." in result.stderr
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    [shown] = response_in(text, "runs")["runs"]
    states = {span["state"]: span for worker in shown["workers"] for span in worker["spans"]}
    assert states["unreadable"]["problem"]["path"] == broken.name


def test_a_loaded_run_is_a_frame_in_a_notebook_and_text_where_its_files_are_gone(
    tmp_path: Path,
) -> None:
    folder = shutil.copytree(SAMPLE / "fix", tmp_path / "fix")
    loaded: Any = load(folder)
    frame = loaded._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert 'sandbox="allow-scripts ' in frame
    shutil.rmtree(folder)
    assert loaded._repr_html_() is None


def test_no_trace_is_no_file(static: Path, tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match="no trace"):
        shared_file.of_app(app_of(tmp_path, static))


def test_the_page_of_the_package_is_the_default() -> None:
    catalog = Catalog([], CatalogOptions(executor=_AtOnce(), reader=InProcessReader()))
    assert create_app(catalog).config[page.FOLDER] == page.STATIC
