"""What ran for modules: each operator and each piece of device work belongs to one at most."""

from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.host.module_table import module_table
from stepscope.analyses.host.module_tree import module_tree
from stepscope.analyses.host.module_work import first_calls, kernels_of, operators_of
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

US = 1000
EVALUATE = "autograd::engine::evaluate_function: "


def _module(name: str, start: float, duration: float) -> list[Any]:
    return ["python_function", f"nn.Module: {name}", start, duration]


def _launch(start: float, correlation: int, duration: float, kernel: str) -> list[list[Any]]:
    link = {"correlation": correlation}
    return [
        ["cuda_runtime", "cudaLaunchKernel", start, 5, link],
        ["kernel", kernel, 1000 + start, duration, link],
    ]


def _training() -> Trace:
    """Net_0 calls Linear_0; both compute, and Linear_0 has a backward pass."""
    return trace_of(
        [
            _module("Net_0", 0, 200),
            ["cpu_op", "aten::add", 10, 20],
            *_launch(12, 1, 7, "add"),
            _module("Linear_0", 50, 60),
            ["cpu_op", "aten::linear", 55, 50, {"Sequence number": 3, "Fwd thread id": 0}],
            ["cpu_op", "aten::addmm", 60, 30],
            *_launch(65, 2, 11, "gemm"),
            ["cpu_op", f"{EVALUATE}AddmmBackward0", 300, 50, {"Sequence number": 3, "tid": 2}],
            [
                "cpu_op",
                "AddmmBackward0",
                305,
                40,
                {"Sequence number": 3, "Fwd thread id": 1, "tid": 2},
            ],
            ["cuda_runtime", "cudaLaunchKernel", 310, 5, {"correlation": 3, "tid": 2}],
            ["kernel", "gemm", 1400, 13, {"correlation": 3}],
            ["cpu_op", "aten::outside", 500, 10],
            *_launch(502, 4, 99, "gemm"),
        ]
    )


def _nodes(trace: Trace, *names: str) -> Any:
    return np.array([n for n, m in enumerate(module_tree(trace).modules) if m.name in names])


def test_operators_of_a_module_are_those_of_its_own_calls_by_pass() -> None:
    trace = _training()
    found = operators_of(trace, _nodes(trace, "Linear_0"))
    rows = {
        (r.name, r.phase): (r.call_count, r.host_self_ns, r.device_self_ns) for r in rows_of(found)
    }
    assert rows["aten::addmm", "forward"] == (1, 30 * US, 11 * US)
    assert rows["aten::linear", "forward"] == (1, 20 * US, 0)
    assert rows["AddmmBackward0", "backward"] == (1, 40 * US, 13 * US)
    assert not any(name in {"aten::add", "aten::outside"} for name, _ in rows)
    assert found["device_self_ns"].is_monotonic_decreasing


def test_kernels_of_a_module_and_of_those_within() -> None:
    trace = _training()

    def kernels(*names: str) -> list[tuple[Any, ...]]:
        found = kernels_of(trace, _nodes(trace, *names))
        return [
            (r.name, r.phase, r.call_count, r.total_ns // US, r.mean_ns / US)
            for r in rows_of(found)
        ]

    assert kernels("Linear_0") == [("gemm", "backward", 1, 13, 13), ("gemm", "forward", 1, 11, 11)]
    assert kernels("Net_0") == [("add", "forward", 1, 7, 7)]
    assert [row[3] for row in kernels("Net_0", "Linear_0")] == [13, 11, 7]


def test_the_first_call_of_a_module_is_where_it_began_first() -> None:
    trace = trace_of([_module("Net_0", 0, 30), _module("A_0", 20, 5), _module("A_0", 1, 9)])
    first = first_calls(trace)
    tree = module_tree(trace)
    at = {tree.modules[node].name: node for node in range(len(tree))}
    calls = trace.python_calls
    second = calls[(calls["start_ns"] == 1 * US).to_numpy()]
    assert first.event[at["A_0"]] == second["event"].iloc[0]
    assert (first.start_ns[at["A_0"]], first.end_ns[at["A_0"]]) == (1 * US, 10 * US)


def test_without_modules_it_says_what_to_record() -> None:
    with pytest.raises(MissingDataError, match="neither module calls"):
        operators_of(trace_of([["cpu_op", "aten::mm", 0, 5]]), np.zeros(0, dtype=np.int64))


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_the_work_of_all_modules_sums_to_their_costs(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        tree = module_tree(trace)
    except MissingDataError:
        pytest.skip("no modules here")
    every = np.arange(len(tree))
    kernels, table = kernels_of(trace, every), module_table(trace)
    costs = sum(
        int(table[f"{which}_device_self_ns"].sum()) for which in ("forward", "backward")
    ) + int(tree.rerun.device_ns.sum())
    assert kernels["total_ns"].sum() == costs
    operators = operators_of(trace, every)
    assert operators["device_self_ns"].sum() <= costs
    python = int(table["forward_python_self_ns"].sum())
    host = tree.forward.host_ns.sum() + tree.backward.host_ns.sum() + tree.rerun.host_ns.sum()
    assert operators["host_self_ns"].sum() <= host
    assert operators.loc[operators["phase"] == "forward", "host_self_ns"].sum() <= (
        tree.forward.host_ns.sum() - python
    )
