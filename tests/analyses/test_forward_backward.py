"""Backward calls and the forward operators that made them."""

from pathlib import Path
from typing import Any

import pytest

from loading import ROOT, SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.forward_backward import FLOW, WRAPPER, forward_backward
from stepscope.analyses.core.links import flow_events
from stepscope.analyses.operators.operator_kernels import FORWARD_BACKWARD, forward_backward_table
from stepscope.model.trace import Trace

US = 1000
MAIN, ENGINE, OTHER = 100, 101, 102
"""Threads of the system; torch numbers MAIN 1 and OTHER 2 here."""


def _forward(name: str, at: int, dur: int, number: int, tid: int = MAIN) -> list[Any]:
    told = {"Sequence number": number, "Fwd thread id": 0, "tid": tid}
    return ["cpu_op", name, at, dur, told]


def _backward(name: str, at: int, dur: int, number: int, made_on: int = 1) -> list[list[Any]]:
    """The engine's call around a node, and the node 5 us later."""
    told = {"Sequence number": number, "Fwd thread id": made_on, "tid": ENGINE}
    wrapper = ["cpu_op", f"{WRAPPER}{name}", at, dur, told]
    return [wrapper, ["cpu_op", name, at + 5, dur - 10, told]]


def _arrow(identity: int, start: int, end: int, tid: int = MAIN) -> list[list[Any]]:
    flow = {"id": identity, "pid": 100}
    return [
        ["fwdbwd", "fwdbwd", start, None, {**flow, "ph": "s", "tid": tid}],
        ["fwdbwd", "fwdbwd", end, None, {**flow, "ph": "f", "bp": "e", "tid": ENGINE}],
    ]


def _made(trace: Trace) -> dict[str, str | None]:
    """Of each node the operator that made it, by their names."""
    names = [*trace.host_calls["name"].astype(str), None]
    links = forward_backward(trace)
    return {
        str(names[row]): names[links.forward[row]]
        for row in range(len(trace.host_calls))
        if links.node[row] == row
    }


def _training(*more: list[Any]) -> Trace:
    """`aten::linear` transposes the weight, which makes node 3, and multiplies, node 4."""
    return trace_of(
        [
            _forward("aten::zero_", 0, 5, 3),  # makes no node, so the next one has this number
            _forward("aten::linear", 10, 50, 3),
            _forward("aten::t", 12, 8, 3),
            _forward("aten::addmm", 25, 30, 4),
            *_backward("AddmmBackward0", 100, 40, 4),
            *_backward("TBackward0", 150, 20, 3),
            ["cpu_op", f"{WRAPPER}torch::autograd::AccumulateGrad", 180, 20, {"tid": ENGINE}],
            ["cpu_op", "torch::autograd::AccumulateGrad", 185, 10, {"tid": ENGINE}],
            ["cpu_op", "aten::mm", 110, 10, {"tid": ENGINE}],
            *more,
        ]
    )


def test_a_node_was_made_by_the_last_operator_with_its_number() -> None:
    assert _made(_training()) == {
        "AddmmBackward0": "aten::addmm",
        "TBackward0": "aten::t",
        "torch::autograd::AccumulateGrad": None,
    }


def test_what_runs_in_a_node_is_of_the_backward_pass() -> None:
    trace = _training()
    links = forward_backward(trace)
    names = trace.host_calls["name"].astype(str).tolist()
    node = {name: links.node[row] for row, name in enumerate(names)}
    assert node["aten::mm"] == names.index("AddmmBackward0")
    assert node["aten::addmm"] == node[f"{WRAPPER}AddmmBackward0"] == -1
    wrapper = {name: links.wrapper[row] for row, name in enumerate(names)}
    assert wrapper["AddmmBackward0"] == names.index(f"{WRAPPER}AddmmBackward0")


def test_arrows_say_the_same() -> None:
    trace = _training(*_arrow(1, 25, 105), *_arrow(2, 12, 155))
    assert forward_backward(trace).differing_count == 0
    assert _made(trace) == _made(_training())


def test_where_an_arrow_differs_the_number_counts() -> None:
    trace = _training(*_arrow(1, 12, 105))  # from aten::t to AddmmBackward0
    assert forward_backward(trace).differing_count == 1
    assert _made(trace)["AddmmBackward0"] == "aten::addmm"


