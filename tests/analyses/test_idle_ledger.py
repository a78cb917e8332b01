"""Every idle nanosecond of a device has one cause: against a slow count of microseconds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import trace_of
from stepscope.analyses.core.device_activity import device_activity
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import CAUSES, idle_ledger
from stepscope.model import intervals
from stepscope.model.trace import Trace

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def causes_us(trace: Trace, device: int = 0) -> dict[str, float]:
    """The causes in microseconds, without those of no time."""
    idle = idle_ledger(trace)[device].idle_ns
    return {cause: time / US for cause, time in idle.items() if time}


def scheduled(*actions: dict[str, Any], machine: str = "h100") -> Trace:
    schedule = {"machine": machine, "actions": list(actions)}
    return trace_of(document=tracebuild.document(schedule=schedule))


def gap_of(between: list[dict[str, Any]], **options: Any) -> dict[str, float]:
    """The causes of the one gap between two kernels: the first runs from 8 to 108 us.

    Without steps the window is the device's own, so there is nothing before or behind.
    """
    return causes_us(
        scheduled({"kernel": "a", "us": 100}, *between, {"kernel": "b", "us": 100}, **options)
    )


# Each cause in a minimal schedule


def test_a_host_that_is_late_by_less_than_a_millisecond_is_dispatch() -> None:
    assert gap_of([{"host": 203}]) == {"dispatch": 108}, (
        "208 + 5 us to launch, 3 to begin, from 108"
    )


def test_a_host_that_is_late_by_a_millisecond_is_a_stall() -> None:
    assert gap_of([{"host": 1094}]) == {"dispatch": 999}
    assert gap_of([{"host": 1095}]) == {"host-stall": 1000}


def test_a_wait_is_blamed_for_a_long_gap_only_as_long_as_it_waited() -> None:
    # it waits from 25 us on until the kernel ends at 108, and then the host does something else
    wait: list[dict[str, Any]] = [{"host": 20}, {"sync": "device", "us": 0}]
    short, long = gap_of([*wait, {"host": 900}]), gap_of([*wait, {"host": 5000}])
    assert set(short) == {"post-sync"}
    assert long["post-sync"] < 110
    assert long["host-stall"] > 4800


def test_waiting_for_data_owns_its_part_of_a_gap() -> None:
    # next() lasts from 5 to 205 us, of which 97 in the gap; 8 us of launching behind it
    assert gap_of([{"dataloader": 0, "us": 200}]) == {"dataloader": 97, "dispatch": 8}


@pytest.mark.parametrize("machine", ["h100", "mi250"])
def test_the_allocator_owns_its_part_of_a_gap(machine: str) -> None:
    found = gap_of([{"malloc": 4096, "us": 200}], machine=machine)
    assert found == {"alloc": 97, "dispatch": 8}


def test_a_gap_behind_a_wait_is_the_waits() -> None:
    # the wait ends with the kernel, the host goes on for 50 us, 8 to launch
    before = {"host": 20}  # the window begins with the first kernel
    assert gap_of([before, {"sync": "stream", "us": 0}, {"host": 50}]) == {"post-sync": 58}
    assert gap_of([before, {"sync": "device", "us": 2}, {"host": 50}]) == {"post-sync": 60}


def test_a_wait_that_ended_early_emptied_nothing() -> None:
    """It waited for an event; kernels were still queued behind that when it returned."""
    rows = [
        ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
        ["kernel", "a", 10, 100, {"correlation": 1}],
        ["cuda_runtime", "cudaEventSynchronize", 20, 30],
        ["cuda_runtime", "cudaLaunchKernel", 150, 5, {"correlation": 2}],
        ["kernel", "b", 160, 10, {"correlation": 2}],
    ]
    assert causes_us(trace_of(rows)) == {"dispatch": 50}


@pytest.mark.parametrize(("end", "cause"), [(105, "post-sync"), (104, "dispatch")])
def test_a_wait_may_end_five_microseconds_early_by_the_two_clocks(end: int, cause: str) -> None:
    rows = [
        ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
        ["kernel", "a", 10, 100, {"correlation": 1}],
        ["cuda_runtime", "cudaStreamSynchronize", 20, end - 20],
        ["cuda_runtime", "cudaLaunchKernel", 150, 5, {"correlation": 2}],
        ["kernel", "b", 160, 10, {"correlation": 2}],
    ]
    assert causes_us(trace_of(rows)) == {cause: 50}


def test_work_that_was_launched_but_did_not_start_is_queued() -> None:
    rows = [
        ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
        ["cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": 2}],
        ["kernel", "a", 10, 100, {"correlation": 1}],
        ["kernel", "b", 160, 10, {"correlation": 2}],
    ]
    assert causes_us(trace_of(rows)) == {"queued": 50}


def test_a_launch_that_was_not_recorded_leaves_the_cause_open() -> None:
    rows = [["kernel", "a", 10, 100], ["kernel", "b", 160, 10]]
    assert causes_us(trace_of(rows)) == {"no-record": 50}


def test_what_is_behind_the_last_event_is_the_tail() -> None:
    rows = [["user_annotation", "ProfilerStep#1", 0, 300], ["kernel", "a", 0, 100]]
    assert causes_us(trace_of(rows)) == {"tail": 200}


def test_a_step_without_any_device_work_before_its_end_is_all_idle() -> None:
    rows = [["user_annotation", "ProfilerStep#1", 0, 300], ["kernel", "a", 300, 10]]
    assert causes_us(trace_of(rows)) == {"no-record": 300}


def test_each_device_has_its_own_ledger() -> None:
    rows = [
        ["user_annotation", "ProfilerStep#1", 0, 100],
        ["kernel", "a", 0, 100],
        ["kernel", "b", 0, 40, {"device": 1}],
    ]
    trace = trace_of(rows)
    assert sorted(idle_ledger(trace)) == [0, 1]
    assert (causes_us(trace, 0), causes_us(trace, 1)) == ({}, {"tail": 60})


def test_a_trace_without_a_device_has_no_ledger() -> None:
    assert idle_ledger(trace_of([["cpu_op", "aten::mm", 0, 10]])) == {}


# Against a slow version

WORK = st.tuples(
    st.integers(0, 150),  # when it begins
    st.integers(1, 12),  # how long it runs
    st.none() | st.integers(-40, 15),  # when its launch begins, from then on; None: not recorded
)
SPAN = st.tuples(st.integers(0, 150), st.integers(1, 30))
Work = tuple[int, int, int | None]
Span = tuple[int, int]


def rows_of(works: list[Work], loads: list[Span], allocs: list[Span], waits: list[Span]) -> Any:
    rows: list[Any] = [["user_annotation", "ProfilerStep#1", 0, 160]]
    for number, (start, duration, launch) in enumerate(works):
        link = {"correlation": number + 1}
        rows.append(["kernel", "gemm", start, duration, {**link, "stream": number}])
        if launch is not None:
            call = max(0, start + launch)
            rows.append(["cuda_runtime", "cudaLaunchKernel", call, 4, {**link, "tid": number}])
    for number, (start, duration) in enumerate(loads):
        rows.append(["user_annotation", LOADER, start, duration, {"tid": 100 + number}])
    for number, (start, duration) in enumerate(allocs):
        rows.append(["cuda_runtime", "cudaMalloc", start, duration, {"tid": 200 + number}])
    for number, (start, duration) in enumerate(waits):
        name = "cudaDeviceSynchronize"
        rows.append(["cuda_runtime", name, start, duration, {"tid": 300 + number}])
    return rows


def slow(
    works: list[Work], loads: list[Span], allocs: list[Span], waits: list[Span]
) -> dict[str, int]:
    """Count microsecond by microsecond, as the definition has it."""
    end = max([160, *(start + duration for start, duration, _ in works)])
    busy = {at for start, duration, _ in works for at in range(start, start + duration)}
    idle = [at for at in range(end) if at not in busy]
    gaps: list[list[int]] = []
    for at in idle:
        if gaps and gaps[-1][1] == at:
            gaps[-1][1] = at + 1
        else:
            gaps.append([at, at + 1])
    counts = dict.fromkeys(CAUSES, 0)
    for a, b in gaps:
        rest = rest_of_gap(a, b, gaps, works, waits)
        for at in range(a, b):
            if any(start <= at < start + duration for start, duration in loads):
                counts["dataloader"] += 1
            elif any(start <= at < start + duration for start, duration in allocs):
                counts["alloc"] += 1
            else:
                counts[rest] += 1
    return {cause: count for cause, count in counts.items() if count}


def rest_of_gap(a: int, b: int, gaps: list[list[int]], works: list[Work], waits: list[Span]) -> str:
    """Name the cause of what neither loading nor the allocator took of a gap."""
    following = [(start, n) for n, (start, _, _) in enumerate(works) if start == b]
    if not following:
        return "tail"
    for start, duration in waits:
        until = start + duration
        if until > 160:
            continue  # it ends behind the window
        first = next(([g, h] for g, h in gaps if h >= until), None)
        if first == [a, b] and start < a and until >= a - 5:
            return "post-sync"
    launch = works[following[0][1]][2]
    if launch is None:
        return "no-record"
    return "dispatch" if max(0, b + launch) + 4 > a else "queued"


@given(
    st.lists(WORK, min_size=1, max_size=6, unique_by=lambda work: work[0]),
    st.lists(SPAN, max_size=2),
    st.lists(SPAN, max_size=2),
    st.lists(SPAN, max_size=2),
)
def test_it_agrees_with_a_slow_count(
    works: list[Work], loads: list[Span], allocs: list[Span], waits: list[Span]
) -> None:
    trace = trace_of(rows_of(works, loads, allocs, waits))
    [activity] = device_activity(trace)
    within = window(trace)
    idle_ns = within.duration_ns - intervals.duration_ns(activity.busy)
    assert sum(idle_ledger(trace)[0].idle_ns.values()) == idle_ns
    assert causes_us(trace) == slow(works, loads, allocs, waits)
    times = [each for each in idle_ledger(trace)[0].times.values() if len(each)]
    assert intervals.duration_ns(intervals.merged(*times)) == idle_ns, "no two causes overlap"
