"""What recording costs is held against 1 % of a step of 10 ms: figures in, whether it holds out."""

import pytest

from benchmarks import record_overhead, recorder_overhead

pytestmark = pytest.mark.recording


@pytest.mark.parametrize(("added_us", "is_held"), [(100.0, True), (101.0, False)])
def test_recording_a_script_may_add_100_microseconds(added_us: float, *, is_held: bool) -> None:
    assert record_overhead.show({"a step": -0.1, "a batch": added_us}) == is_held


@pytest.mark.parametrize(("call_seconds", "is_held"), [(0.000_1, True), (0.000_101, False)])
def test_the_trace_handler_may_add_100_microseconds(call_seconds: float, *, is_held: bool) -> None:
    times = {"step": 0.01, "call": call_seconds}
    span = dict.fromkeys(("torch", "stepscope", "settings", "made"), 0.1)
    measured = {**dict.fromkeys(recorder_overhead.MAKING, times), "span": span}
    assert recorder_overhead.show(measured) == is_held
