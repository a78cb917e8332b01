"""The promises of `docs/security.md` and their tests, and attacks on the whole product.

Attacks on one part are tested with that part; the page names them. In the browser:
`tests/browser/test_hostile_page.py`.
"""

import json
import logging
import os
import re
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import flask.testing
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import hostile
import tracebuild
from logs import ROWS, write_long_ago, write_run
from stepscope.advice import rule_packages
from stepscope.analyses.operators.elementwise_traffic import list_types
from stepscope.api.app import create_app
from stepscope.base.plain_text import CONTROL, plain, without_commands
from stepscope.base.urls import redacted
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.cli import cli
from stepscope.cli.output import CONTINUOUS_INTEGRATION, is_read_by_people, log_formatter
from stepscope.model.frames.source import as_number
from stepscope.render.json import escaped
from stepscope.rules.explicit_device_sync import MEASURES
from stepscope.tensorboard import mounted

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text()
ROW = re.compile(
    r"^\| (?P<id>[a-z-]+) \| (?P<promise>[^|]+) \| (?P<tests>`[^|]+) \|$", re.MULTILINE
)
PYTHON_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
PAGE_TEST = re.compile(r"`(frontend/src/[\w/]+\.test\.tsx?)`: “([^”]+)”")
SUBJECTS = frozenset(
    {
        *(
            "pickles",
            "page",
            "report",
            "shared-file",
            "csv",
            "markdown",
            "terminal",
            "log-commands",
        ),
        *(
            "sarif",
            "editor-links",
            "special-files",
            "bombs",
            "long-texts",
            "deep-documents",
            "settings-files",
        ),
        *("traversal", "downloads", "sql", "secrets", "expressions", "queries", "connections"),
        *("responses", "refusals", "bodies"),
        *("host", "origin", "posts", "headers", "cache", "packages", "record"),
    }
)
"""What has to be promised."""

COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
"""What a log of continuous integration takes for a command."""


# The page


def test_each_subject_is_promised_once() -> None:
    ids = [row["id"] for row in ROW.finditer(PAGE)]
    assert sorted(ids) == sorted(SUBJECTS)


@pytest.mark.parametrize("row", list(ROW.finditer(PAGE)), ids=lambda row: row["id"])
def test_each_promise_names_tests_that_exist(row: "re.Match[str]") -> None:
    of_python, of_page = PYTHON_TEST.findall(row["tests"]), PAGE_TEST.findall(row["tests"])
    assert of_python or of_page
    for path, name in of_python:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE), (path, name)
    for path, name in of_page:
        assert f"it('{name}'" in (ROOT / path).read_text(), (path, name)


# Texts of a trace


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a trace in which every text acts where it can."""
    folder = tmp_path_factory.mktemp("log") / hostile.FOLDER
    trace = hostile.document(tracebuild.document(rows=ROWS))
    name = f"worker{hostile.NAME}.1700000000000.pt.trace.json"
    write_long_ago(folder / name, json.dumps(trace).encode())
    return folder


OUTPUTS = {
    "advise": ("text", "sarif"),
    "health": ("text", "json", "markdown"),
    "export --table operators": ("csv", "json"),
    "export --table kernels": ("csv", "json"),
}


def printed(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Return what a command prints into the log of continuous integration."""
    monkeypatch.setattr("stepscope.cli.output.is_read_by_people", lambda: True)
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code in (0, 1), result.output
    assert not COMMAND.search(result.output), COMMAND.findall(result.output)
    assert not CONTROL.search(result.output)
    return result.stdout


SET = (("CI", "true"), ("CI", "1"), ("GITHUB_ACTIONS", "true"), ("TF_BUILD", "True"))
NOT_SET = (("CI", ""), ("CI", "0"), ("CI", "false"), ("OTHER", "true"))


@pytest.mark.parametrize(("name", "value"), [*SET, *NOT_SET])
def test_a_pipe_is_a_log_in_continuous_integration(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    for each in CONTINUOUS_INTEGRATION:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, value)
    reading, writing = os.pipe()
    with os.fdopen(reading), os.fdopen(writing, "w") as pipe, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        assert is_read_by_people() == ((name, value) in SET)


@pytest.mark.parametrize("command", OUTPUTS)
def test_no_text_of_a_trace_acts_where_a_command_prints_it(
    monkeypatch: pytest.MonkeyPatch, log: Path, command: str
) -> None:
    for form in OUTPUTS[command]:
        name, *more = command.split()
        output = printed(monkeypatch, name, str(log), *more, "--format", form)
        assert "alert" in output
        if form in ("json", "sarif"):
            json.loads(output)


def test_a_hostile_run_is_compared_as_text(
    monkeypatch: pytest.MonkeyPatch, log: Path, tmp_path: Path
) -> None:
    other = write_run(tmp_path / "other")
    printed(monkeypatch, "compare", str(log), str(other))


