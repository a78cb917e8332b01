"""`stepscope stacks`: collapsed lines and speedscope's files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.host.call_stacks import call_stacks
from stepscope.analyses.host.host_call_tree import host_flame
from stepscope.base.errors import MissingDataError
from stepscope.cli import cli
from stepscope.render import speedscope, stack_file

ROWS: list[Any] = [
    ["python_function", "train.py(7): main", 0, 100],
    ["python_function", "my model.py(3): for;ward", 10, 80],
    ["cpu_op", "aten::mm", 20, 30],
    ["cuda_runtime", "cudaLaunchKernel", 25, 5, {"correlation": 1}],
    ["kernel", "gemm", 60, 40, {"correlation": 1}],
    ["cpu_op", "aten::add", 60, 0.9],
    ["python_function", "triton/runtime/jit.py(9): run", 70, 10],
    ["cuda_runtime", "cuLaunchKernelEx", 72, 5, {"correlation": 2}],
    ["kernel", "triton_fused", 110, 50, {"correlation": 2}],
]


def _file(folder: Path, rows: list[Any]) -> str:
    return str(tracebuild.write(tracebuild.document(rows=rows), folder / "w.1.pt.trace.json"))


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["stacks", *arguments])


def test_collapsed_stacks_are_the_functions_around_each_call_and_its_own_time(
    tmp_path: Path,
) -> None:
    result = _run(_file(tmp_path, ROWS))
    assert result.exit_code == 0, result.output
    main, forward = "train.py(7):_main", "my_model.py(3):_for_ward"
    assert result.stdout.splitlines() == [
        f"{main} 39",
        f"{main};{forward} 25",
        f"{main};{forward} 5",
        f"{main};{forward} 5",
        f"{main};{forward};triton/runtime/jit.py(9):_run 5",
    ]


def test_device_time_is_the_operators_or_the_launchs_own(tmp_path: Path) -> None:
    target = tmp_path / "stacks.txt.gz"
    result = _run(_file(tmp_path, ROWS), "--metric", "self-device", "-o", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    main = "train.py(7):_main;my_model.py(3):_for_ward"
    assert gzip.decompress(target.read_bytes()).decode().splitlines() == [
        f"{main} 40",
        f"{main};triton/runtime/jit.py(9):_run 50",
    ]


def test_a_backward_call_has_the_stack_of_its_forward_operator() -> None:
    engine = "autograd::engine::evaluate_function: MmBackward0"
    numbers = {"Sequence number": 4, "Fwd thread id": 1}
    trace = trace_of(
        [
            ["python_function", "model.py(3): forward", 0, 100],
            ["cpu_op", "aten::mm", 10, 50, {"Sequence number": 4, "Fwd thread id": 0}],
            ["cpu_op", engine, 200, 50, {**numbers, "tid": 9}],
            ["cpu_op", "MmBackward0", 210, 30, {**numbers, "tid": 9}],
            ["cpu_op", "aten::mm", 215, 20, {"tid": 9}],
        ]
    )
    lines = list(stack_file.collapsed_lines(call_stacks(trace), "self-cpu"))
    assert lines == [f"model.py(3):_forward {us}\n" for us in (50, 10, 20)]


def test_speedscopes_file_is_as_its_schema_says(tmp_path: Path) -> None:
    target = tmp_path / "stacks.json"
    _run(_file(tmp_path, ROWS), "--format", "speedscope", "-o", str(target))
    document = json.loads(target.read_text())
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) == {
        *("$schema", "exporter", "name", "activeProfileIndex", "shared", "profiles")
    }
    frames = document["shared"]["frames"]
    assert {"name": "main", "file": "train.py", "line": 7} in frames
    assert {"name": "aten::mm"} in frames
    (profile,) = document["profiles"]
    assert (profile["type"], profile["unit"], profile["startValue"]) == (
        "sampled",
        "nanoseconds",
        0,
    )
    assert profile["endValue"] == sum(profile["weights"]) == 100_000
    named = [" > ".join(frames[frame]["name"] for frame in sample) for sample in profile["samples"]]
    assert dict(zip(named, profile["weights"], strict=True)) == {
        "main": 20_000,
        "main > for;ward": 39_100,
        "main > for;ward > aten::mm": 25_000,
        "main > for;ward > aten::mm > cudaLaunchKernel": 5_000,
        "main > for;ward > aten::add": 900,
        "main > for;ward > run": 5_000,
        "main > for;ward > run > cuLaunchKernelEx": 5_000,
    }


@pytest.mark.parametrize("name", shared_trace_names())
def test_real_traces_make_files_that_hold_all_time(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    flame = host_flame(trace)
    for metric, own_ns in (
        ("self-cpu", flame.host_self_ns),
        ("self-device", flame.device_self_ns),
    ):
        text = "".join(speedscope.parts(flame, metric, "worker"))  # type: ignore[arg-type]
        (profile,) = json.loads(text)["profiles"]
        assert sum(profile["weights"]) == own_ns.sum() == profile["endValue"]
        assert len(profile["samples"]) == len(profile["weights"])
    try:
        stacks = call_stacks(trace)
    except MissingDataError:
        return
    lines = list(stack_file.collapsed_lines(stacks, "self-cpu"))
    assert all(int(line.rpartition(" ")[2]) > 0 for line in lines)


def test_a_recording_without_stacks_says_how_to_record_them(tmp_path: Path) -> None:
    target = tmp_path / "stacks.txt"
    result = _run(_file(tmp_path, [["cpu_op", "aten::mm", 0, 10]]), "-o", str(target))
    assert result.exit_code == 2
    assert "profile(with_stack=True)" in result.stderr
    assert not target.exists()
