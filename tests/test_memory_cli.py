"""`stepscope memory`: a trace, a snapshot or a timeline by its content; all else refused."""

import csv
import io
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tracebuild
from loading import SHARED_TRACES, shared_trace_names
from memorybuild import in_turn, with_totals
from snapshotbuild import MIB, Allocator
from stepscope.cli import cli

CATEGORY_COUNT = 8
WITHOUT_MEMORY = json.dumps(tracebuild.document(rows=[["cpu_op", "aten::mm", 0, 1]])).encode()


def _run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["memory", *(str(argument) for argument in arguments)])


def _trace(path: Path, rows: list[Any]) -> Path:
    path.write_text(json.dumps(tracebuild.document(rows=rows)))
    return path


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    rows: list[Any] = [["cpu_op", "aten::mm", 0, 2.5]]
    rows += [["user_annotation", f"ProfilerStep#{n}", 4 * n, 4] for n in range(3)]
    events = [event for n in range(3) for event in (f"+{MIB}@{n}", "+512@99", "-512@99")]
    return _trace(tmp_path / "trace.json", [*rows, *with_totals(events, reserved=8 * MIB)])


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    allocator = Allocator()
    allocator.alloc(3 * MIB, "embedding", "model")
    allocator.free(allocator.alloc(2 * MIB, "relu", "forward"))
    allocator.out_of_memory(50 * MIB, 1, "matmul")
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(allocator.snapshot()))
    return path


@pytest.fixture
def timeline(tmp_path: Path) -> Path:
    sizes = [[0, 1000, *[0] * (CATEGORY_COUNT - 1)], [0, 1000, 0, 0, 500, *[0] * 4]]
    path = tmp_path / "memory.json"
    path.write_text(json.dumps([[100, 120], sizes]))
    return path


def test_of_a_trace_it_tells_peak_holders_growth_and_what_is_unused(trace: Path) -> None:
    result = _run(trace)
    assert result.exit_code == 0, result.output
    assert "CUDA 0 held at most 3.00 MiB of 8.00 MiB reserved" in result.stdout
    assert "aten::mm" in result.stdout
    for title in ("Memory at the peak, by operator", "Growth", "Suspected leaks", "Reserved and"):
        assert title in result.stdout
    assert "no Python calls were recorded" in " ".join(result.stdout.split())


def test_of_a_snapshot_it_tells_holders_fragments_and_why_it_ran_out(snapshot: Path) -> None:
    result = _run(snapshot)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "Tensors on device 0 held at most 5.00 MiB of 20.0 MiB reserved, and 3.00 MiB" in told
    assert "model.py:7:model;embedding.py:7:embedding" in told
    assert "It ran out of memory 1 time: Neither the allocator nor the device had so much." in told


def test_of_a_timeline_it_tells_what_memory_is_for(timeline: Path) -> None:
    told = " ".join(_run(timeline).stdout.split())
    assert "At most 1.46 KiB were held, 20.0 µs after the first event; 66.7 %" in told
    assert "of that: parameter." in told
    assert "temporary" in told


@pytest.mark.parametrize("name", ["trace", "snapshot", "timeline"])
def test_json_has_every_number_exact(name: str, request: pytest.FixtureRequest) -> None:
    document = json.loads(_run(request.getfixturevalue(name), "--format", "json").stdout)
    assert document["what"] == name
    tables = document["tables"]
    assert document["summary"]
    most = {
        "trace": lambda: tables["peak"]["rows"][0]["allocated_bytes"] == 3 * MIB + 512,
        "snapshot": lambda: tables["peak"]["rows"][0]["peak_bytes"] == 5 * MIB,
        "timeline": lambda: tables["categories"]["rows"][0]["at_peak_bytes"] == 1000,
    }
    assert most[name]()


