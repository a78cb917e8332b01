"""What the trace handler recorded of a run is told wherever the run is: table, health, compare."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import loading
from logs import ROWS, write_trace
from stepscope.analyses.settings.recorded_settings import RecordedSettings
from stepscope.analyses.settings.setting_rows import GROUPS, run_settings, settings_table
from stepscope.cli import cli
from stepscope.comparison import compare
from stepscope.comparison.messages import SettingChange
from stepscope.comparison.samples import sample
from stepscope.model.trace import Trace
from stepscope.render import settings_text

DEVICE = {"name": "A100", "memory_bytes": 80 * 10**9}
SETTINGS: dict[str, Any] = {
    "torch": {"version": "2.13.0", "cuda": "12.8"},
    "devices": [{"index": 0, **DEVICE}, {"index": 1, **DEVICE}],
    "dataloaders": [{"batch_size": 32, "worker_count": 0, "pin_memory": False}],
    "precision": {
        "autocast": {"enabled": True, "dtype": "bfloat16"},
        "model_dtype_counts": {"torch.float32": 11_173_962},
    },
    "host": {"cpu_capabilities": ["avx2", "amx_bf16"]},
    "environment": {"OMP_NUM_THREADS": "1"},
}
WITH_WORKERS = {
    **SETTINGS,
    "dataloaders": [
        {"batch_size": 32, "worker_count": 4, "pin_memory": True, "prefetch_factor": 2}
    ],
}


def mark(settings: dict[str, Any]) -> dict[str, Any]:
    return {"schema": 1, "recorder": "0.2.0", "settings": settings}


def trace_of(settings: dict[str, Any] | None, **metadata: Any) -> Trace:
    said = {"stepscope_recorder": mark(settings)} if settings is not None else {}
    return loading.trace_of(ROWS, **said, **metadata)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def test_every_subject_has_a_name_that_is_shown() -> None:
    about = {"schema", "recorder", "failed", "lost"}
    assert set(GROUPS) == set(RecordedSettings.__dataclass_fields__) - about


def test_the_table_has_a_row_a_setting_and_none_of_what_is_not_known() -> None:
    found = settings_table(trace_of({**SETTINGS, "devices": []}))
    assert [tuple(row) for row in found.itertuples(index=False)] == [
        ("torch", "version", "PyTorch", "2.13.0", "text"),
        ("torch", "cuda", "CUDA", "12.8", "text"),
        ("host", "cpu_capabilities", "CPU instructions", "avx2, amx_bf16", "text"),
        ("dataloaders[0]", "batch_size", "Batch size", "32", "count"),
        ("dataloaders[0]", "worker_count", "Workers", "0", "count"),
        ("dataloaders[0]", "pin_memory", "Pinned memory", "false", "flag"),
        ("precision", "autocast.enabled", "Autocast", "true", "flag"),
        ("precision", "autocast.dtype", "Autocast type", "bfloat16", "text"),
        (
            "precision",
            "model_dtype_counts.float32",
            "Parameters of type float32",
            "11173962",
            "count",
        ),
        ("environment", "OMP_NUM_THREADS", "OMP_NUM_THREADS", "1", "text"),
    ]
    assert len(settings_table(trace_of(None))) == 0


def test_equal_devices_are_told_once() -> None:
    devices = [each for each in run_settings(trace_of(SETTINGS)) if each.name == "name"]
    assert [(each.group, each.value) for each in devices] == [("Device × 2", "A100")]
    loaders = [{"batch_size": 1}, {"batch_size": 2}, {"batch_size": 1}]
    found = run_settings(trace_of({"dataloaders": loaders}))
    assert [(each.group, each.value) for each in found] == [
        ("DataLoader 1 × 2", 1),
        ("DataLoader 2", 2),
    ]


def test_settings_are_told_in_words() -> None:
    settings = run_settings(trace_of(SETTINGS))
    assert settings_text.groups(settings)[2:4] == (
        ("Device × 2", "device A100, device memory 74.5 GiB"),
        ("DataLoader", "batch size 32, workers 0, pinned memory off"),
    )
    assert settings_text.brief(settings) == (
        "Recorded settings: PyTorch 2.13.0, device A100, batch size 32, workers 0, pinned memory "
        "off, autocast type bfloat16"
    )
    assert settings_text.brief(()) == ""


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_health_tells_the_settings_or_how_to_record_them(tmp_path: Path, form: str) -> None:
    write_trace(tmp_path / "a" / "w.1.pt.trace.json", stepscope_recorder=mark(SETTINGS))
    write_trace(tmp_path / "b" / "w.1.pt.trace.json")
    told = run("health", tmp_path / "a", "--format", form).stdout
    assert "batch size 32, workers 0, pinned memory off" in told
    assert "settings were not recorded" not in told
    told = run("health", tmp_path / "b", "--format", form).stdout
    assert "settings were not recorded" in told
    assert "stepscope.trace_handler" in told


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_advice_begins_with_the_settings_that_matter(tmp_path: Path, form: str) -> None:
    write_trace(tmp_path / "w.1.pt.trace.json", stepscope_recorder=mark(SETTINGS))
    told = " ".join(run("advise", tmp_path, "--format", form).stdout.split())
    assert "Recorded settings: PyTorch 2.13.0, device A100, batch size 32, workers 0" in told


def test_json_of_advice_and_health_holds_all_of_them(tmp_path: Path) -> None:
    write_trace(tmp_path / "w.1.pt.trace.json", stepscope_recorder=mark(SETTINGS))
    workers = json.loads(run("advise", tmp_path, "--format", "json").stdout)["runs"][0]["workers"]
    [file] = json.loads(run("health", tmp_path, "--format", "json").stdout)["files"]
    assert workers[0]["settings"] == file["settings"]
    assert file["settings"][4:6] == [
        {
            "group": "Device × 2",
            "subject": "devices[0]",
            "name": "memory_bytes",
            "label": "Device memory",
            "value": 80_000_000_000,
            "unit": "bytes",
        },
        {
            "group": "DataLoader",
            "subject": "dataloaders[0]",
            "name": "batch_size",
            "label": "Batch size",
            "value": 32,
            "unit": "count",
        },
    ]


# Two runs


def changes(before: Trace | list[Trace], after: Trace | list[Trace]) -> list[SettingChange]:
    sides = [each if isinstance(each, list) else [each] for each in (before, after)]
    found = compare("a", [sample(t) for t in sides[0]], "b", [sample(t) for t in sides[1]])
    return list(found.settings)


def test_settings_that_differ_are_named_from_before_to_after() -> None:
    found = changes(trace_of(SETTINGS), trace_of(WITH_WORKERS))
    assert [(each.label, each.before, each.after) for each in found] == [
        ("DataLoader, Workers", "0", "4"),
        ("DataLoader, Pinned memory", "off", "on"),
        ("DataLoader, Prefetched batches per worker", "not recorded", "2"),
    ]
    assert found[0].name == "dataloaders[0].worker_count"


def test_the_same_settings_differ_in_nothing() -> None:
    assert changes(trace_of(SETTINGS), trace_of(SETTINGS)) == []


def test_a_side_without_settings_leaves_nothing_to_compare() -> None:
    assert changes(trace_of(SETTINGS), trace_of(None)) == []


def test_ranks_of_one_run_do_not_differ_by_their_number() -> None:
    ranks = [trace_of({"distributed": {"rank": rank, "world_size": 2}}) for rank in (0, 1)]
    assert changes(ranks[0], ranks[1]) == []


def test_ranks_that_differ_say_what_each_has() -> None:
    uneven = [trace_of({"host": {"cpu_count": count}}) for count in (4, 8)]
    [found] = changes(uneven, trace_of({"host": {"cpu_count": 4}}))
    assert (found.label, found.before, found.after) == ("Host, CPUs", "4 or 8", "4")


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_compare_prints_what_was_set_otherwise(tmp_path: Path, form: str) -> None:
    write_trace(tmp_path / "a" / "w.1.pt.trace.json", stepscope_recorder=mark(SETTINGS))
    write_trace(tmp_path / "b" / "w.1.pt.trace.json", stepscope_recorder=mark(WITH_WORKERS))
    told = run("compare", tmp_path / "a", tmp_path / "b", "--format", form).stdout
    assert "DataLoader, Workers: 0 → 4" in told
