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

from logs import write_long_ago
from stepscope.api import page, shared_file
from stepscope.api.app import create_app
from stepscope.api.shared_file import Options
from stepscope.api.shared_requests import Request, key, request
from stepscope.api.shared_timeline import SharedTimeline
from stepscope.api.timeline_tiles import compressible, merged_count
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.cli import cli
from stepscope.library import load
from stepscope.readers.pool import InProcessReader

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


def test_the_policy_names_the_scripts_and_the_page_does_not_end_its_own_block(html: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert policy[1].count("sha256-") == 2
    assert html.count("</script>") == 3


def test_one_run_of_several_is_shared_alone(app: flask.Flask) -> None:
    run = json.loads(app.test_client().get("/api/runs").data)["runs"][1]
    response = app.test_client().get(f"/api/runs/{run['id']}/share")
    assert response.mimetype == "text/html"
    assert response.headers["Content-Disposition"] == "attachment; filename=stepscope.html"
    shared = response_in(response.get_data(as_text=True), "runs")
    assert [entry["name"] for entry in shared["runs"]] == ["fix"]


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


def test_a_file_too_small_for_any_advice_is_refused(app: flask.Flask) -> None:
    with pytest.raises(UsageError, match="select fewer traces"):
        shared_file.of_app(app, options=Options(most_bytes=6000))


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
    return SharedTimeline(trace="t", end_ns=end_ns, counters=(), coarsest=12, next_level=12)


def tile(app: flask.Flask, level: int) -> bytes:
    trace = traces_of(app.test_client().get("/api/runs").json)[0]
    address = f"/api/traces/{trace}/timeline/tiles?level={level}&tile=0"
    return app.test_client().get(address).get_data()


def _answer(body: bytes, _: Request) -> bytes:
    return body


def _consumed(bodies: Iterable[tuple[Request, bytes]], *, result: bool) -> bool:
    assert list(bodies)
    return result


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
        (["--max-size", "10k"], "--max-size is at least"),
        (["--run", "none"], "there is no run 'none'"),
    ],
)
def test_the_command_refuses_in_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = run(SAMPLE, "-o", tmp_path / "report.html", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "report.html").exists()


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
    assert "1 of 2 traces were not read." in result.stderr
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
