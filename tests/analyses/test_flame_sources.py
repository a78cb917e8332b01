"""What the flame graphs of a recording are made of: its calls, its modules, its memory."""

import pytest

from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from memorybuild import memory
from stepscope.analyses.flames.flame_graphs import (
    EARLIER,
    NOT_LAUNCHED,
    OUTSIDE,
    OUTSIDE_MODULES,
    UNASSIGNED,
    UNRECORDED,
    device_calls_tree,
    host_calls_tree,
    memory_tree,
    modules_tree,
    peak_of,
)
from stepscope.analyses.flames.flame_tree import KINDS, FlameTree
from stepscope.analyses.host.host_call_tree import host_tree
from stepscope.analyses.memory.at_peak import memory_at_peak
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.model.trace import Trace

PYTHON = {"Python parent id": None}
CALLS = [
    ["python_function", "train.py(7): main", 0, 100],
    ["python_function", "nn.Module: Linear_0", 10, 60],
    ["cpu_op", "aten::mm", 20, 30],
    ["cuda_runtime", "cudaLaunchKernel", 30, 10, {"correlation": 1}],
    ["kernel", "gemm", 60, 40, {"correlation": 1}],
    ["kernel", "lost", 110, 5, {"correlation": 9}],
]
SAMPLES = ("masking/numpy", "language_model/with_labels")


def lines(tree: FlameTree) -> list[str]:
    """Read a tree as its paths: name, kind, own value and calls of each node with either."""
    kinds, paths, found = list(KINDS), list[str](), []
    for row in range(len(tree)):
        above = f"{paths[tree.parent[row]]} > " if tree.parent[row] >= 0 else ""
        paths.append(above + tree.names[tree.name[row]])
        if tree.self_values[0, row] or tree.calls[0, row]:
            kind = kinds[tree.kind[row]]
            found.append(f"{paths[row]} [{kind}] {tree.self_values[0, row]} ×{tree.calls[0, row]}")
    return found


def test_the_hosts_time_is_every_calls_own() -> None:
    assert lines(host_calls_tree(trace_of(CALLS))) == [
        "train.py(7): main [user] 40000 ×1",
        "train.py(7): main > nn.Module: Linear_0 [module] 30000 ×1",
        "train.py(7): main > nn.Module: Linear_0 > aten::mm [operator] 20000 ×1",
        "train.py(7): main > nn.Module: Linear_0 > aten::mm > cudaLaunchKernel [runtime] 10000 ×1",
    ]


def test_the_devices_time_stands_below_the_call_that_launched_it() -> None:
    tree = device_calls_tree(trace_of(CALLS))
    launch = "train.py(7): main > nn.Module: Linear_0 > aten::mm > cudaLaunchKernel"
    assert lines(tree)[-2:] == [
        f"{launch} > gemm [kernel] 40000 ×1",
        f"{NOT_LAUNCHED} > lost [kernel] 5000 ×1",
    ]
    assert tree.whole() == [45000]


def test_modules_and_what_is_none_are_all_time() -> None:
    trace = trace_of(CALLS)
    assert lines(modules_tree(trace, "host", "all")) == [
        "Linear_0 [module] 60000 ×1",
        f"{OUTSIDE_MODULES} [rest] 40000 ×0",
    ]
    assert lines(modules_tree(trace, "host", "backward")) == ["Linear_0 [module] 0 ×1"]


MEMORY = [
    ["python_function", "train.py(7): main", 0, 100],
    ["cpu_op", "aten::mm", 20, 30],
    memory(25, "+512@1"),
    memory(60, "+256@2"),
    memory(70, "-128@3"),
    memory(110, "+64@4"),
]


def test_memory_at_its_peak_stands_below_what_allocated_it() -> None:
    trace = trace_of(MEMORY)
    tree = memory_tree(trace, peak_of(trace, None))
    assert [line for line in lines(tree) if " 0 ×" not in line] == [
        "train.py(7): main [user] 256 ×1",
        "train.py(7): main > aten::mm [operator] 512 ×1",
        f"{EARLIER} [rest] 128 ×1",
    ]


def test_memory_beyond_all_calls_and_of_no_record_has_nodes_of_its_own() -> None:
    trace = trace_of(
        [["cpu_op", "aten::mm", 20, 30], memory(5, "+64@1", **{"Total Allocated": 164})]
    )
    tree = memory_tree(trace, peak_of(trace, "CUDA 0"))
    assert lines(tree) == [f"{OUTSIDE} [rest] 64 ×1", f"{UNRECORDED} [rest] 100 ×0"]


def test_a_device_that_was_not_recorded_is_named() -> None:
    with pytest.raises(UsageError, match="there is CUDA 0"):
        peak_of(trace_of(MEMORY), "CUDA 7")


def _all_sums_hold(trace: Trace) -> None:
    host, device = host_calls_tree(trace), device_calls_tree(trace)
    assert host.whole() == [int(host_tree(trace).self_ns.sum())]
    assert device.whole() == [int(trace.device_events["duration_ns"].sum())]
    try:
        every = modules_tree(trace, "host", "all")
    except MissingDataError:
        pass
    else:
        parts = [modules_tree(trace, "host", phase) for phase in ("forward", "backward", "rerun")]
        outside = [
            int(every.self_values[0, row])
            for row in range(len(every))
            if every.names[every.name[row]] == OUTSIDE_MODULES
        ]
        assert every.whole() == host.whole()
        assert sum(part.whole()[0] for part in parts) + sum(outside) == every.whole()[0]
        assert UNASSIGNED not in parts[0].names
    if len(trace.memory):
        for peak in memory_at_peak(trace):
            known = peak.earlier_bytes + peak.recorded_bytes
            tree = memory_tree(trace, peak)
            if peak.unrecorded_bytes >= 0:
                assert tree.whole() == [known + int(peak.unrecorded_bytes)]


@pytest.mark.parametrize("name", SAMPLES)
def test_flame_graphs_of_samples_leave_nothing_out(name: str) -> None:
    [file] = (SAMPLE_LOGS / name).glob("*.json.gz")
    _all_sums_hold(trace_at(file))


@pytest.mark.parametrize("name", shared_trace_names())
def test_flame_graphs_of_real_traces_leave_nothing_out(name: str) -> None:
    _all_sums_hold(trace_at(SHARED_TRACES / name))