@pytest.mark.parametrize("name", ["trace", "snapshot", "timeline"])
def test_markdown_has_a_table_for_each_that_has_rows(
    name: str, request: pytest.FixtureRequest
) -> None:
    result = _run(request.getfixturevalue(name), "--format", "markdown")
    assert result.stdout.startswith(f"# Memory of a {name}\n")
    assert "| --- |" in result.stdout


def test_csv_is_one_table_with_all_its_columns(snapshot: Path) -> None:
    result = _run(snapshot, "--format", "csv", "--table", "holders")
    (row, other) = csv.DictReader(io.StringIO(result.stdout))
    assert row["held_bytes"] == str(3 * MIB)
    assert other["stack"] == "forward.py:7:forward;relu.py:7:relu"
    refused = _run(snapshot, "--format", "csv", "--table", "leaks")
    assert refused.exit_code == 2
    assert "a snapshot has no table 'leaks'; it has peak, holders" in refused.stderr


def test_a_table_is_named_for_csv_only(snapshot: Path) -> None:
    result = _run(snapshot, "--table", "holders")
    assert result.exit_code == 2
    assert "--table needs --format csv" in result.stderr


def test_it_shows_as_many_rows_as_are_asked_for(snapshot: Path, tmp_path: Path) -> None:
    output = tmp_path / "report.txt"
    assert _run(snapshot, "--top", "1", "--output", output).exit_code == 0
    assert "and 1 more row" in output.read_text(encoding="utf-8")


def test_old_traces_are_explained_and_not_empty(tmp_path: Path) -> None:
    rows: list[Any] = [["Operator", "aten::mm", 0, 9], *in_turn(["+512", "-512"])]
    told = " ".join(_run(_trace(tmp_path / "old.json", rows)).stdout.split())
    assert "CUDA 0 held 512 B more than at the beginning" in told
    assert "PyTorch before 1.10 recorded neither total memory nor addresses" in told


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pickle.dumps(print), "This pickle is refused: It contains code"),
        (pickle.dumps([1, 2]), "This is not a memory snapshot"),
        (pickle.dumps({"weights": 1}), "This is not a memory snapshot"),
        (b"hello", "not JSON"),
        (b"", "empty"),
        (b'[["a", 1]]', "None of its events"),
        (b"[[1, 2], [3]]", "This is not a memory timeline"),
        (WITHOUT_MEMORY, "no memory was recorded. To record it: torch.profiler.profile("),
    ],
)
def test_anything_else_is_refused_in_one_line(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    result = _run(path)
    assert result.exit_code == 2
    assert complaint in result.stderr
    assert result.stderr.count("\n") == 1
    assert not result.stdout


def test_a_snapshot_of_nothing_says_so(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    told = " ".join(_run(path).stdout.split())
    assert told.startswith("No history was recorded: call torch.cuda.memory._record_memory_history")


def test_a_folder_of_several_traces_is_refused(tmp_path: Path) -> None:
    for name in ("a.1.pt.trace.json", "b.1.pt.trace.json"):
        _trace(tmp_path / name, with_totals(["+8@1"]))
    result = _run(tmp_path)
    assert result.exit_code == 2
    assert "has 2 traces: specify one" in result.stderr


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    result = _run(tmp_path / "nothing")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


def test_help_teaches_how_to_record_each() -> None:
    told = _run("--help").stdout
    for call in (
        "profile_memory=True",
        "torch.cuda.memory._record_memory_history(",
        'torch.cuda.memory._dump_snapshot("snapshot.pickle")',
        'prof.export_memory_timeline("memory.json.gz"',
    ):
        assert call in told


@pytest.mark.parametrize("name", shared_trace_names("tracelens") + shared_trace_names("kineto"))
def test_real_traces_are_told_of(name: str) -> None:
    for form in ("text", "markdown", "json"):
        result = _run(SHARED_TRACES / name, "--format", form)
        assert result.exit_code in {0, 2}, result.output
        assert result.exit_code == 0 or "no memory was recorded" in result.stderr
