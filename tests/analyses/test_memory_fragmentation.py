"""Reserved memory that lies idle: at the peak, over time, at the end."""

import pytest

from loading import rows_of, trace_of
from memorybuild import memory, with_totals
from stepscope.analyses.memory.fragmentation import memory_fragmentation
from stepscope.base.errors import MissingDataError


def test_unused_is_reserved_less_allocated() -> None:
    def event(time: float, change: str, allocated: int, reserved: int) -> list[object]:
        totals = {"Total Allocated": allocated, "Total Reserved": reserved}
        return list(memory(time, change, **totals))

    trace = trace_of(
        [
            event(0, "+100@1", 100, 200),
            event(10, "+300@2", 400, 500),
            event(30, "-300@2", 100, 500),
            event(40, "-100@1", 0, 300),
        ]
    )
    (row,) = rows_of(memory_fragmentation(trace))
    assert (row.reserved_peak_ns, row.most_reserved_bytes) == (10_000, 500)
    assert (row.unused_bytes, row.unused_share) == (100, 0.2)
    assert (row.most_unused_bytes, row.end_unused_bytes) == (400, 300)
    unused, reserved = 10 * 100 + 20 * 100 + 10 * 400, 10 * 200 + 20 * 500 + 10 * 500
    assert row.mean_unused_share == pytest.approx(unused / reserved)


def test_devices_without_a_cache_have_no_row() -> None:
    cpu = with_totals(["+8@1"], type_code=0, device=-1)
    trace = trace_of([*cpu, *with_totals(["+8@1"], reserved=16)])
    assert memory_fragmentation(trace)["device_type"].tolist() == ["CUDA"]


def test_where_none_has_a_cache_it_says_so() -> None:
    with pytest.raises(MissingDataError, match="CPUs have no cache"):
        memory_fragmentation(trace_of(with_totals(["+8@1"], type_code=0)))
