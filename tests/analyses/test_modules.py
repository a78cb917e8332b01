"""Modules as a tree: forward, backward, run again; from torch's names, Lightning's, or a user's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.call_paths import is_outermost, preorder
from stepscope.analyses.host.module_table import class_table, module_table
from stepscope.analyses.host.module_tree import module_tree
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

US = 1000
ENGINE = "autograd::engine::evaluate_function: "


def _module(name: str, start: float, duration: float) -> list[Any]:
    return ["python_function", f"nn.Module: {name}", start, duration]


def _forward(name: str, start: float, duration: float, number: int) -> list[Any]:
    more = {"Sequence number": number, "Fwd thread id": 0}
    return ["cpu_op", name, start, duration, more]


def _backward(name: str, start: float, duration: float, number: int | None) -> list[list[Any]]:
    """The engine's call, and in the middle of it the function."""
    more = {"Sequence number": number, "Fwd thread id": 1} if number is not None else {}
    quarter = duration / 4
    return [
        ["cpu_op", ENGINE + name, start, duration, more],
        ["cpu_op", name, start + quarter, 2 * quarter, more],
    ]


def _launch(start: float, duration: float, number: int, device_us: float) -> list[list[Any]]:
    more = {"correlation": number}
    return [
        ["cuda_runtime", "cudaLaunchKernel", start, duration, more],
        ["kernel", "gemm", 1000 + 100 * number, device_us, more],
    ]


def _training() -> Trace:
    return trace_of(
        [
            ["python_function", "train.py(9): step", 0, 900],
            _module("Net_0", 10, 200),
            _module("Linear_0", 20, 60),
            ["python_function", "torch/nn/modules/linear.py(130): forward", 25, 50],
            _forward("aten::linear", 30, 40, 0),
            _forward("aten::addmm", 35, 20, 0),
            *_launch(40, 5, 1, 50),
            _module("Linear_1", 100, 60),
            _forward("aten::linear", 110, 40, 1),
            *_launch(120, 5, 2, 60),
            ["python_function", "<built-in method run_backward of object at 0x1>", 300, 500],
            *_backward("AddmmBackward0", 310, 80, 1),
            *_launch(340, 5, 3, 70),
            *_backward("torch::autograd::AccumulateGrad", 400, 40, None),
            *_backward("AddmmBackward1", 450, 200, 0),
            _module("Linear_0", 505, 60),  # activations are computed again
            _forward("aten::linear", 510, 40, 2),
            *_launch(515, 5, 4, 80),
            *_launch(570, 5, 5, 90),
        ]
    )


