"""The window: steps, else the device, else operators, else whatever there is."""

from typing import Any

import pytest

from loading import SAMPLE_LOGS, trace_at, trace_of
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import Window, window
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals

STEP = ["user_annotation", "ProfilerStep#1", 100, 50]
NEXT = ["user_annotation", "ProfilerStep#2", 160, 40]
KERNEL = ["kernel", "gemm", 120, 100]
EARLY_KERNEL = ["kernel", "gemm", 20, 10]
OPERATOR = ["cpu_op", "aten::mm", 10, 300]
ANNOTATION = ["user_annotation", "epoch", 5, 500]
FRAME = ["python_function", "train.py(1): main", 1, 900]


@pytest.mark.parametrize(
    ("rows", "expected_us"),
    [
        ([STEP, NEXT, OPERATOR], (100, 200, 200, 2)),
        ([STEP, NEXT, KERNEL], (100, 200, 220, 2)),
        ([STEP, EARLY_KERNEL], (100, 150, 150, 1)),
        ([KERNEL, EARLY_KERNEL, OPERATOR], (20, 220, 220, 0)),
        ([OPERATOR, ANNOTATION, FRAME], (10, 310, 310, 0)),
        ([ANNOTATION, FRAME], (5, 505, 505, 0)),
        ([FRAME], (1, 901, 901, 0)),
    ],
    ids=["steps", "work goes on", "work before", "device", "operators", "annotations", "frames"],
)
def test_the_window_is_of_the_best_that_there_is(
    rows: list[Any], expected_us: tuple[int, int, int, int]
) -> None:
    first = ["overhead", "Buffer Flush", 1, 1]  # times are from the first event
    found = window(trace_of([first, *rows]))
    *times_us, count = expected_us
    start, end, device_end = ((time - 1) * 1000 for time in times_us)
    assert found == Window(
        start_ns=start,
        end_ns=end,
        device_start_ns=start,
        device_end_ns=device_end,
        step_count=count,
    )


def test_a_trace_of_nothing_that_counts_has_an_empty_window() -> None:
    found = window(trace_of([["overhead", "Buffer Flush", 5, 1]]))
    assert (found.duration_ns, found.reference_ns, found.has_steps) == (0, 1, False)


def test_figures_are_per_step_where_there_are_steps() -> None:
    two = window(trace_of([STEP, NEXT]))
    none = window(trace_of([OPERATOR]))
    assert (two.per_step(101), none.per_step(101)) == (50, 101)
    assert (two.has_steps, none.has_steps) == (True, False)


def test_the_devices_copies_of_steps_and_empty_steps_do_not_count() -> None:
    mirror = ["gpu_user_annotation", "ProfilerStep#1", 300, 500]
    empty = ["user_annotation", "ProfilerStep#0", 90, 0]
    found = window(trace_of([empty, STEP, mirror]))
    assert (found.duration_ns, found.step_count) == (50_000, 1)


def launched(step: int, *kernels: tuple[int, int]) -> list[list[Any]]:
    """A step of 100 us at 100 us a number, and kernels that it launches: start and duration."""
    rows: list[list[Any]] = [["user_annotation", f"ProfilerStep#{step}", 100 * step, 100]]
    for place, (start, duration) in enumerate(kernels):
        link = {"correlation": 10 * step + place + 1}
        rows.append(["cuda_runtime", "cudaLaunchKernel", 100 * step + 5 + place, 1, link])
        rows.append(["kernel", "gemm", start, duration, link])
    return rows


def test_a_last_step_that_was_cut_is_outside_as_it_is_in_the_breakdown() -> None:
    rows = [
        *launched(0, (20, 30), (60, 30)),
        *launched(1, (120, 30), (160, 50)),
        *launched(2, (250, 40)),
    ]
    trace = trace_of(rows)
    found, broken = window(trace), step_breakdown(trace)
    assert (found.end_ns, found.device_end_ns, found.step_count) == (200_000, 210_000, 2)
    assert broken.step_count == len(broken.duration_ns) == 2


