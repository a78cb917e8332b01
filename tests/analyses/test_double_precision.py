"""Work in float64, and its twins in float32."""

import math

import tracebuild
from loading import trace_of
from stepscope.analyses.operators.double_precision import (
    by_operator,
    on_device,
    on_host,
    slow_convolutions,
)
from stepscope.model.trace import Trace


def recorded(*body: dict[str, object], machine: str = "cpu") -> Trace:
    schedule = {"machine": machine, "record": ["shapes"], "actions": [{"steps": 1, "body": body}]}
    return trace_of(document=tracebuild.document(schedule=schedule))


def mm(us: int, written: str, rows: int = 8, *body: dict[str, object]) -> dict[str, object]:
    dims = [[rows, rows], [rows, rows]]
    return {"op": "aten::mm", "us": us, "dims": dims, "types": [written] * 2, "body": list(body)}


def test_a_call_costs_what_its_twins_cost_on_average() -> None:
    trace = recorded(mm(90, "double"), mm(20, "float"), mm(40, "float"), mm(50, "double", 16))
    found = on_host(trace)
    assert found.cost_ns.tolist() == [90_000, 50_000]
    assert found.float32_ns[0] == 30_000
    assert math.isnan(found.float32_ns[1])
    assert found.is_product.tolist() == [True, True]
    assert (found.total_ns, found.whole_ns) == (140_000, 200_000)
    assert found.floating_share == 0.7


def test_of_calls_within_each_other_the_outermost_counts_but_no_node_of_autograd() -> None:
    inner = mm(30, "double")
    node = {"op": "MmBackward0", "us": 10, "dims": [[8, 8]], "types": ["double"], "body": [inner]}
    assert on_host(recorded(node)).cost_ns.tolist() == [30_000]
    outer = {**mm(10, "double"), "body": [inner]}
    assert on_host(recorded(outer)).cost_ns.tolist() == [40_000]


def test_a_kernel_is_of_the_type_of_its_name_or_of_its_operator() -> None:
    kernels = [{"kernel": "mine", "us": 60}, {"kernel": "void k<float>(int)", "us": 40}]
    found = on_device(recorded(mm(5, "double", 8, *kernels), machine="h100"))
    assert found.cost_ns.tolist() == [60_000]
    assert found.floating_share == 0.6


def test_operators_are_listed_by_cost() -> None:
    trace = recorded(mm(50, "double", 16), mm(90, "double"), mm(30, "float"))
    table = by_operator(trace, on_host(trace))
    assert table["dims"].tolist() == ["[[8,8],[8,8]]", "[[16,16],[16,16]]"]
    assert table["ns"].tolist() == [90_000, 50_000]


def test_convolutions_without_their_library_are_known_by_name() -> None:
    names = ("aten::thnn_conv2d", "aten::_slow_conv2d_forward", "aten::mkldnn_convolution")
    trace = recorded(*({"op": name, "us": 5} for name in names))
    assert slow_convolutions(trace) == sorted(names[:2], reverse=True)


def test_nothing_recorded_is_nothing_in_float64() -> None:
    found = on_host(recorded({"host": 5}))
    assert found.total_ns == 0
    assert math.isnan(found.floating_share)
