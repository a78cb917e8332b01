"""The critical path beside HTA's, on HTA's own test traces.

On the device both lead through the same work with the same waits. On the host HTA's edges weigh
nothing where the host does: between two outermost operators (Python, or another thread), in a call
that waits, and from the end of device work to the return of who waited for it. So HTA's path is
shorter than the step that it explains; ours is as long.
"""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, trace_at
from stepscope.analyses.idle.critical_path import CPU, NAMES, critical_path
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.replay.edges import Edge
from stepscope.replay.simulation import simulate

pytestmark = [pytest.mark.peer, pytest.mark.every]
ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv"
SEARCHED = (ENVIRONMENT / "peers", ENVIRONMENT / "pandas-2.2.3")
"""HTA, and the pandas under which it is fast: it runs in a process of its own."""
US = 1000
FOLDER = SHARED_TRACES / "hta" / "critical_path"
ALEXNET = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
PROGRAM = """
import json, logging, sys
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
folder, annotation = sys.argv[1:]
analysis = TraceAnalysis(trace_dir=folder)
[rank] = analysis.t.traces
graph, _ = analysis.critical_path_analysis(rank=rank, annotation=annotation, instance_id=0)
parts = graph.get_critical_path_breakdown()
found = parts.groupby("bound_by")["duration"].sum().to_dict()
print(json.dumps({"parts": found, "total": float(parts["duration"].sum())}))
"""


def _hta(folder: Path, annotation: str = "") -> dict[str, Any]:
    """HTA's path in microseconds: `parts` by what bounds them, and their `total`."""
    if not all(path.is_dir() for path in SEARCHED):
        pytest.skip("`make test` installs what HTA needs")
    environment = {
        "PATH": os.defpath,
        "HOME": str(folder),
        "PYTHONPATH": os.pathsep.join(map(str, SEARCHED)),
    }
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), annotation]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def _ours(path: Path) -> dict[str, float]:
    """What bounds our path, to microseconds; `running` is of the host, without waits."""
    found = critical_path(trace_at(path))
    total = np.bincount(found.bound, weights=found.duration_ns, minlength=len(NAMES)) / US
    on_host = (found.bound == CPU) & found.is_running
    running = float(found.duration_ns[on_host].sum() / US)
    return {**dict(zip(NAMES, total.tolist(), strict=True)), "running": running}


def _replayed(path: Path) -> dict[str, float]:
    """The path of the replay through the window, in microseconds by kind of edge."""
    replay = simulate(trace_at(path), [])
    graph, points = replay.graph, replay.points
    end = int(points[graph.time_ns[points].argmax()])
    passed, edges = graph.path(end, graph.weight_ns, graph.time_ns)
    at_ns = np.maximum(graph.time_ns[passed], replay.begin_ns)
    total = np.bincount(graph.edge[edges], weights=at_ns[:-1] - at_ns[1:], minlength=len(Edge)) / US
    return {kind.name: float(total[kind]) for kind in Edge}


def _only(folder: Path) -> Path:
    [path] = folder.glob("*.json.gz")
    return path


def test_on_the_device_the_path_is_htas() -> None:
    for name in ("cuda_event_sync", "cuda_event_sync_multi_stream"):
        theirs, ours = _hta(FOLDER / name)["parts"], _ours(_only(FOLDER / name))
        work = ours["compute"] + ours["copy"] + ours["memory_set"]  # all compute to HTA
        assert work == theirs["gpu_compute_bound"], name
        assert ours["launch"] == theirs["gpu_kernel_launch_overhead"], name
        assert ours["kernel_gap"] == theirs.get("gpu_kernel_kernel_overhead", 0), name


def _one_step(folder: Path) -> Path:
    """AlexNet's second measured pass as the one step of a trace."""
    with gzip.open(_only(FOLDER / "alexnet"), "rt") as file:
        document = json.load(file)
    passes = [e for e in document["traceEvents"] if e.get("name") == ALEXNET and "dur" in e]
    host = [event for event in passes if event["cat"] == "user_annotation"]
    host[-1]["name"] = "ProfilerStep#1"
    path = folder / "alexnet.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


def test_a_steps_path_is_htas_where_htas_edges_weigh_something(tmp_path: Path) -> None:
    path = _one_step(tmp_path)
    theirs, ours = _hta(tmp_path, "ProfilerStep"), _ours(path)
    parts = theirs["parts"]
    assert ours["compute"] + ours["memory_set"] == parts["gpu_compute_bound"]
    assert ours["launch"] == parts["gpu_kernel_launch_overhead"]
    between_streams, waiting_call = 1, 14
    assert ours["kernel_gap"] - between_streams == parts["gpu_kernel_kernel_overhead"], (
        "from the end of one stream's work to the beginning of the other's, which waited for it"
    )
    assert ours["running"] - waiting_call == parts["cpu_bound"], (
        "a cudaDeviceSynchronize that found the device idle takes 14 us all the same"
    )


def test_the_replays_path_is_htas_on_the_device(tmp_path: Path) -> None:
    folders = [FOLDER / name for name in ("cuda_event_sync", "cuda_event_sync_multi_stream")]
    cases = [(_hta(folder), _only(folder)) for folder in folders]
    alexnet = _one_step(tmp_path)
    for theirs, path in (*cases, (_hta(tmp_path, "ProfilerStep"), alexnet)):
        replay, parts = _replayed(path), theirs["parts"]
        assert replay["RUNS"] == parts["gpu_compute_bound"]
        assert replay["LAUNCHED"] == parts["gpu_kernel_launch_overhead"]
        assert replay["STREAM"] == parts.get("gpu_kernel_kernel_overhead", 0)
        assert replay["HOST"] == _ours(path)["cpu"]


def test_htas_path_is_shorter_than_the_step_and_ours_is_not(tmp_path: Path) -> None:
    path = _one_step(tmp_path)
    steps = step_breakdown(trace_at(path))
    assert sum(_ours(path)[name] for name in NAMES) == steps.duration_ns.sum() / US
    assert _hta(tmp_path, "ProfilerStep")["total"] < 0.99 * steps.duration_ns.sum() / US


def test_a_stream_that_pauses_is_no_overhead_between_kernels(tmp_path: Path) -> None:
    """HTA draws an edge from each kernel to the next on its stream, as heavy as the time between.

    Where no synchronization is recorded, the longest path leads along the collectives' stream,
    which does nothing most of the time: half of the step and more is "kernel-kernel overhead".
    """
    path = SHARED_TRACES / "hta" / "trace_diff" / "control" / "control.json.gz"
    (tmp_path / path.name).write_bytes(path.read_bytes())
    step_us = step_breakdown(trace_at(path)).duration_ns[0] / US
    assert _hta(tmp_path, "ProfilerStep")["parts"]["gpu_kernel_kernel_overhead"] > 0.5 * step_us
    found = critical_path(trace_at(path))
    gaps = (found.step == 0) & (found.bound == NAMES.index("kernel_gap"))
    assert found.duration_ns[gaps].sum() / US < 0.02 * step_us
