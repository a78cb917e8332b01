"""Launches that wait for what they launched."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.idle.dispatch_gaps import BlockingLaunches, blocking_launches


def found(*body: dict[str, Any], machine: str = "h100") -> BlockingLaunches:
    schedule = {"machine": machine, "actions": [{"steps": 2, "body": list(body)}]}
    return blocking_launches(trace_of(document=tracebuild.document(schedule=schedule)))


@pytest.mark.parametrize("machine", ["h100", "v100-2021", "mi250"])
def test_a_launch_that_returns_behind_its_kernel_blocks(machine: str) -> None:
    """5 us to launch, 3 until the kernel begins, 30 of it; then one that does not block."""
    launches = found({"kernel": "a", "us": 30, "blocking": True}, {"kernel": "b"}, machine=machine)
    assert launches.blocks.tolist() == [True, False] * 2
    assert launches.is_waited_for.tolist() == [False] * 4
    # In the second step it waits for the first step's `b` (10 us), too.
    assert launches.blocked_ns == 30_000 + 10_000 + 30_000


def test_a_wait_behind_a_launch_counts_on_its_thread_only() -> None:
    other = {"thread": "other", "body": [{"sync": "stream"}]}
    launches = found({"kernel": "a"}, {"sync": "stream"}, {"kernel": "b"}, other, {"call": "x"})
    assert launches.is_waited_for.tolist() == [True, False] * 2


def test_what_a_graph_replays_is_no_launch() -> None:
    assert len(found({"graph": [{"kernel": "a"}, {"kernel": "b"}]}).calls) == 0


def test_a_copy_behind_a_launch_is_no_wait_for_it() -> None:
    launches = found({"kernel": "a"}, {"item": 4}, machine="mi250")
    assert launches.is_waited_for.tolist() == [False] * 2


def test_launches_before_the_steps_are_left_out() -> None:
    blocking = {"kernel": "a", "us": 30, "blocking": True}
    actions = [blocking, {"steps": 1, "body": [blocking, {"kernel": "b"}]}]
    trace = trace_of(document=tracebuild.document(schedule=actions))
    assert blocking_launches(trace).blocks.tolist() == [True, False]
