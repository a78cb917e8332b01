"""The plugin as TensorBoard meets it; the page itself is tested in `browser/`."""

import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from logs import write_run
from stepscope.base.config import CacheSettings, Settings, SummarySettings
from stepscope.tensorboard import (
    NAME,
    StepscopeLoader,
    StepscopePlugin,
    log_directories,
    mounted,
    plugin_settings,
)
from waiting import until


def plugin_of(logdir: Path | str, specification: str = "") -> StepscopePlugin:
    flags = Namespace(logdir=str(logdir), logdir_spec=specification)
    context = base_plugin.TBContext(flags=flags, logdir=str(logdir))
    return StepscopeLoader().load(context)


def until_active(plugin: StepscopePlugin, *, is_wanted: bool = True) -> bool:
    until(lambda: plugin.is_active() == is_wanted)
    return plugin.is_active()


def client_of(plugin: StepscopePlugin) -> Client:
    [app] = plugin.get_plugin_apps().values()
    return Client(app)


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_importing_the_entry_brings_nothing_that_tensorboard_has_not() -> None:
    base = modules_after("import tensorboard.plugins.base_plugin")
    ours = modules_after("import stepscope.tensorboard") - base
    foreign = {name for name in ours if name.split(".")[0] not in sys.stdlib_module_names}
    light = {"_version", "base", "base.deprecation", "tensorboard"}
    assert foreign == {"stepscope", *(f"stepscope.{name}" for name in light)}


def test_making_the_plugin_brings_neither_pandas_nor_flask(tmp_path: Path) -> None:
    statement = (
        "from argparse import Namespace\n"
        "from tensorboard.plugins.base_plugin import TBContext\n"
        "from stepscope.tensorboard import StepscopeLoader\n"
        f"context = TBContext(flags=Namespace(logdir_spec=''), logdir={str(tmp_path)!r})\n"
        "plugin = StepscopeLoader().load(context)\n"
        "plugin.get_plugin_apps(), plugin.frontend_metadata(), plugin.is_active()"
    )
    assert not modules_after(statement) & {"pandas", "numpy", "flask"}


def test_what_tensorboard_is_told() -> None:
    assert StepscopePlugin.plugin_name == NAME == "stepscope"
    plugin = plugin_of("")
    metadata = plugin.frontend_metadata()
    assert (metadata.es_module_path, metadata.tab_name) == ("/index.js", "Stepscope")
    assert list(plugin.get_plugin_apps()) == ["/*"]


