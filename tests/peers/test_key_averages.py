"""The operator table against torch's `key_averages()` of the same profile, recorded here."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loading import rows_of, trace_at
from stepscope.analyses.operator_table import operator_table
from stepscope.trace import Trace

torch = pytest.importorskip("torch")
profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.recording
US = 1000


class Cost(NamedTuple):
    calls: int
    total_ns: int
    self_ns: int


class Recording(NamedTuple):
    trace: Trace
    profile: Any


def _record(path: Path, **options: Any) -> Recording:
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.BatchNorm2d(8),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(8 * 36, 10),
    )
    optimizer = torch.optim.Adam(model.parameters())
    samples = torch.utils.data.TensorDataset(torch.randn(20, 3, 8, 8), torch.arange(20) % 10)
    batches = torch.utils.data.DataLoader(samples, batch_size=4)
    stages = profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, schedule=stages, **options) as recording:
        for images, labels in batches:
            with profiler.record_function("forward"), profiler.record_function("forward"):
                output = model(images)
            loss = torch.nn.functional.cross_entropy(output, labels)
            torch.cat([images[:2], images])  # lists of tensors among the inputs
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recording.step()
    recording.export_chrome_trace(str(path))
    return Recording(trace_at(path), recording)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A small training on the CPU, recorded now: its trace, and the profile that torch made."""
    path = tmp_path_factory.mktemp("recording") / "trace.json"
    return _record(path, record_shapes=True, profile_memory=True)


def _theirs(averages: Any, *, with_shapes: bool = False) -> dict[tuple[str, ...], Cost]:
    return {
        (
            average.key,
            "annotation" if average.is_user_annotation else "operator",
            json.dumps(average.input_shapes, separators=(",", ":")) if with_shapes else "",
        ): Cost(
            average.count,
            round(average.cpu_time_total * US),
            round(average.self_cpu_time_total * US),
        )
        for average in averages
    }


def _shapes(dims: str | None) -> str:
    """`Input Dims` as `key_averages` groups by it: a list of tensors has no shape there."""
    inputs = json.loads(dims) if dims is not None else []
    flat = [[] if shape and isinstance(shape[0], list) else shape for shape in inputs]
    return json.dumps(flat, separators=(",", ":"))


def test_calls_self_and_total_are_those_of_key_averages(recording: Recording) -> None:
    ours = {
        (row.name, row.kind, ""): Cost(row.call_count, row.host_total_ns, row.host_self_ns)
        for row in rows_of(operator_table(recording.trace))
    }
    assert ours == _theirs(recording.profile.key_averages())


def test_the_recording_has_what_makes_the_comparison_hard(recording: Recording) -> None:
    # an only child of its own name, steps, annotations, nesting, more than one call
    averages = _theirs(recording.profile.key_averages())
    assert averages["forward", "annotation", ""].calls == 3
    assert len(recording.trace.annotations.query("name == 'forward'")) == 6
    assert averages["ProfilerStep*", "annotation", ""].calls == 3
    assert averages["aten::convolution_backward", "operator", ""].calls == 3
    assert len(averages) > 60


def test_grouped_by_shape_it_is_key_averages_too(recording: Recording) -> None:
    # key_averages sees no shapes within a list of tensors; this table does, so is finer there
    ours: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
    table = operator_table(recording.trace, by="shape")
    for row in rows_of(table):
        sums = ours[row.name, row.kind, _shapes(row.input_dims)]
        sums[0] += row.call_count
        sums[1] += row.host_total_ns
        sums[2] += row.host_self_ns
    theirs = _theirs(recording.profile.key_averages(group_by_input_shape=True), with_shapes=True)
    assert {key: Cost(*sums) for key, sums in ours.items()} == theirs
    assert len(table) > len(operator_table(recording.trace)) + 5
    cat = table[table["name"] == "aten::cat"]
    assert "[[2,3,8,8],[4,3,8,8]]" in "".join(cat["input_dims"])


def test_with_stacks_calls_and_totals_of_operators_stay_those_of_key_averages(
    tmp_path: Path,
) -> None:
    # key_averages then counts Python functions as calls, too, and takes them off the self time
    recording = _record(tmp_path / "trace.json", with_stack=True, with_modules=True)
    operators = operator_table(recording.trace).query("kind == 'operator'")
    theirs = _theirs(recording.profile.key_averages())
    assert len(operators) > 40
    for row in rows_of(operators):
        cost = theirs[row.name, "operator", ""]
        assert (row.call_count, row.host_total_ns) == (cost.calls, cost.total_ns), row.name