def _costs(trace: Trace) -> list[tuple[Any, ...]]:
    """Module, calls, forward host self/total, device self/total, backward host and device."""
    return [
        (
            row.path,
            row.call_count,
            (row.forward_host_self_ns // US, row.forward_host_total_ns // US),
            (row.forward_device_self_ns // US, row.forward_device_total_ns // US),
            (row.backward_host_self_ns // US, row.backward_host_total_ns // US),
            (row.backward_device_self_ns // US, row.backward_device_total_ns // US),
        )
        for row in rows_of(module_table(trace))
    ]


def test_forward_and_backward_go_to_the_module_of_the_operator() -> None:
    assert _costs(_training()) == [
        ("Net_0", 1, (80, 200), (0, 110), (0, 260), (0, 160)),
        ("Net_0/Linear_0", 1, (60, 60), (50, 50), (140, 140), (90, 90)),
        # 40 us of adding up gradients follow the backward function that made them
        ("Net_0/Linear_1", 1, (60, 60), (60, 60), (120, 120), (70, 70)),
    ]


def test_what_is_run_again_in_the_backward_pass_is_no_forward_call() -> None:
    table = module_table(_training())
    linear = table[table["module"] == "Linear_0"].iloc[0]
    assert linear["call_count"] == 1
    assert (linear["rerun_count"], linear["rerun_host_total_ns"]) == (1, 60 * US)
    assert linear["rerun_device_total_ns"] == 80 * US
    assert (table["rerun_count"] == [0, 1, 0]).all()


def test_time_in_no_operator_and_operators_of_its_own() -> None:
    table = module_table(_training())
    assert (table["forward_python_self_ns"] == [80 * US, 20 * US, 20 * US]).all()
    assert (table["operator_count"] == [0, 1, 1]).all()


def test_operators_of_a_module_that_an_operator_calls_are_its_own() -> None:
    trace = trace_of(
        [
            ["cpu_op", "CheckpointFunction", 0, 100],
            _module("Linear_0", 10, 60),
            ["cpu_op", "aten::linear", 20, 30],
            ["cpu_op", "aten::addmm", 25, 20],
        ]
    )
    (linear,) = rows_of(module_table(trace))
    assert (linear.operator_count, linear.forward_python_self_ns) == (1, 30 * US)


def test_a_class_is_all_its_instances_and_counts_nested_ones_once() -> None:
    trace = trace_of(
        [
            _module("Sequential_0", 0, 100),
            _module("Sequential_1", 10, 50),
            _module("ReLU_0", 20, 10),
            _module("Sequential_0", 200, 100),
        ]
    )
    table = class_table(trace)
    assert list(table["class_name"]) == ["Sequential", "ReLU"]
    assert list(table["module_count"]) == [2, 1]
    assert list(table["call_count"]) == [3, 1]
    assert list(table["forward_host_total_ns"]) == [200 * US, 10 * US]
    assert list(table["forward_host_self_ns"]) == [190 * US, 10 * US]


def test_memory_is_that_of_the_innermost_module_and_of_those_around() -> None:
    trace = trace_of(
        [
            _module("Net_0", 0, 100),
            _module("Linear_0", 10, 50),
            *(
                ["cpu_instant_event", "[memory]", at, None, {"Bytes": size, "Device Type": kind}]
                for at, size, kind in ((5, 64, 0), (20, 512, 1), (30, -512, 1), (40, 256, 1))
            ),
        ]
    )
    table = module_table(trace)
    assert list(table["host_allocated_bytes"]) == [64, 0]
    assert list(table["device_allocated_bytes"]) == [768, 768]
    assert list(table["device_net_bytes"]) == [256, 256]
    assert module_table(_training())["host_net_bytes"].isna().all()


def test_lightnings_names_are_modules_without_python_calls() -> None:
    name = "[pl][module]torch.nn.modules.linear.Linear: blocks.0.head"
    trace = trace_of(
        [
            ["cpu_op", "[pl][profile][Strategy]DDPStrategy.training_step", 0, 100],
            ["cpu_op", "[pl][module]my.Net: net", 10, 80],
            ["cpu_op", name, 20, 30],
            ["cpu_op", "aten::linear", 25, 20],
        ]
    )
    (net, linear) = rows_of(module_table(trace))
    assert (net.path, net.class_name, net.origin) == ("net", "Net", "Lightning")
    assert (linear.path, linear.class_name) == ("net/blocks.0.head", "Linear")
    assert (linear.forward_host_total_ns, linear.forward_python_self_ns) == (30 * US, 10 * US)


def test_without_modules_ranges_that_somebody_named_stand_in() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#3", 0, 100],
            ["user_annotation", "Optimizer.step#Adam.step", 60, 30],
            ["user_annotation", "encoder", 10, 40],
            ["user_annotation", "attention", 20, 20],
        ]
    )
    table = module_table(trace)
    assert list(table["path"]) == ["encoder", "encoder/attention"]
    assert set(table["origin"]) == {"record_function"}


def test_without_any_the_table_is_withheld() -> None:
    with pytest.raises(MissingDataError, match="module calls") as missing:
        module_table(trace_of([["cpu_op", "aten::mm", 0, 10]]))
    assert missing.value.remedy == "profile(with_stack=True)"


@pytest.mark.parametrize("name", shared_trace_names())
def test_on_real_traces_no_time_is_counted_twice(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table, tree = module_table(trace), module_tree(trace)
    except MissingDataError:
        return
    for kind in ("forward_host", "forward_device", "backward_host", "backward_device"):
        own, total = table[f"{kind}_self_ns"], table[f"{kind}_total_ns"]
        assert (own <= total).all()
        assert own.sum() == total[table["parent"] < 0].sum()
    assert (table["forward_python_self_ns"] <= table["forward_host_self_ns"]).all()
    assert (np.diff(table["depth"]) <= 1).all()
    calls = trace.host_calls["duration_ns"].sum() + trace.python_calls["duration_ns"].sum()
    assert table["forward_host_self_ns"].sum() + tree.rerun.host_ns.sum() <= calls
    assert class_table(trace)["forward_host_self_ns"].sum() == table["forward_host_self_ns"].sum()


FORESTS = st.lists(st.tuples(st.integers(-1, 20), st.integers(0, 2)), max_size=20)


@given(FORESTS)
def test_places_and_outermost_nodes_are_those_of_walking_the_tree(
    nodes: list[tuple[int, int]],
) -> None:
    parent = np.array([min(above, row - 1) for row, (above, _) in enumerate(nodes)], dtype=np.int64)
    kind = np.array([each for _, each in nodes], dtype=np.int64)
    depth = np.zeros(len(nodes), dtype=np.int64)
    for row in range(len(nodes)):
        depth[row] = depth[parent[row]] + 1 if parent[row] >= 0 else 0
    walked: list[int] = []
    outermost: list[bool] = [False] * len(nodes)

    def walk(row: int, above: frozenset[int]) -> None:
        walked.append(row)
        outermost[row] = int(kind[row]) not in above
        for child in np.flatnonzero(parent == row).tolist():
            walk(child, above | {int(kind[row])})

    for root in np.flatnonzero(parent < 0).tolist():
        walk(root, frozenset())
    assert np.argsort(preorder(parent, depth)).tolist() == walked
    assert is_outermost(kind, parent, depth).tolist() == outermost