def test_it_is_active_only_when_a_trace_was_found(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    assert until_active(plugin_of(tmp_path))
    (tmp_path / "empty").mkdir()
    empty = plugin_of(tmp_path / "empty")
    time.sleep(0.2)
    assert not empty.is_active()
    assert not plugin_of(tmp_path / "absent").is_active()


def test_the_app_answers_under_tensorboards_path(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    plugin = plugin_of(tmp_path)
    until_active(plugin)
    client = client_of(plugin)
    answer = client.get("/data/plugin/stepscope/api/runs")
    assert answer.status_code == 200
    assert answer.json is not None
    assert [run["name"] for run in answer.json["runs"]] == ["run"]
    assert client.get("/data/plugin/stepscope/index.html").mimetype == "text/html"
    assert client.get("/data/plugin/stepscope/nope").status_code == 404


def test_every_entry_of_logdir_spec_is_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_run(tmp_path / name / "run")
    plugin = plugin_of("", f"first:{tmp_path / 'one'},{tmp_path / 'two'}")
    until_active(plugin)
    answer = client_of(plugin).get("/data/plugin/stepscope/api/runs").json
    assert answer is not None
    assert [run["name"] for run in answer["runs"]] == ["first/run", f"{tmp_path / 'two'}/run"]


def test_the_prefix_is_shifted_whatever_stands_before_it() -> None:
    seen: list[tuple[str, str]] = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append((environ["SCRIPT_NAME"], environ["PATH_INFO"]))
        start_response("200 OK", [])
        return [b""]

    client = Client(mounted(app))
    client.get("/data/plugin/stepscope/api/runs")
    client.get("/data/plugin/stepscope/x", base_url="http://localhost/proxy/experiment/abc/")
    client.get("/data/plugin/stepscope/a/data/plugin/stepscope/b")
    assert seen == [
        ("/data/plugin/stepscope", "/api/runs"),
        ("/proxy/experiment/abc/data/plugin/stepscope", "/x"),
        ("/data/plugin/stepscope", "/a/data/plugin/stepscope/b"),
    ]


@pytest.mark.parametrize(
    ("logdir", "specification", "expected"),
    [
        ("log", "", [("", "log")]),
        ("", "", []),
        ("", "/a", [("", "/a")]),
        ("", "name:/a", [("name", "/a")]),
        ("", "name:/a,b:c/d", [("name", "/a"), ("b", "c/d")]),
        ("", "/a,/b", [("/a", "/a"), ("/b", "/b")]),
        ("", "run:/path:with:colons", [("run", "/path:with:colons")]),
        ("", "/path:with:colons", [("", "/path:with:colons")]),
        ("", "s3://bucket/a", [("", "s3://bucket/a")]),
        ("", "name:gs://bucket/a,/b", [("name", "gs://bucket/a"), ("/b", "/b")]),
        ("", r"C:\logs", [("", r"C:\logs")]),
        ("", r"name:C:\logs", [("name", r"C:\logs")]),
        ("", "c:logs", [("c", "logs")]),
        ("ignored", "name:/a", [("name", "/a")]),
    ],
)
def test_log_directories_follow_tensorboards_grammar(
    logdir: str, specification: str, expected: list[tuple[str, str]]
) -> None:
    found = log_directories(logdir, specification)
    assert [(each.name, each.path) for each in found] == expected


def test_the_home_folder_is_meant_by_a_tilde() -> None:
    [found] = log_directories("~/log")
    assert found.path == str(Path("~/log").expanduser())


def flags_of(*arguments: str) -> Namespace:
    parser = ArgumentParser()
    StepscopeLoader().define_flags(parser)
    return parser.parse_args(arguments)


def test_options_of_tensorboard_set_what_reading_may_take(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setenv("STEPSCOPE_JOBS", "7")
    options = ("--stepscope_memory", "1G", "--stepscope_cache")
    assert plugin_settings(flags_of(*options, "--stepscope_jobs", "3")) == Settings(
        jobs=3, memory_bytes=2**30, cache=CacheSettings(folder="")
    )
    assert plugin_settings(flags_of(*options)).jobs == 7
    assert plugin_settings(flags_of("--stepscope_cache", "kept")).cache.folder == "kept"
    assert plugin_settings(Namespace()).cache.folder is None
    assert plugin_settings(Namespace()).scheduler == ""
    there = flags_of("--stepscope_scheduler", "tcp://host:8786")
    assert plugin_settings(there).scheduler == "tcp://host:8786"
    kept = plugin_settings(flags_of("--stepscope_summaries", "s3://bucket/kept")).summaries
    assert (kept.location, kept.least_count) == ("s3://bucket/kept", SummarySettings().least_count)
    assert plugin_settings(flags_of("--stepscope_summaries", "0")).summaries.location is None
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://other:8786")
    assert plugin_settings(Namespace()).scheduler == "tcp://other:8786"
    assert plugin_settings(there).scheduler == "tcp://host:8786"


def test_reading_is_cancelled_through_tensorboard_itself(tmp_path: Path) -> None:
    from tensorboard.backend.application import TensorBoardWSGI

    write_run(tmp_path / "run")
    plugin = plugin_of(tmp_path)
    until_active(plugin)
    app = TensorBoardWSGI([plugin], path_prefix="/proxy")
    prefix = "/proxy/data/plugin/stepscope/api"
    client = Client(app)
    runs = client.get(f"{prefix}/runs").json
    assert runs is not None
    trace = runs["runs"][0]["workers"][0]["spans"][0]["trace"]
    refused = client.post(f"{prefix}/traces/{trace}/cancel")
    assert refused.status_code == 403
    for what in ("cancel", "read"):
        answer = client.post(f"{prefix}/traces/{trace}/{what}", headers={"X-Stepscope": "page"})
        assert answer.status_code == 200
        assert answer.json is not None
        assert [run["name"] for run in answer.json["runs"]] == ["run"]
