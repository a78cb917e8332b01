"""Bad input to simulated steps: a stated refusal or a bounded answer, in each command."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import stepscope
from loading import trace_of
from logs import write_trace
from stepscope.base.errors import MissingDataError
from stepscope.cli import cli
from stepscope.replay.graph import replay_graph

Rows = Sequence[list[Any]]
STEP_US, STEPS = 10_000, range(4)


def steps() -> list[list[Any]]:
    return [["user_annotation", f"ProfilerStep#{n}", n * STEP_US, STEP_US] for n in STEPS]


def launched(delay_us: int = 50, *, has_launches: bool = True) -> list[list[Any]]:
    """Return a launch, a kernel and a wait in each step's time."""
    rows: list[list[Any]] = []
    for number in STEPS:
        at_us, ids = 5_000 + number * STEP_US, {"correlation": number + 1}
        end_us = at_us + delay_us + 3_000
        rows.append(["kernel", "gemm", at_us + delay_us, 3_000, {**ids, "stream": 7}])
        rows.append(["cpu_op", "aten::item", at_us - 900, 4_500])
        wait = ["cudaStreamSynchronize", at_us + 10, max(1, end_us - at_us)]
        rows.append(["cuda_runtime", *wait, {"correlation": 100 + number}])
        if has_launches:
            rows.append(["cuda_runtime", "cudaLaunchKernel", at_us, 5, ids])
    return rows


def in_a_circle(count: int = 20_000) -> list[list[Any]]:
    """Return launches and kernels of one moment; the later a launch, the earlier its kernel."""
    rows: list[list[Any]] = [["cpu_op", "aten::mm", 0, 10], ["kernel", "gemm", 4, 6]]
    for number in range(count):
        ids = {"correlation": count - number}
        rows.append(["cuda_runtime", "cudaLaunchKernel", 20, 0, {"correlation": number + 1}])
        rows.append(["kernel", "gemm", 20, 0, {**ids, "stream": 7}])
    return rows


STATED = "the links of launches, streams and waits form a circle"
BAD: dict[str, Rows] = {
    "no launches": [*steps(), *launched(has_launches=False)],
    "kernels 4 ms before their launches": [*steps(), *launched(-4_000)],
    "kernels 1 us before their launches": [*steps(), *launched(-1)],
    "no steps": launched(),
    "no host": [row for row in launched() if row[0] == "kernel"],
    "one kernel": [["kernel", "gemm", 0, 10, {"correlation": 1}]],
    "one operator": [["cpu_op", "aten::mm", 0, 10]],
    "one wait": [["cuda_runtime", "cudaDeviceSynchronize", 5, 5, {"correlation": 1}]],
    "one step": [["user_annotation", "ProfilerStep#1", 0, 0]],
    "a circle": in_a_circle(),
}
bad = pytest.mark.parametrize("name", BAD)


@bad
def test_the_graph_gives_the_recorded_times_or_states_its_refusal(name: str) -> None:
    trace = trace_of(BAD[name])
    if name == "a circle":
        with pytest.raises(MissingDataError, match=STATED):
            replay_graph(trace)
        return
    graph = replay_graph(trace)
    assert np.array_equal(graph.times(graph.weight_ns), graph.time_ns)


@bad
def test_whatif_prints_a_step_no_longer_than_the_recorded_one(name: str, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "worker.pt.trace.json", tuple(BAD[name]))
    options = ("--host", "0.5", "--device", "0.5", "--no-waits", "--format", "json")
    result = CliRunner().invoke(cli, ["whatif", str(path), *options])
    if result.exit_code:
        assert name == "a circle"
        assert (result.exit_code, STATED in result.stderr) == (2, True)
        return
    step = stepscope.whatif(stepscope.load(path), host=0.5, device=0.5, is_unblocked=True)
    assert 0 <= step.prediction.simulated_ns <= step.prediction.recorded_ns


@bad
def test_advice_promises_no_more_than_the_step(name: str, tmp_path: Path) -> None:
    path = write_trace(tmp_path / "worker.pt.trace.json", tuple(BAD[name]))
    report = stepscope.advise(stepscope.load(path)).report
    assert report.outcomes
    assert [outcome.rule for outcome in report.outcomes if outcome.status == "failed"] == []
    saved = [outcome.claim.net_share for outcome in report.outcomes if outcome.claim]
    assert all(0 <= share <= 1 for share in saved)
    assert sum(saved) <= 1 + 1e-9
