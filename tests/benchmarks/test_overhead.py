"""The overhead of recording is compared with 1 % of a step of 10 ms."""

import pytest

from benchmarks import record_overhead, recorder_overhead

pytestmark = pytest.mark.recording


@pytest.mark.parametrize(("added_us", "is_met"), [(100.0, True), (101.0, False)])
def test_recording_a_script_may_add_100_microseconds(added_us: float, *, is_met: bool) -> None:
    assert record_overhead.show({"a step": -0.1, "a batch": added_us}) == is_met


@pytest.mark.parametrize(
    ("call_seconds", "sample_seconds", "is_met"),
    [(0.000_1, 0.000_05, True), (0.000_101, 0.000_05, False), (0.000_1, 0.000_051, False)],
)
def test_the_trace_handler_may_add_100_microseconds_and_a_sample_50(
    call_seconds: float, sample_seconds: float, *, is_met: bool
) -> None:
    times = {"step": 0.01, "call": call_seconds}
    span = dict.fromkeys(("torch", "stepscope", "settings", "made"), 0.1)
    measured = {
        **dict.fromkeys(recorder_overhead.MAKING, times),
        "span": span,
        "sample": {"added": sample_seconds},
    }
    assert recorder_overhead.show(measured) == is_met
