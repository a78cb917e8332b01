"""The operator tables against torch's `key_averages()` of the same profile, recorded here."""

import json
from collections import defaultdict
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from loading import rows_of, trace_at
from stepscope.analyses.operators.operator_table import Grouping, operator_table
from stepscope.model.trace import Trace, trace_from_columns

torch = pytest.importorskip("torch")
profiler = pytest.importorskip("torch.profiler")
pytestmark = pytest.mark.recording
US = 1000
Key = tuple[str, ...]


class Cost(NamedTuple):
    calls: int
    host_total_ns: int
    host_self_ns: int
    device_total_ns: int
    device_self_ns: int
    host_total_bytes: int
    host_self_bytes: int
    device_total_bytes: int
    device_self_bytes: int
    flops: int


class Recording(NamedTuple):
    trace: Trace
    profile: Any


def _train(recording: Any, *, batches: int = 5) -> None:
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
    for images, labels in list(torch.utils.data.DataLoader(samples, batch_size=4))[:batches]:
        with profiler.record_function("forward"), profiler.record_function("forward"):
            output = model(images)
        loss = torch.nn.functional.cross_entropy(output, labels)
        torch.cat([images[:2], images])  # lists of tensors among the inputs
        torch.baddbmm(output.detach()[None], output[None], torch.randn(1, 10, 10))
        torch.mul(torch.add(images, images), 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        recording.step()


def _record(path: Path, **options: Any) -> Recording:
    stages = profiler.schedule(wait=1, warmup=1, active=3, repeat=1)
    activities = [profiler.ProfilerActivity.CPU]
    with profiler.profile(activities=activities, schedule=stages, **options) as recording:
        _train(recording)
    recording.export_chrome_trace(str(path))
    return Recording(trace_at(path), recording)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """A small training on the CPU, recorded now: its trace, and the profile that torch made."""
    path = tmp_path_factory.mktemp("recording") / "trace.json"
    return _record(path, record_shapes=True, profile_memory=True, with_flops=True)


@pytest.fixture(scope="module")
def with_stacks(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """The same with stacks, in torch's profile (`verbose`) and in the trace."""
    path = tmp_path_factory.mktemp("recording") / "trace.json"
    verbose = torch._C._profiler._ExperimentalConfig(verbose=True)  # noqa: SLF001 (no other way)
    return _record(
        path, with_stack=True, with_modules=True, profile_memory=True, experimental_config=verbose
    )


def _kind(average: Any) -> str:
    return "annotation" if average.is_user_annotation else "operator"


def _cost_of(average: Any) -> Cost:
    return Cost(
        average.count,
        round(average.cpu_time_total * US),
        round(average.self_cpu_time_total * US),
        round(average.device_time_total * US),
        round(average.self_device_time_total * US),
        average.cpu_memory_usage,
        average.self_cpu_memory_usage,
        average.device_memory_usage,
        average.self_device_memory_usage,
        average.flops,
    )


def _theirs(averages: Iterable[Any], *more: str) -> dict[Key, Cost]:
    found: dict[Key, Cost] = {}
    for average in averages:
        if average.key != "[memory]":  # what is allocated outside of all calls is in no row here
            others = (json.dumps(getattr(average, name), separators=(",", ":")) for name in more)
            found[average.key, _kind(average), *others] = _cost_of(average)
    return found


def _ours(table: pd.DataFrame, label: Any = None) -> dict[Key, Cost]:
    """The table's rows; those that torch does not tell apart are put together."""
    found: dict[Key, list[int]] = defaultdict(lambda: [0] * len(Cost._fields))
    for row in rows_of(table):
        key = (row.name, row.kind, *([label(row)] if label else []))
        figures = (row.call_count, *(getattr(row, name) for name in Cost._fields[1:]))
        for place, figure in enumerate(figures):
            found[key][place] += 0 if np.isnan(figure) else int(figure)
    return {key: Cost(*sums) for key, sums in found.items()}


def _shapes(row: Any) -> str:
    """`Input Dims` as `key_averages` groups by it: a list of tensors has no shape there."""
    inputs = json.loads(row.input_dims) if row.input_dims is not None else []
    flat = [[] if shape and isinstance(shape[0], list) else shape for shape in inputs]
    return json.dumps(flat, separators=(",", ":"))


def _counts_only_theirs(costs: dict[Key, Cost]) -> dict[Key, Cost]:
    """Without the operations of operators for which `with_flops` has no formula."""
    known = ("conv2d", "mm", "addmm", "bmm", "baddbmm", "mul", "add")
    names = {f"aten::{name}" for name in known}
    return {key: cost if key[0] in names else cost._replace(flops=0) for key, cost in costs.items()}


def test_calls_times_memory_and_flops_are_those_of_key_averages(recording: Recording) -> None:
    ours = _counts_only_theirs(_ours(operator_table(recording.trace)))
    assert ours == _theirs(recording.profile.key_averages())


def test_the_recording_has_what_makes_the_comparison_hard(recording: Recording) -> None:
    # an only child of its own name, steps, annotations, nesting, memory, operations
    averages = _theirs(recording.profile.key_averages())
    assert averages["forward", "annotation"].calls == 3
    assert len(recording.trace.annotations.query("name == 'forward'")) == 6
    assert averages["ProfilerStep*", "annotation"].calls == 3
    assert averages["aten::convolution_backward", "operator"].calls == 3
    assert averages["aten::empty", "operator"].host_total_bytes > 0
    for name in ("conv2d", "addmm", "mm", "baddbmm", "add", "mul"):
        assert averages[f"aten::{name}", "operator"].flops > 0, name
    assert len(averages) > 60


def test_grouped_by_shape_it_is_key_averages_too(recording: Recording) -> None:
    # key_averages sees no shapes within a list of tensors; this table does, so is finer there
    table = operator_table(recording.trace, by="shape")
    theirs = _theirs(recording.profile.key_averages(group_by_input_shape=True), "input_shapes")
    assert _counts_only_theirs(_ours(table, _shapes)) == theirs
    assert len(table) > len(operator_table(recording.trace)) + 5
    cat = table[table["name"] == "aten::cat"]
    assert "[[2,3,8,8],[4,3,8,8]]" in "".join(cat["input_dims"])


def _operators_alone(profile: Any) -> Any:
    """torch's own tree of the profile's events without the Python functions.

    With stacks, key_averages() counts Python functions as calls, too, and takes them off the self
    time and memory of what called them.
    """
    events = [copy(event) for event in profile.events() if not event.is_python_function]
    for event in events:
        event.cpu_children, event.cpu_parent = [], None
    alone = type(profile.events())(events, use_device=None, profile_memory=True)
    alone._populate_cpu_children()  # noqa: SLF001 (_build_tree would give stacks once more)
    alone._remove_dup_nodes()  # noqa: SLF001
    alone._tree_built = True  # noqa: SLF001
    return alone


def _node_around(event: Any) -> Any:
    while event is not None and event.scope != 1:
        event = event.cpu_parent
    return event


def _with_makers_stacks(events: Any) -> Any:
    """The events, in the backward pass with the stack of the operator that made the node.

    That is `EventList._set_backward_stacktraces`, but for the last operator that has the node's
    number in place of the first.
    """
    nodes = [(event, _node_around(event)) for event in events]
    stacks = {
        (event.sequence_nr, event.thread): event.stack
        for event, node in nodes
        if node is None and not event.fwd_thread  # the engine's own calls have numbers of nodes
    }
    for event, node in nodes:
        if node is not None:
            event.stack = stacks.get((node.sequence_nr, node.fwd_thread), [])
    return events


def _stack_of(row: Any) -> str:
    return json.dumps(row.stack.split(";") if row.stack else [], separators=(",", ":"))


def _by_stack(recording: Recording, by: Grouping, *, is_written: bool) -> dict[Key, Cost]:
    """Our table; with the stacks that the file holds as text, or with those that enclose calls."""
    columns = recording.trace.columns
    arguments = dict(columns.arguments)
    assert "Call stack" in arguments
    if not is_written:
        del arguments["Call stack"]
    trace = trace_from_columns(replace(columns, arguments=arguments), worker="worker")
    return _counts_only_theirs(_ours(operator_table(trace, by=by), _stack_of))


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize(("by", "frames"), [("stack", 5), ("full_stack", 256)])
def test_grouped_by_stack_it_is_key_averages_too(
    with_stacks: Recording, by: Grouping, frames: int, *, is_written: bool
) -> None:
    alone = _with_makers_stacks(_operators_alone(with_stacks.profile))
    theirs = _theirs(alone.key_averages(group_by_stack_n=frames), "stack")
    ours = _by_stack(with_stacks, by, is_written=is_written)
    assert ours == theirs
    assert len({key for key in ours if key[2] != "[]"}) > 60


def test_key_averages_gives_a_backward_operator_the_first_stack_with_its_number(
    with_stacks: Recording,
) -> None:
    # operators that make no node share the number of the next that does: here, batch norm's count
    # of batches (`add_`), whose line torch shows for the gradient of batch norm
    ours = _by_stack(with_stacks, "stack", is_written=True)
    theirs = _theirs(
        _operators_alone(with_stacks.profile).key_averages(group_by_stack_n=5), "stack"
    )
    name = "NativeBatchNormBackward0"
    (right,) = (json.loads(key[2]) for key in ours if key[0] == name)
    (wrong,) = (json.loads(key[2]) for key in theirs if key[0] == name)
    assert "batch_norm" in right[0]
    assert "add_" in wrong[0]


def test_with_stacks_totals_stay_those_of_key_averages(with_stacks: Recording) -> None:
    operators = operator_table(with_stacks.trace).query("kind == 'operator'")
    theirs = _theirs(with_stacks.profile.key_averages())
    assert len(operators) > 40
    for row in rows_of(operators):
        cost = theirs[row.name, "operator"]
        assert (row.call_count, row.host_total_ns) == (cost.calls, cost.host_total_ns), row.name
        assert row.host_total_bytes == cost.host_total_bytes
