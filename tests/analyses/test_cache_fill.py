"""How full a device's cache was at its fullest."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.memory.fragmentation import cache_fill
from stepscope.base.errors import MissingDataError


def memory(start: int, size: int, allocated: int, reserved: int) -> list[Any]:
    totals = {"Total Allocated": allocated, "Total Reserved": reserved}
    return ["cpu_instant_event", "[memory]", start, None, {"Bytes": size, "Device Type": 1,
            "Device Id": 0, "Addr": 1, **totals}]  # fmt: skip


def test_only_times_at_which_most_was_reserved_count_and_of_them_the_fullest() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 100],
            memory(10, 900, 900, 1000),
            memory(20, -600, 300, 2000),
            memory(30, 1300, 1600, 2000),
            memory(40, -1600, 0, 2000),
        ]
    )
    [fill] = cache_fill(trace)
    assert (fill.reserved_bytes, fill.unused_bytes, fill.unused_share) == (2000, 400, 0.2)
    assert fill.time_ns == 30_000
    assert fill.step_unused_bytes == (400.0,)


def test_without_steps_there_are_none_to_compare() -> None:
    [fill] = cache_fill(trace_of([memory(10, 900, 900, 1000)]))
    assert (fill.unused_bytes, fill.step_unused_bytes) == (100, ())


def test_who_keeps_no_cache_has_none() -> None:
    assert cache_fill(trace_of([memory(10, 900, 900, 0)])) == ()


def test_without_memory_nothing_is_known() -> None:
    with pytest.raises(MissingDataError):
        cache_fill(trace_of([["cpu_op", "aten::add", 0, 10]]))