def test_where_there_is_no_number_the_arrow_counts() -> None:
    node = ["cpu_op", "MyBackward", 100, 10, {"Fwd thread id": 1, "tid": ENGINE}]
    trace = trace_of([_forward("aten::mul", 10, 5, 7), node, *_arrow(1, 10, 100)])
    assert _made(trace) == {"MyBackward": "aten::mul"}


def _two_threads(*more: list[Any]) -> Trace:
    """Replicas on two threads, each of which counts from 0."""
    return trace_of(
        [
            _forward("aten::mm", 10, 5, 0),
            _forward("aten::relu", 12, 5, 0, OTHER),
            _forward("aten::tanh", 30, 5, 1, OTHER),
            *_backward("MmBackward0", 100, 20, 0, made_on=1),
            *_backward("ReluBackward0", 130, 20, 0, made_on=2),
            *_backward("TanhBackward0", 160, 20, 1, made_on=2),
            *more,
        ]
    )


def test_numbers_of_two_threads_are_told_apart_by_arrows() -> None:
    trace = _two_threads(*_arrow(1, 10, 105), *_arrow(2, 30, 165, OTHER))
    wanted = {
        "MmBackward0": "aten::mm",
        "ReluBackward0": "aten::relu",
        "TanhBackward0": "aten::tanh",
    }
    assert _made(trace) == wanted


def test_without_arrows_a_thread_is_known_by_a_number_that_it_alone_has() -> None:
    made = _made(_two_threads())
    assert (made["ReluBackward0"], made["TanhBackward0"]) == ("aten::relu", "aten::tanh")
    assert made["MmBackward0"] is None  # two threads have a 0, and nothing says which is torch's 1


def test_both_passes_cost_is_told_by_forward_operator() -> None:
    table = forward_backward_table(
        _training(
            ["cuda_runtime", "cudaLaunchKernel", 30, 2, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 112, 2, {"correlation": 2, "tid": ENGINE}],
            ["kernel", "gemm", 300, 20, {"correlation": 1}],
            ["kernel", "gemm", 330, 50, {"correlation": 2}],
        )
    )
    assert list(table.columns) == [column.name for column in FORWARD_BACKWARD]
    first, second = rows_of(table)
    assert (first.name, first.backward_name) == ("aten::addmm", "AddmmBackward0")
    assert (first.forward_host_ns, first.backward_host_ns) == (30 * US, 40 * US)
    assert (first.forward_device_ns, first.backward_device_ns) == (20 * US, 50 * US)
    assert (first.forward_call_count, first.backward_call_count) == (1, 1)
    assert (first.host_ratio, first.device_ratio) == (pytest.approx(4 / 3), 2.5)
    assert (second.name, second.backward_name) == ("aten::t", "TBackward0")


def test_a_graph_that_is_run_backward_twice_has_one_forward_call() -> None:
    (row,) = rows_of(
        forward_backward_table(
            trace_of(
                [
                    _forward("aten::mm", 10, 5, 0),
                    *_backward("MmBackward0", 100, 20, 0),
                    *_backward("MmBackward0", 130, 20, 0),
                ]
            )
        )
    )
    assert (row.forward_call_count, row.backward_call_count) == (1, 2)
    assert (row.forward_host_ns, row.backward_host_ns) == (5 * US, 40 * US)


def test_an_inference_has_no_rows() -> None:
    assert len(forward_backward_table(trace_of([["cpu_op", "aten::mm", 0, 5]]))) == 0
    assert len(forward_backward_table(trace_of([["kernel", "k", 0, 5]]))) == 0


@pytest.mark.parametrize("name", shared_trace_names())
def test_in_real_traces_numbers_and_arrows_agree(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    links = forward_backward(trace)
    assert links.differing_count == 0
    linked = links.forward[links.forward >= 0]
    assert (links.node[linked] == -1).all()  # no node was made by a node


RECORDED = sorted(ROOT.glob("sample_logs/[!s]*/*/*.gz"))  # not the synthetic ones


@pytest.mark.parametrize("path", RECORDED[::4], ids=lambda path: path.parent.parent.name)
def test_in_recordings_of_today_numbers_and_arrows_agree(path: Path) -> None:
    trace = trace_at(path)
    links = forward_backward(trace)
    assert links.differing_count == 0
    arrows = flow_events(trace, FLOW, "s")
    assert (links.forward >= 0).sum() >= len(arrows)  # numbers know what arrows know
    made = _made(trace)
    known = {"AddmmBackward0": "aten::addmm", "ReluBackward0": "aten::relu"}
    assert {name: made[name] for name in known if name in made}.items() <= known.items()
