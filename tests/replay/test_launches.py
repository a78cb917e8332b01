"""Work removed, launched together or inserted: the schedule with the change is the oracle."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.test_graph import recorded
from stepscope.model.trace import Trace
from stepscope.replay.launches import InsertDevice, InsertHost, Join, Remove, join, remove
from stepscope.replay.simulation import simulate

STEPS = 3
Action = dict[str, Any]
LAUNCHES_NS = 60_000
"""Differences of some launch delays, which a schedule has and a trace does not show."""

kernels_us = st.lists(st.integers(5, 400), min_size=1, max_size=8)


def launched(us: int, name: str = "gemm") -> Action:
    return {"op": "aten::mm", "body": [{"kernel": name, "us": us}]}


def schedule(*body: Action) -> Trace:
    return recorded(*body, {"item": 4}, {"host": 100}, steps=STEPS)


def rows_named(trace: Trace, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.flatnonzero((trace.device_events["name"] == name).to_numpy())


def end_ns(trace: Trace) -> int:
    return simulate(trace, []).recorded_ns


@given(before=kernels_us, gone=kernels_us, after=kernels_us)
def test_removed_work_is_a_schedule_without_it(
    before: list[int], gone: list[int], after: list[int]
) -> None:
    around = [launched(us) for us in before], [launched(us) for us in after]
    removed = [launched(us, "gone") for us in gone]
    trace = schedule(*around[0], *removed, *around[1])
    change = remove(trace, rows_named(trace, "gone"))
    without = schedule(*around[0], *({"op": "aten::mm"} for _ in gone), *around[1])
    assert simulate(trace, [change]).simulated_ns == pytest.approx(end_ns(without), abs=LAUNCHES_NS)


def test_work_removed_without_its_launches_saves_the_device_only() -> None:
    trace = schedule(*[launched(5, "gone")] * 50)
    rows = rows_named(trace, "gone")
    only_device = simulate(trace, [remove(trace, rows, with_launches=False)])
    with_launches = simulate(trace, [remove(trace, rows)])
    assert only_device.saved_ns < 0.05 * only_device.recorded_ns
    assert with_launches.saved_ns == pytest.approx(STEPS * 50 * 5_000, rel=0.05)


@given(kernels=st.lists(st.integers(2, 60), min_size=2, max_size=12), host_us=st.integers(0, 200))
def test_joined_launches_are_one_graph_launch(kernels: list[int], host_us: int) -> None:
    single = [launched(us, f"part{number}") for number, us in enumerate(kernels)]
    body = [action for part in single for action in (part, {"host": host_us})]
    trace = schedule({"host": 500}, {"annotation": "stretch", "body": body})
    graph = {"graph": [part["body"][0] for part in single], "us": 5}
    calls = trace.host_calls[trace.host_calls["name"] == "stretch"]
    changes = [
        join(trace, int(start), int(end))
        for start, end in zip(calls["start_ns"], calls["end_ns"], strict=True)
    ]
    expected = end_ns(schedule({"host": 500}, {"annotation": "stretch", "body": [graph]}))
    assert simulate(trace, changes).simulated_ns == pytest.approx(expected, abs=LAUNCHES_NS)


@given(before=kernels_us, host_us=st.integers(1, 1000))
def test_inserted_host_work_is_a_schedule_with_it(before: list[int], host_us: int) -> None:
    head, tail = [launched(us) for us in before], [{"annotation": "here", "body": [launched(50)]}]
    trace = schedule(*head, *tail)
    calls = trace.host_calls[trace.host_calls["name"] == "here"]
    change = InsertHost(at_ns=calls["start_ns"].to_numpy(), duration_ns=host_us * 1000)
    expected = end_ns(schedule(*head, {"host": host_us}, *tail))
    assert simulate(trace, [change]).simulated_ns == pytest.approx(expected, abs=LAUNCHES_NS)


@given(us=st.integers(5, 400), longer_us=st.integers(1, 400))
def test_inserted_device_work_is_a_longer_kernel(us: int, longer_us: int) -> None:
    trace = schedule(launched(us, "long"), launched(50))
    change = InsertDevice(rows=rows_named(trace, "long"), duration_ns=longer_us * 1000)
    expected = end_ns(schedule(launched(us + longer_us, "long"), launched(50)))
    assert simulate(trace, [change]).simulated_ns == pytest.approx(expected, abs=LAUNCHES_NS)


def test_nothing_to_change_changes_nothing() -> None:
    trace, none = schedule(launched(50)), np.zeros(0, dtype=np.int64)
    changes = [
        Remove(rows=none),
        join(trace, -2, -1),
        InsertDevice(rows=none, duration_ns=5),
        InsertHost(at_ns=np.array([-5, 10**15]), duration_ns=5),
    ]
    assert isinstance(changes[1], Join)
    assert simulate(trace, changes).saved_ns == 0
