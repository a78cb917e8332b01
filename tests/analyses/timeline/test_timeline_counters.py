"""Counters in buckets: a value holds until the next one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from stepscope.analyses.timeline.counters import BUCKET_PIXELS, BUCKETS, counter_tile
from stepscope.analyses.timeline.timeline import timeline
from stepscope.analyses.timeline.tracks import Track
from stepscope.model.trace import Trace

Sample = tuple[int, int]
SAMPLES = st.lists(st.tuples(st.integers(0, 2**12), st.integers(0, 99)), min_size=1, max_size=30)
"""Moments in µs, and values."""


def recorded(samples: list[Sample]) -> Trace:
    return trace_of(
        [
            ["cpu_op", "aten::mm", 0, 1],
            *(
                ["", "power", at, None, {"ph": "C", "value (W)": value, "pid": 0}]
                for at, value in samples
            ),
        ]
    )


def track_of(trace: Trace, subject: str) -> Track:
    return next(
        track for track in timeline(trace).tracks if track.subject and track.subject.kind == subject
    )


def slow_bucket(samples: list[Sample], low: int, high: int) -> tuple[float, float, float] | None:
    """Least, most and last value from `low` to `high`, one sample after the other."""
    ordered = sorted(samples, key=lambda sample: sample[0])
    if low > ordered[-1][0] * 1000:
        return None
    before = [value for at, value in ordered if at * 1000 < low]
    within = [value for at, value in ordered if low <= at * 1000 < high]
    begins_with_one = any(at * 1000 == low for at, _ in ordered)
    seen = [*([] if begins_with_one else before[-1:]), *within]
    return (min(seen), max(seen), seen[-1]) if seen else None


@examples(25)
@given(SAMPLES, st.integers(0, 12), st.integers(0, 3))
def test_a_bucket_knows_what_was_in_it_and_what_held_when_it_began(
    samples: list[Sample], level: int, number: int
) -> None:
    samples = list({at: (at, value) for at, value in samples}.values())  # one at a time
    trace = recorded(samples)

    found = counter_tile(trace, track_of(trace, "recorded"), level, number)

    width = BUCKET_PIXELS << level
    for place in range(BUCKETS):
        low = found.start_ns + place * width
        expected = slow_bucket(samples, low, low + width)
        shown = (found.least[place], found.most[place], found.last[place])
        if expected is None:
            assert all(map(math.isnan, shown))
        else:
            assert shown == expected
    assert (found.least_of_all, found.most_of_all) == (
        min(value for _, value in samples),
        max(value for _, value in samples),
    )


def test_a_recorded_counter_has_its_name_and_unit() -> None:
    track = track_of(recorded([(5, 1)]), "recorded")

    assert (track.label, track.unit, track.detail) == ("power: value (W)", "W", "recorded")


def test_queues_and_copies_of_a_devices_streams_are_summed() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 100],
            ["cuda_runtime", "cudaLaunchKernel", 1, 1, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 3, 1, {"correlation": 2}],
            ["kernel", "a", 10, 20, {"correlation": 1, "stream": 1}],
            ["kernel", "b", 20, 20, {"correlation": 2, "stream": 2}],
            ["cuda_runtime", "cudaMemcpyAsync", 40, 1, {"correlation": 3}],
            ["gpu_memcpy", "Memcpy HtoD", 50, 10, {"correlation": 3, "stream": 1, "bytes": 1000}],
            ["cuda_runtime", "cudaMemcpyAsync", 41, 1, {"correlation": 4}],
            ["gpu_memcpy", "Memcpy DtoH", 55, 10, {"correlation": 4, "stream": 2, "bytes": 3000}],
        ]
    )

    queue = counter_tile(trace, track_of(trace, "queue"), 8, 0)  # buckets of 1.024 µs
    copies = counter_tile(trace, track_of(trace, "copies"), 8, 0)

    def at(found: object, us: float) -> float:
        return float(found.last[int(us * 1000 / 1024)])  # type: ignore[attr-defined]

    assert [at(queue, us) for us in (2, 5, 15, 30, 45)] == [1, 2, 1, 0, 2]
    assert [at(copies, us) for us in (52, 57, 62)] == [1e8, 4e8, 3e8]


def test_a_share_of_busy_time_is_not_known_before_and_behind_the_devices_work() -> None:
    trace = trace_of(
        [["cpu_op", "aten::mm", 0, 100], ["kernel", "a", 10, 20], ["kernel", "b", 40, 5]]
    )

    found = counter_tile(trace, track_of(trace, "busy"), 8, 0)

    known = [place for place in range(BUCKETS) if not math.isnan(found.last[place])]
    assert known == list(range(10_000 // 1024, 45_000 // 1024 + 1))
    assert sum(found.last[place] * 1024 for place in known) == pytest.approx(25_000)
    assert found.last[35_000 // 1024] == 0
