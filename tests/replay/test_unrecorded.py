"""The step without the profiler: by the cost of events, or as it was measured."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.base import recording_costs as costs
from stepscope.model.trace import Trace
from stepscope.replay.simulation import simulate
from stepscope.replay.unrecorded import unrecorded_world, without_profiler

STEP_US = 10_000


def on_host(
    operators: int, *, others: int = 0, median_us: int = 0, has_shapes: bool = False
) -> Trace:
    """Three steps of 10 ms, each with operators, and with Python calls and allocations."""
    rows: list[list[Any]] = []
    shapes = {"Input Dims": [[1, 2]]} if has_shapes else {}
    for step in range(3):
        start = step * STEP_US
        rows.append(["user_annotation", f"ProfilerStep#{step}", start, STEP_US])
        rows.extend(
            ["cpu_op", "aten::add", start + 10 + 6 * number, 5, shapes]
            for number in range(operators)
        )
        for number in range(others):
            rows.append(["python_function", "train.py(1): f", start + 10 + 6 * number, 5])
            memory = {"Bytes": 512, "Device Type": 0}
            rows.append(["cpu_instant_event", "[memory]", start + 11 + 6 * number, None, memory])
    return trace_of(rows, **measured(median_us))


def measured(median_us: int) -> dict[str, Any]:
    """The recorder's figures; none where the median is 0."""
    names = ("median_ns", "first_quartile_ns", "third_quartile_ns")
    figures = {"count": 20, **dict.fromkeys(names, 1000 * median_us)}
    return {"stepscope_recorder": {"unrecorded_steps": figures}} if median_us else {}


def test_each_recorded_event_costs_by_its_kind() -> None:
    world = unrecorded_world(on_host(1000))
    cost_ns = 1001 * costs.OPERATOR.ns  # and the step's annotation
    assert world.recorded_ns == STEP_US * 1000
    assert world.predicted_ns == pytest.approx(world.recorded_ns - cost_ns, abs=2)
    assert world.origin == "estimated from the cost of 3,003 recorded events"
    assert world.fastest_ns < world.predicted_ns < world.slowest_ns < world.recorded_ns


def test_shapes_stacks_and_memory_cost_more() -> None:
    plain = unrecorded_world(on_host(500))
    shapes = unrecorded_world(on_host(500, has_shapes=True))
    everything = unrecorded_world(on_host(500, others=400, has_shapes=True))
    more_ns = 500 * costs.OPERATOR_SHAPES.ns
    assert plain.predicted_ns - shapes.predicted_ns == pytest.approx(more_ns, abs=2)
    more_ns = 500 * costs.OPERATOR_STACKS.ns + 400 * (costs.PYTHON_CALL.ns + costs.MEMORY.ns)
    assert shapes.predicted_ns - everything.predicted_ns == pytest.approx(more_ns, abs=2)


def test_more_events_than_time_leave_no_time_below_zero() -> None:
    rows = [["user_annotation", f"ProfilerStep#{step}", 10 * step, 10] for step in range(3)]
    rows += [["cpu_op", "aten::add", index // 4, 0] for index in range(120)]
    world = unrecorded_world(trace_of(rows))
    assert (world.predicted_ns, world.recorded_ns) == (0, 10_000)


def test_where_the_device_is_the_limit_the_step_keeps_its_length() -> None:
    gemm = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}
    schedule = {
        "machine": "h100",
        "actions": [{"steps": 4, "body": [{"repeat": 20, "body": [gemm]}]}],
    }
    world = unrecorded_world(trace_of(document=tracebuild.document(schedule=schedule)))
    assert 0.999 * world.recorded_ns < world.predicted_ns <= world.recorded_ns


@pytest.mark.parametrize("median_us", [9_900, 9_460, 8_500])
def test_measured_steps_scale_the_costs(median_us: int) -> None:
    trace = on_host(1000, median_us=median_us)
    world = unrecorded_world(trace)
    assert world.method == "events"
    assert world.predicted_ns == pytest.approx(1000 * median_us, rel=1e-4)
    assert world.fastest_ns == world.slowest_ns == world.predicted_ns
    assert world.factor == pytest.approx((1e7 - 1000 * median_us) / (1001 * 540), rel=1e-3)
    assert simulate(trace, world.changes).simulated_ns == pytest.approx(3000 * median_us, rel=1e-4)


def test_steps_that_events_cannot_explain_scale_all_host_time() -> None:
    world = unrecorded_world(on_host(100, median_us=5_000))
    assert world.method == "host"
    assert world.predicted_ns == pytest.approx(5_000_000, rel=1e-4)
    assert world.origin == (
        "measured by the recorder: 5.00 ms; recorded events cost less: all host time is 50.0 %"
    )


def test_unrecorded_steps_that_are_no_shorter_change_nothing() -> None:
    world = unrecorded_world(on_host(1000, median_us=10_100))
    assert (world.method, world.changes) == ("none", ())
    assert world.predicted_ns == world.recorded_ns
    assert world.origin == "measured by the recorder: 10.1 ms, no shorter than recorded steps"


def test_a_step_below_the_devices_time_is_as_short_as_the_device_allows() -> None:
    gemm = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}
    body = [{"repeat": 20, "body": [gemm]}]
    schedule = {"machine": "h100", "actions": [{"steps": 4, "body": body}]}
    document = tracebuild.document(schedule=schedule) | measured(5_000)
    world = unrecorded_world(trace_of(document=document))
    assert (world.method, world.factor) == ("events", 1.0)
    assert world.predicted_ns > 19_000_000
    assert world.origin == (
        "measured by the recorder: 5.00 ms; recorded events have their usual cost, "
        "and the device still takes longer"
    )


@given(st.lists(st.floats(0, 10), min_size=2, max_size=5))
def test_a_higher_cost_never_lengthens_the_step(factors: list[float]) -> None:
    usual = without_profiler(MIXED)
    ends = [
        simulate(MIXED, [type(usual)(**{**vars(usual), "factor": factor})]).simulated_ns
        for factor in sorted(factors)
    ]
    assert ends == sorted(ends, reverse=True)


MIXED = on_host(700, others=300)


@pytest.mark.parametrize("name", shared_trace_names("kineto"))
def test_on_a_real_trace_the_costs_are_a_part_of_the_hosts_time(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    world, change = unrecorded_world(trace), without_profiler(trace)
    assert world.method == "events"
    assert 0.3 * world.recorded_ns < world.predicted_ns < world.recorded_ns
    assert np.all(change.cost_ns >= 0)
