"""The step without the profiler: by the cost of events, or as it was measured."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.base import recording_costs as costs
from stepscope.base.calibration import ALL_OF_IT
from stepscope.model.trace import Trace
from stepscope.replay.fresh_memory import result_bytes
from stepscope.replay.simulation import simulate
from stepscope.replay.unrecorded import unrecorded_world, without_profiler
from stepscope.rules import Claim
from stepscope.rules.shared.claimable_time import unrecorded_ns

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
    left = 1 - costs.HOST_SLOWDOWN
    assert world.recorded_ns == STEP_US * 1000
    assert world.predicted_ns == pytest.approx(left * (world.recorded_ns - cost_ns), abs=100)


def test_shapes_stacks_and_memory_cost_more() -> None:
    plain = unrecorded_world(on_host(500))
    shapes = unrecorded_world(on_host(500, has_shapes=True))
    everything = unrecorded_world(on_host(500, others=400, has_shapes=True))
    left = 1 - costs.HOST_SLOWDOWN
    more_ns = left * 500 * costs.OPERATOR_SHAPES.ns
    assert plain.predicted_ns - shapes.predicted_ns == pytest.approx(more_ns, abs=2)
    more_ns = 500 * costs.OPERATOR_STACKS.ns + 400 * (costs.PYTHON_CALL.ns + costs.MEMORY.ns)
    more_ns *= left
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


LOCAL_NS = 1001 * costs.LOCAL_PART * costs.OPERATOR.ns
"""Of a step with 1000 operators."""


@pytest.mark.parametrize("median_us", [9_700, 9_460, 8_500, 5_000])
def test_measured_steps_scale_the_hosts_remaining_time(median_us: int) -> None:
    trace = on_host(1000, median_us=median_us)
    world = unrecorded_world(trace)
    assert world.event_factor == costs.LOCAL_PART
    assert world.host_factor == pytest.approx(1000 * median_us / (1e7 - LOCAL_NS), rel=1e-3)
    assert world.predicted_ns == pytest.approx(1000 * median_us, rel=1e-4)
    assert simulate(trace, world.changes).simulated_ns == pytest.approx(3000 * median_us, rel=1e-4)


def test_measured_steps_that_leave_events_less_time_lower_their_cost() -> None:
    world = unrecorded_world(on_host(1000, median_us=9_900))
    assert world.host_factor == 1
    assert world.event_factor == pytest.approx(100_000 / (1001 * costs.OPERATOR.ns), rel=1e-3)
    assert world.predicted_ns == pytest.approx(9_900_000, rel=1e-4)


def test_unrecorded_steps_that_are_no_shorter_change_nothing() -> None:
    world = unrecorded_world(on_host(1000, median_us=10_100))
    assert (world.changes, world.costs) == ((), {})
    assert world.predicted_ns == world.recorded_ns


def test_a_step_below_the_devices_time_is_as_short_as_the_device_allows() -> None:
    gemm = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}
    body = [{"repeat": 20, "body": [gemm]}]
    schedule = {"machine": "h100", "actions": [{"steps": 4, "body": body}]}
    document = tracebuild.document(schedule=schedule) | measured(5_000)
    world = unrecorded_world(trace_of(document=document))
    assert 0.9 < world.host_factor < 1
    assert world.predicted_ns > 19_000_000


def dense_and_sparse(median_us: int = 0) -> Trace:
    """Three steps of 10 ms: 5 ms with 1000 operators of 5 us, then 5 ms in one operator."""
    rows: list[list[Any]] = []
    for step in range(3):
        start = step * STEP_US
        rows.append(["user_annotation", f"ProfilerStep#{step}", start, STEP_US])
        rows.extend(["cpu_op", "aten::add", start + 5 * number, 4.9] for number in range(1000))
        rows.append(["cpu_op", "aten::mm", start + 5_000, 4_990])
    return trace_of(rows, **measured(median_us))


@pytest.mark.parametrize("median_us", [0, 8_000])
def test_without_the_profiler_times_of_many_events_become_shorter_than_others(
    median_us: int,
) -> None:
    trace = dense_and_sparse(median_us)
    halves = [
        (step * STEP_US + begin, step * STEP_US + begin + 5_000)
        for begin in (0, 5_000)
        for step in range(3)
    ]
    dense, sparse = (
        unrecorded_ns(trace, [Claim(1000 * np.array(times), ALL_OF_IT)])
        for times in (halves[:3], halves[3:])
    )
    assert dense is not None
    assert sparse is not None
    world = unrecorded_world(trace)
    assert dense + sparse == pytest.approx(3 * world.predicted_ns, rel=1e-3)
    local_ns = 3 * 1000 * costs.LOCAL_PART * costs.OPERATOR.ns
    assert sparse - dense == pytest.approx(world.host_factor * local_ns, rel=0.01)


WRITE_US, LOOP_US = 100, 4_000


def writes_and_loop(median_us: int) -> Trace:
    """Three steps of 10 ms: 4 ms of small operators, then 40 results of 256 kB, 100 us each."""
    small, large = {"Input Dims": [[8]]}, {"Input Dims": [[256, 256]]}
    types = {"Input type": ["float"]}
    rows: list[list[Any]] = []
    for step in range(3):
        start = step * STEP_US
        rows.append(["user_annotation", f"ProfilerStep#{step}", start, STEP_US])
        rows.extend(
            ["cpu_op", "aten::add", start + 4 * number, 3, small | types] for number in range(1000)
        )
        rows.extend(
            ["cpu_op", "aten::relu", start + 5_000 + 110 * number, WRITE_US, large | types]
            for number in range(40)
        )
    return trace_of(rows, **measured(median_us))


def times_of(start_us: int, end_us: int) -> Claim:
    times = [(step * STEP_US + start_us, step * STEP_US + end_us) for step in range(3)]
    return Claim(1000 * np.array(times), ALL_OF_IT)


EVENTS_NS = costs.LOCAL_PART * (costs.OPERATOR.ns + costs.OPERATOR_SHAPES.ns)
MOST_LOST_NS = 40 * costs.MOST_MEMORY_PART * (1000 * WRITE_US - costs.CALL_NS)


@pytest.mark.parametrize("lost_share", [0.2, 0.9])
def test_operators_with_large_results_lose_the_rest_and_small_ones_do_not(
    lost_share: float,
) -> None:
    """A step that is shorter by the events, and by a part of the most that writes may lose."""
    lost_ns = lost_share * MOST_LOST_NS
    median_us = round(STEP_US - (1041 * EVENTS_NS + lost_ns) / 1000)
    trace = writes_and_loop(median_us)
    world = unrecorded_world(trace)
    assert world.host_factor == 1
    assert world.memory_factor == pytest.approx(lost_share, rel=1e-2)
    loop = unrecorded_ns(trace, [times_of(0, LOOP_US)])
    writes = unrecorded_ns(trace, [times_of(5_000, 9_400)])
    assert loop == pytest.approx(3 * (1000 * LOOP_US - 1000 * EVENTS_NS), rel=1e-3)
    assert writes == pytest.approx(3 * (4_400_000 - 40 * EVENTS_NS - lost_ns), rel=1e-3)


def test_where_that_is_not_enough_all_of_the_host_is_slower() -> None:
    shorter_ns = 1041 * EVENTS_NS + MOST_LOST_NS
    world = unrecorded_world(writes_and_loop(round(0.9 * (STEP_US - shorter_ns / 1000))))
    assert world.memory_factor == 1
    assert world.host_factor == pytest.approx(0.9, rel=1e-2)


@pytest.mark.parametrize(
    ("name", "dims", "types", "size"),
    [
        ("aten::relu", "[[256,256]]", '["float"]', 4 * 256 * 256),
        ("aten::relu", "[[256,256]]", '["c10::BFloat16"]', 2 * 256 * 256),
        ("aten::ne", "[[256,256],[]]", '["float","Scalar"]', 256 * 256),
        ("aten::add", "[[8,1],[8,64],[]]", '["float","float","Scalar"]', 4 * 8 * 64),
        ("aten::mm", "[[8,1024],[1024,16]]", '["float","float"]', 4 * 8 * 16),
        ("aten::addmm", "[[16],[8,1024],[1024,16]]", '["float","float","float"]', 4 * 8 * 16),
        ("aten::embedding", "[[9999,32],[4,5]]", '["float","long int"]', 4 * 20 * 32),
        ("aten::cat", "[[[8,2],[8,3]],[]]", '["TensorList","Scalar"]', 4 * 40),
        ("aten::sum", "[[256,256]]", '["float"]', 0),
        ("aten::relu", "no list", "", 0),
    ],
)
def test_the_size_of_a_result_follows_from_the_inputs(
    name: str, dims: str, types: str, size: int
) -> None:
    assert result_bytes(name, dims, types) == size


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
    assert world.event_factor == costs.LOCAL_PART
    assert 0.3 * world.recorded_ns < world.predicted_ns < world.recorded_ns
    assert np.all(change.cost_ns >= 0)
