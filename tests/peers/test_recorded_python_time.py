"""Python's time between operators, in a recording of code whose parts are known."""

import subprocess
import sys
from pathlib import Path

import pytest

from loading import trace_at
from stepscope.analyses.host.function_costs import function_costs
from stepscope.analyses.host.python_time import python_time
from stepscope.model.trace import Trace

pytest.importorskip("torch")
pytestmark = [pytest.mark.recording, pytest.mark.slow]
NS_PER_MS = 1_000_000
WAIT_MS = 20
SCRIPT = """
import gc
import sys
import time

import numpy as np
import torch
import torch.profiler._cupti_monitor


def wait():
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until:
        pass


def train():
    rng = np.random.default_rng(0)
    for number in range(3):
        with torch.profiler.record_function(f"ProfilerStep#{number}"):
            np.sort(rng.random(200_000))
            torch.ones(8).sum()
            wait()
            gc.collect()


config = torch._C._profiler._ExperimentalConfig(record_python_gc_info=True)
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, experimental_config=config
) as profile:
    train()
profile.export_chrome_trace(sys.argv[1])
"""
"""Without a schedule: with one and `record_python_gc_info`, torch 2.13 crashes."""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("recording")
    script, path = folder / "train.py", folder / "trace.json"
    script.write_text(SCRIPT)
    subprocess.run([sys.executable, str(script), str(path)], check=True, capture_output=True)
    return trace_at(path)


def test_each_part_is_found_in_every_step(recording: Trace) -> None:
    table = python_time(recording)
    spent = table.pivot_table(index="step", columns="library", values="duration_ns", fill_value=0)
    assert len(spent) == 3
    assert (spent["user code"] >= WAIT_MS * NS_PER_MS).all()
    assert (spent["numpy"] > 0.1 * NS_PER_MS).all()
    calls = recording.python_calls
    collections = calls[(calls["name"] == "Python GC").to_numpy()]
    assert len(collections) >= 3
    steps = recording.steps
    for step, start_ns, end_ns in zip(
        steps["number"], steps["start_ns"], steps["end_ns"], strict=True
    ):
        own = collections[(collections["start_ns"] >= start_ns) & (collections["end_ns"] <= end_ns)]
        assert spent["garbage collection"][step] >= own["duration_ns"].sum()


def test_the_function_that_waits_is_the_users_longest(recording: Trace) -> None:
    table = function_costs(recording)
    users = table[table["is_users"]].sort_values("host_self_ns")
    assert set(users["function"]) >= {"wait", "train"}
    waiting = users[users["function"] == "wait"].iloc[0]
    assert (Path(waiting["file"]).name, waiting["line"]) == ("train.py", 11)
    assert waiting["call_count"] == 3
    assert waiting["host_self_ns"] >= 3 * WAIT_MS * NS_PER_MS
    training = users[users["function"] == "train"].iloc[0]
    assert training["host_total_ns"] >= waiting["host_total_ns"]