def test_steps_sum_to_the_window_which_is_the_whole_of_shares() -> None:
    near = trace_of([*launched(0, (20, 50)), *launched(1, (120, 179))])
    ahead = trace_of([*launched(0, (20, 50)), *launched(1, (120, 281))])
    gaps = trace_of([STEP, NEXT, ["user_annotation", "ProfilerStep#3", 230, 10]])
    for trace, steps_us in ((near, [100, 199]), (ahead, [100, 301]), (gaps, [60, 70, 10])):
        assert step_breakdown(trace).duration_ns.tolist() == [us * 1000 for us in steps_us]
        assert window(trace).reference_ns == window(trace).duration_ns == sum(steps_us) * 1000
        assert step_breakdown(trace).mean_ns == window(trace).per_step(window(trace).duration_ns)


def test_the_backlog_of_steps_before_the_trace_belongs_to_no_step() -> None:
    earlier = [
        ["kernel", "gemm", -80, 100, {"correlation": 900}],  # its launch was not recorded
        ["cuda_runtime", "cudaLaunchKernel", -10, 2, {"correlation": 901}],
        ["kernel", "gemm", 20, 100, {"correlation": 901}],
    ]
    trace = trace_of([*earlier, *launched(0, (120, 100)), *launched(1, (220, 100))])
    found, steps = window(trace), step_breakdown(trace)
    origin_ns = found.start_ns
    assert found.device_start_ns - origin_ns == 120_000
    assert found.duration_ns == 200_000
    assert steps.duration_ns.tolist() == [100_000, 100_000]
    assert steps.start_ns.tolist() == [origin_ns + 120_000, origin_ns + 220_000]
    assert intervals.duration_ns(all_busy(trace)) == 200_000


def test_a_backlog_that_a_slower_host_works_off_leaves_the_steps_as_long_as_on_the_host() -> None:
    earlier = ["kernel", "gemm", -80, 140, {"correlation": 900}]
    trace = trace_of([earlier, *launched(0, (60, 50)), *launched(1, (120, 90))])
    found, steps = window(trace), step_breakdown(trace)
    assert found.device_start_ns - found.start_ns == 10_000
    assert found.duration_ns == 200_000
    assert steps.duration_ns.tolist() == [100_000, 100_000]


def test_work_of_a_stream_that_the_steps_do_not_use_is_no_backlog() -> None:
    other = ["kernel", "broadcast", -50, 500, {"correlation": 900, "stream": 20}]
    trace = trace_of([other, *launched(0, (20, 50)), *launched(1, (120, 50))])
    assert window(trace).duration_ns == 200_000


def test_the_backlog_is_of_the_stream_on_which_the_steps_work_longest() -> None:
    copy = {"correlation": 900, "stream": 20}
    rows = [
        ["cuda_runtime", "cudaMemcpyAsync", -10, 2, copy],
        ["gpu_memcpy", "Memcpy DtoH", -5, 250, copy],
        *launched(0, (20, 50)),
        *launched(1, (120, 50)),
        ["cuda_runtime", "cudaMemcpyAsync", 150, 2, {"correlation": 901}],
        ["gpu_memcpy", "Memcpy DtoH", 260, 5, {"correlation": 901, "stream": 20}],
    ]
    found = window(trace_of(rows))
    assert found.device_start_ns == found.start_ns


def test_launches_that_are_lost_in_all_steps_are_no_backlog() -> None:
    lost = [
        ["kernel", "triton", 100 * step + 10, 40, {"correlation": 900 + step}] for step in (0, 1)
    ]
    trace = trace_of([*lost, *launched(0, (60, 30)), *launched(1, (160, 130))])
    assert window(trace).device_start_ns == window(trace).start_ns


def test_the_work_of_a_step_on_its_stream_ends_the_backlog() -> None:
    lasting = ["kernel", "gemm", -50, 90, {"correlation": 900}]
    trace = trace_of([lasting, *launched(0, (20, 50)), *launched(1, (120, 150))])
    found = window(trace)
    assert found.device_start_ns - found.start_ns == 20_000


@pytest.mark.parametrize(
    "name", ["tf32_cuda/float32", "tf32_cuda/tf32", "mixed_precision_cuda/bfloat16"]
)
def test_the_mean_step_is_the_period_of_steps_on_a_device_that_is_behind(name: str) -> None:
    [path] = (SAMPLE_LOGS / name).glob("*.gz")
    trace = trace_at(path)
    marks = trace.device_annotations
    starts_ns = marks["start_ns"][marks["name"].str.startswith("ProfilerStep")].sort_values()
    found = window(trace)
    mean_ns = found.duration_ns / found.step_count
    assert mean_ns == pytest.approx(starts_ns.diff().median(), rel=0.02)
