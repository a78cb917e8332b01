"""What of the timeline is made where the recording is read."""

from loading import trace_of
from stepscope.analyses.timeline import prefetch
from stepscope.readers.trace_transfer import pack, unpack


def test_what_takes_long_is_left_in_the_recording_and_sent_with_it() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 100],
            ["cuda_runtime", "cudaLaunchKernel", 1, 1, {"correlation": 1}],
            ["kernel", "a", 10, 20, {"correlation": 1}],
        ]
    )

    prefetch.compute(trace)

    assert set(prefetch.KEYS) <= trace.results.keys()
    assert set(prefetch.KEYS) <= unpack(pack(trace)).results.keys()


def test_a_recording_without_devices_has_its_timeline_too() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 100]])

    prefetch.compute(trace)

    assert prefetch.KEYS[0] in trace.results