@pytest.mark.parametrize(
    "arguments",
    [
        ("advise", "no\x1b[31m\n::error::x ##[add-mask]"),
        ("serve", "no\x1b[31m\n::error::x"),
        ("advise", ".", "--config", "no\x9b\n::error::x"),
    ],
)
def test_no_name_of_a_file_acts_in_an_error(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert not COMMAND.search(result.stderr)
    assert not CONTROL.search(result.stderr)


def test_no_name_of_a_file_acts_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("stepscope").warning("%s is damaged", "no\x1b[31m\n::error::x")
    shown = log_formatter("%(message)s").format(caplog.records[0])
    assert "is damaged" in shown
    assert not COMMAND.search(shown)
    assert not CONTROL.search(shown)


@given(st.text(st.one_of(st.sampled_from("#[:\n\r\x1b\x9b\u202e\U000e0041"), st.characters())))
def test_json_without_acting_texts_is_the_same(text: str) -> None:
    shown = escaped(json.dumps({text: text}, ensure_ascii=False))
    assert json.loads(shown) == {text: text}
    assert without_commands(shown) == shown
    assert not CONTROL.search(shown)


# Requests


ATTACKS = (
    "../secret.txt",
    "..%2fsecret.txt",
    "%2e%2e/secret.txt",
    "..%5csecret.txt",
    "....//secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "%00",
    "secret.txt%00.js",
    "x" * 5000,
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_text("secret")
    write_run(folder / "log" / "run")
    directory = LogDirectory(path=str(folder / "log"))
    return Catalog([directory])


def test_no_path_of_a_request_leaves_the_page_and_the_runs(served: Catalog, tmp_path: Path) -> None:
    static = tmp_path / "static"
    static.mkdir()
    (static / "index.html").write_text("<!doctype html>")
    (tmp_path / "secret.txt").write_text("secret")
    app = create_app(served, static=static)
    rules = [rule.rule for rule in app.url_map.iter_rules() if "<" in rule.rule]
    assert len(rules) > 20
    client = app.test_client()
    for rule in {re.sub(r"<[^>]+>", "{}", rule) for rule in rules}:
        for attack in ATTACKS:
            response = client.get(rule.replace("{}", attack))
            assert response.status_code in (308, 400, 403, 404), (rule, attack)
            assert b"secret" not in response.data.replace(b"secret.txt", b""), (rule, attack)


def test_no_path_leaves_the_page_in_tensorboard(served: Catalog, tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    app = create_app(served, static=tmp_path / "static")
    app.wsgi_app = mounted(app.wsgi_app)  # type: ignore[assignment, method-assign]
    client = app.test_client()
    for attack in ATTACKS:
        response = client.get(f"/data/plugin/stepscope/{attack}")
        assert response.status_code in (308, 400, 404), attack
        assert b"secret" not in response.data.replace(b"secret.txt", b""), attack


@pytest.mark.parametrize(
    ("site", "destination", "status"),
    [
        (None, None, 200),  # a client that is no browser
        ("same-origin", "empty", 200),
        ("none", "document", 200),
        ("cross-site", "document", 200),  # a link
        ("cross-site", "image", 403),
        ("cross-site", "iframe", 403),
        ("same-site", "empty", 403),  # another port of this machine
    ],
)
def test_a_page_of_another_origin_starts_nothing(
    served: Catalog, site: str | None, destination: str | None, status: int
) -> None:
    sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Dest": destination}
    headers = {name: value for name, value in sent.items() if value}
    client: flask.testing.FlaskClient = create_app(served).test_client()
    assert client.get("/api/schema", headers=headers).status_code == status


# Files that are none


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _dead_link(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.skipif(os.name == "nt", reason="no such files")
@pytest.mark.parametrize("make", [_device, _pipe, _socket, _loop, _dead_link])
def test_what_is_no_file_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    write_run(Path("run"))
    make(Path("run/x.1.pt.trace.json"))
    make(Path("run/snapshot.pickle"))
    result = CliRunner().invoke(cli, ["advise", "run"])
    assert result.exit_code in (0, 1), result.output
    assert "x.1.pt.trace.json" in result.output


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names are Unicode")
def test_names_of_other_bytes_than_utf_8_are_shown_escaped(tmp_path: Path) -> None:
    for name in (b"run\xff", b"run\xfe"):
        write_run(tmp_path / os.fsdecode(name), os.fsdecode(b"w\xff"))
    for command in ("advise", "health"):
        result = CliRunner().invoke(cli, [command, str(tmp_path), "--format", "json"])
        assert result.exit_code == 0, result.output
        assert r"w\\udcff" in result.stdout
    rows = ["export", str(tmp_path), "--table", "kernels", "--format", "json"]
    rows += ["--run", os.fsdecode(b"run\xff")]
    assert r"run\\udcff" in CliRunner().invoke(cli, rows).stdout
    catalog = Catalog([LogDirectory(path=str(tmp_path))])
    catalog.scan()
    client = create_app(catalog).test_client()
    names = [run["name"] for run in client.get("/api/runs").get_json()["runs"]]
    assert names == [r"run\udcfe", r"run\udcff"]


# Long texts


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (as_number, "0" * 100_000 + "x"),
        (list_types, "multi_tensor_apply" + "Functor" * 15_000),
        (MEASURES.search, "): " * 35_000),
        (redacted, "a" * 100_000 + "://"),
        (plain, "\r" * 100_000),
        (without_commands, " \n" * 50_000),
    ],
)
def test_a_text_takes_time_by_its_length(read: Callable[[str], object], text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 1, "quadratic: minutes"


# Settings, and code of others


def test_a_log_directory_brings_no_settings(tmp_path: Path) -> None:
    write_run(tmp_path / "log" / "run")
    for folder in (tmp_path / "log", tmp_path / "log" / "run"):
        (folder / "stepscope.toml").write_text("unknown = true")
    result = CliRunner().invoke(cli, ["advise", str(tmp_path / "log")])
    assert result.exit_code in (0, 1), result.output


def test_without_packages_none_of_their_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "evil"

        def load(self) -> None:
            pytest.fail("a package was loaded")

    monkeypatch.setattr(rule_packages, "entry_points", lambda **_: [Entry()])
    rule_packages.package_rules.cache_clear()
    result = CliRunner().invoke(cli, ["rules", "--no-plugins"])
    rule_packages.package_rules.cache_clear()
    assert result.exit_code == 0, result.output
