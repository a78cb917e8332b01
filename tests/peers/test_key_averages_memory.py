"""Memory of operators against torch's `key_averages()` of the same profile, recorded here."""

from pathlib import Path

import numpy as np
import pytest

from loading import rows_of, trace_at
from stepscope.analyses.memory.allocations import memory_allocations
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.operator_memory import memory_statistics

torch = pytest.importorskip("torch")
profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.recording


def test_increases_are_the_memory_of_key_averages(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(288, 4)
    )
    optimizer = torch.optim.Adam(model.parameters())
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, profile_memory=True) as recording:
        for _ in range(3):
            model(torch.randn(4, 3, 8, 8)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    path = tmp_path / "trace.json"
    recording.export_chrome_trace(str(path))
    trace = trace_at(path)
    theirs = {
        average.key: (average.count, average.cpu_memory_usage, average.self_cpu_memory_usage)
        for average in recording.key_averages()
        if not average.is_user_annotation
    }
    ours = rows_of(memory_statistics(trace))
    assert len(ours) > 20
    for row in ours:
        figures = (row.call_count, row.increase_bytes, row.self_increase_bytes)
        assert figures == theirs[row.operator], row.operator
    named = {row.operator for row in ours}
    rest = [of for name, of in theirs.items() if name not in named and name != "[memory]"]
    assert not any(any(figures[1:]) for figures in rest)


def test_on_the_cpu_the_total_is_what_was_allocated_under_the_profiler(tmp_path: Path) -> None:
    before = torch.empty(1 << 20, dtype=torch.uint8)
    with profiler.profile(profile_memory=True, acc_events=True) as recording:
        during = torch.empty(1 << 12, dtype=torch.uint8)
        del before  # of what it did not see allocated, torch does not tell the release
    path = tmp_path / "trace.json"
    recording.export_chrome_trace(str(path))
    trace = trace_at(path)
    assert during.numel() == 1 << 12
    (curve,) = [curve for curve in memory_curves(trace) if curve.device.type == "CPU"]
    assert np.isnan(curve.reserved_bytes).all()
    table = memory_allocations(trace)
    held = table[(table["state"] == "held") & (table["operator"] == "aten::empty")]
    assert held["bytes"].tolist() == [1 << 12]
    assert not (table["bytes"] == 1 << 20).any()
