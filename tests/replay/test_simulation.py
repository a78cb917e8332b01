"""Simulated steps of schedules whose true answer is known by hand, and laws of all changes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import Change, ScaleAllHost, ScaleDevice, ScaleHost, Unblock
from stepscope.replay.simulation import simulate

GEMM = {"op": "aten::mm", "body": [{"kernel": "gemm", "us": 1000}]}


def recorded(*body: dict[str, Any], steps: int = 4) -> Trace:
    schedule = {"machine": "h100", "actions": [{"steps": steps, "body": list(body)}]}
    return trace_of(document=tracebuild.document(schedule=schedule))


def all_kernels(trace: Trace, factor: float) -> ScaleDevice:
    return ScaleDevice(rows=np.arange(len(trace.device_events)), factor=factor)


def test_without_changes_the_recorded_end_is_met_exactly() -> None:
    assert simulate(recorded(GEMM, {"item": 4}, {"host": 200}), []).saved_ns == 0


def test_a_read_in_the_middle_costs_the_idle_time_behind_it() -> None:
    # the case of tests/rules/item_sync.yml: 217 us in each step, and 1 us for the copy's end
    reading = (GEMM, {"item": 4}, {"host": 200}, GEMM, {"host": 900})
    trace = recorded(*reading)
    freed = simulate(trace, [Unblock(calls=synchronizations(trace).calls)])
    assert freed.saved_ns == pytest.approx(4 * 217_000, abs=4_000)


def test_faster_kernels_save_nothing_where_the_host_never_waits() -> None:
    small = {"op": "aten::add", "body": [{"kernel": "add", "us": 4}]}
    trace = recorded({"repeat": 50, "body": [small, {"host": 20}]})
    assert simulate(trace, [all_kernels(trace, 0)]).saved_ns < 10_000


def test_a_faster_host_saves_nothing_where_the_device_is_the_limit() -> None:
    trace = recorded({"repeat": 20, "body": [GEMM]})
    recorded_ns = simulate(trace, []).recorded_ns
    assert simulate(trace, [ScaleAllHost(factor=0.5)]).saved_ns < 0.001 * recorded_ns
    assert simulate(trace, [all_kernels(trace, 0.5)]).saved_ns > 0.49 * recorded_ns


def test_host_work_is_taken_out_where_it_lies() -> None:
    trace = recorded(GEMM, {"item": 4}, {"host": 2_000})
    steps = trace.steps
    ends = steps["end_ns"].to_numpy()
    last_ms = intervals.union(ends - 1_000_000, ends)
    assert simulate(trace, [ScaleHost(times=last_ms, factor=0)]).saved_ns == pytest.approx(
        4_000_000, rel=0.01
    )


factors = st.floats(0, 1)


@given(host=factors, device=factors, unblocked=st.booleans(), cut=st.integers(0, 20))
def test_a_further_fix_never_makes_a_step_longer(
    host: float, device: float, *, unblocked: bool, cut: int
) -> None:
    trace = MIXED
    kernels = ScaleDevice(rows=np.arange(cut), factor=device)
    waits = Unblock(calls=synchronizations(trace).calls[:cut])
    fixes: list[Change] = [ScaleAllHost(factor=host), kernels, *([waits] if unblocked else [])]
    ends = [simulate(trace, fixes[:count]).simulated_ns for count in range(len(fixes) + 1)]
    assert ends == sorted(ends, reverse=True)


MIXED = recorded(GEMM, {"host": 300}, GEMM, {"item": 4}, {"host": 700}, steps=5)


@pytest.mark.parametrize("name", shared_trace_names("kineto"))
def test_on_a_real_trace_the_host_is_the_limit_and_faster_kernels_save_little(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    result = simulate(trace, [all_kernels(trace, 0)])
    assert 0 <= result.saved_ns < 0.02 * result.recorded_ns
