"""Recordings to take along: whole files, and parts as traces of their own."""

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from logs import write_long_ago
from stepscope.api import perfetto
from stepscope.api.app import create_app
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.read import read_trace
from stepscope.readers.pool import InProcessReader
from stepscope.storage import discover

SAMPLE = Path(__file__).resolve().parents[1] / "sample_logs/synthetic_dataloader/fault"


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "log"))


@pytest.fixture
def client(folder: Path) -> flask.testing.FlaskClient:
    return client_of(folder)


def client_of(folder: Path) -> flask.testing.FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def address_of(client: flask.testing.FlaskClient) -> str:
    runs = json.loads(client.get("/api/runs").data)["runs"]
    return f"/api/traces/{runs[0]['workers'][0]['spans'][0]['trace']}"


def test_the_whole_file_comes_as_it_lies_on_disk(
    client: flask.testing.FlaskClient, folder: Path
) -> None:
    [file] = folder.glob("*.gz")
    response = client.get(f"{address_of(client)}/file", headers={"Accept-Encoding": "gzip"})
    assert response.data == file.read_bytes()
    assert "Content-Encoding" not in response.headers, "it would be unpacked on the way"
    assert response.headers["Content-Disposition"] == f"attachment; filename={file.name}"


def test_a_part_is_a_trace_that_can_be_read_again(
    client: flask.testing.FlaskClient, tmp_path: Path
) -> None:
    steps = json.loads(client.get(f"{address_of(client)}/overview").data)["steps"]
    time = f"start_ns={steps[1]['host_start_ns']}&end_ns={steps[1]['host_end_ns']}"
    response = client.get(f"{address_of(client)}/file?{time}")
    (tmp_path / "part").mkdir()
    name = response.headers["Content-Disposition"].partition("filename=")[2]
    (tmp_path / "part" / name).write_bytes(response.data)
    [file] = discover.at(str(tmp_path / "part"))
    part = read_trace(file)
    assert part.steps["number"].tolist() == [steps[1]["number"]]
    assert len(part.device_events) > 0


def test_what_was_damaged_goes_out_repaired_where_that_is_asked(
    client: flask.testing.FlaskClient, folder: Path
) -> None:
    [file] = folder.glob("*.gz")
    text = gzip.decompress(file.read_bytes())
    write_long_ago(file, gzip.compress(text[: len(text) * 2 // 3]))  # cut off in the middle
    client.get("/api/runs")
    client = client_of(folder)
    as_it_is = gzip.decompress(client.get(f"{address_of(client)}/file").data)
    with pytest.raises(json.JSONDecodeError):
        json.loads(as_it_is)
    repaired = gzip.decompress(client.get(f"{address_of(client)}/file?is_repaired=true").data)
    assert len(json.loads(repaired)["traceEvents"]) > 100


def test_a_file_that_is_gone_is_said_to_be(client: flask.testing.FlaskClient, folder: Path) -> None:
    trace = address_of(client)
    for file in folder.glob("*.gz"):
        file.unlink()
    for question in ("file", "file?start_ns=0&end_ns=1000"):
        response = client.get(f"{trace}/{question}")
        assert response.status_code == 422
        assert json.loads(response.data)["code"] == "unreadable"


QUESTIONS = ("file", "file?start_ns=0&end_ns=1000", "file?is_repaired=true")


def _link(trace: Path, other: Path) -> None:
    trace.unlink()
    trace.symlink_to(other)


def _pipe(trace: Path, _: Path) -> None:
    trace.unlink()
    os.mkfifo(trace)


def _other_file(trace: Path, other: Path) -> None:
    other.rename(trace)


def _linked_folder(trace: Path, other: Path) -> None:
    other.rename(other.with_name(trace.name))
    trace.parent.rename(trace.parent.with_name("moved"))
    trace.parent.symlink_to(other.parent)


def _longer(trace: Path, _: Path) -> None:
    trace.write_bytes(trace.read_bytes() + b" ")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("replace", [_link, _other_file, _linked_folder, _longer, _pipe])
def test_only_the_file_that_was_read_is_sent(
    client: flask.testing.FlaskClient, folder: Path, tmp_path: Path, replace: Any
) -> None:
    """The other file has the same size and time, which anyone may give a trace."""
    trace = address_of(client)
    [file] = folder.glob("*.gz")
    assert client.get(f"{trace}/file").status_code == 200
    status = file.stat()
    secret = tmp_path / "other" / "secret"
    secret.parent.mkdir()
    secret.write_bytes(b"s" * status.st_size)
    os.utime(secret, ns=(status.st_atime_ns, status.st_mtime_ns))
    replace(file, secret)
    for question in QUESTIONS:
        response = client.get(f"{trace}/{question}")
        assert response.status_code == (422 if replace is _pipe else 409), question
        assert json.loads(response.data)["code"] == (
            "unreadable" if replace is _pipe else "changed"
        )


def test_a_trace_that_was_a_link_when_it_was_read_is_sent(tmp_path: Path) -> None:
    [file] = SAMPLE.glob("*.gz")
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / file.name).symlink_to(file)
    client = client_of(tmp_path / "log")
    assert client.get(f"{address_of(client)}/file").data == file.read_bytes()


@pytest.mark.parametrize("time", ["start_ns=5", "end_ns=5", "start_ns=9&end_ns=5", "start_ns=x"])
def test_half_a_time_is_refused(client: flask.testing.FlaskClient, time: str) -> None:
    assert client.get(f"{address_of(client)}/file?{time}").status_code == 400


def test_perfetto_is_served_from_this_machine_where_it_is_installed(
    client: flask.testing.FlaskClient,
) -> None:
    tools = json.loads(client.get("/api/tools").data)
    response = client.get(f"/{tools['perfetto']}")
    assert response.status_code == 200
    assert "'wasm-unsafe-eval'" in response.headers["Content-Security-Policy"]
    assert "https:" not in response.headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", ["../setup.py", "..%2f__init__.py", "/etc/passwd", "none.js"])
def test_nothing_else_of_its_package_is_served(
    client: flask.testing.FlaskClient, name: str
) -> None:
    assert client.get(f"/perfetto/{name}").status_code == 404


def test_without_it_the_page_says_how_to_install_it(
    client: flask.testing.FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perfetto, "folder", lambda: None)
    tools = json.loads(client.get("/api/tools").data)
    assert (tools["perfetto"], tools["perfetto_hint"]) == ("", perfetto.HINT)
    assert client.get("/perfetto/index.html").status_code == 404
