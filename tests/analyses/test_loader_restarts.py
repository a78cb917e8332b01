"""When workers were restarted, told by stacks or by the calls around the restart."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.idle.loader_restarts import LoaderRestarts, begins_epoch, loader_restarts
from stepscope.model.trace import Trace

MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
FILE = "torch/utils/data/dataloader.py"
STEPS = [["user_annotation", "ProfilerStep#1", 0, 100_000]]
SEED = [
    ["cpu_op", "aten::empty", 34_000, 10],
    ["cpu_op", "aten::random_", 34_020, 10],
    ["cpu_op", "aten::item", 34_040, 10],
]
# The last batch (500 us), the call that ends the epoch (8 ms), the new iterator (6 ms), its first
# batch (4.5 ms), two more.
CALLS = [
    ["user_annotation", MULTI, 10_000, 500],
    ["cpu_op", "aten::mm", 11_000, 9_000],
    ["user_annotation", MULTI, 25_000, 8_000],
    ["user_annotation", MULTI, 40_000, 4_500],
    ["cpu_op", "aten::mm", 45_000, 9_000],
    ["user_annotation", MULTI, 55_000, 500],
    ["cpu_op", "aten::mm", 56_000, 9_000],
    ["user_annotation", MULTI, 66_000, 500],
]


def frame(text: str, start: int, duration: int, file: str = FILE) -> list[Any]:
    return ["python_function", f"{file}(9): {text}", start, duration]


STACKS = [
    frame("__next__", 10_000, 500),
    frame("_shutdown_workers", 25_100, 7_800),
    frame("_shutdown_workers", 33_100, 20),
    frame("__iter__", 33_500, 6_000),
    frame("start", 34_500, 2_000, "multiprocessing/process.py"),
    frame("start", 36_500, 2_000, "/usr/lib/python3.11/multiprocessing/process.py"),
]


def ms(found: LoaderRestarts) -> dict[str, Any]:
    sets = {name: getattr(found, name) for name in ("shutdown", "start", "first_batch")}
    return {name: (times / 1e6).tolist() for name, times in sets.items()}


def test_stacks_tell_when_and_how_many() -> None:
    found = loader_restarts(trace_of([*STEPS, *CALLS, *SEED, *STACKS]))
    assert (found.count, found.worker_counts, found.batch_count) == (1, (2,), 5)
    # of five calls the median takes 0.5 ms
    assert ms(found) == {
        "shutdown": [[25.1, 32.9]],
        "start": [[33.5, 39.5]],
        "first_batch": [[40.5, 44.5]],
    }


def test_without_stacks_the_calls_tell() -> None:
    found = loader_restarts(trace_of([*STEPS, *CALLS, *SEED]))
    assert (found.count, found.worker_counts) == (1, ())
    assert ms(found) == {
        "shutdown": [[25.0, 33.0]],
        "start": [[33.0, 40.0]],
        "first_batch": [[40.5, 44.5]],
    }


KEPT = ["user_annotation", MULTI, 32_980, 20]
WORK = ["cpu_op", "aten::add", 35_000, 10]
NONE: dict[str, Trace] = {
    "the call that ends the epoch only says so": trace_of(
        [*STEPS, *(row for row in CALLS if row[2] != 25_000), KEPT, *SEED]
    ),
    "no iterator was made": trace_of([*STEPS, *CALLS]),
    "the program computes in between": trace_of([*STEPS, *CALLS, *SEED, WORK]),
    "it was another thread's call": trace_of(
        [*STEPS, *([*row, {"tid": 9}] if row[2] == 25_000 else row for row in CALLS), *SEED]
    ),
    "it lies before the steps": trace_of(
        [["user_annotation", "ProfilerStep#1", 50_000, 50_000], *CALLS, *SEED]
    ),
    "stacks show no new process": trace_of([*STEPS, *CALLS, *SEED, *STACKS[:4]]),
    "stacks show the first iterator of all": trace_of([*STEPS, *CALLS[3:], *SEED, *STACKS]),
    "no worker at all": trace_of([*STEPS, *SEED]),
    "one process loads": trace_of(
        [*STEPS, *SEED, ["user_annotation", MULTI.replace("Multi", "Single"), 1, 5_000]]
    ),
}


@pytest.mark.parametrize("trace", NONE.values(), ids=NONE)
def test_these_are_no_restarts(trace: Trace) -> None:
    found = loader_restarts(trace)
    assert (found.count, len(found.all)) == (0, 0)


def test_work_after_a_restart_is_slow_if_it_has_as_many_operators() -> None:
    usual = [["cpu_op", "aten::mm", 11_000, 2_000], ["cpu_op", "aten::mm", 56_000, 2_000]]
    calls = [
        ["user_annotation", MULTI, 10_000, 500],
        ["user_annotation", MULTI, 15_000, 500],
        ["cpu_op", "aten::mm", 16_000, 8_000],
        ["user_annotation", MULTI, 25_000, 8_000],
        ["user_annotation", MULTI, 40_000, 4_500],
        ["cpu_op", "aten::mm", 45_000, 9_000],
        ["user_annotation", MULTI, 55_000, 500],
        ["user_annotation", MULTI, 60_000, 500],
    ]
    found = loader_restarts(trace_of([*STEPS, *usual, *calls, *SEED]))
    assert (found.slow_work / 1e6).tolist() == [[49.0, 55.0]]
    more = ["cpu_op", "aten::add", 54_100, 10]
    assert not len(loader_restarts(trace_of([*STEPS, *usual, *calls, *SEED, more])).slow_work)


def test_an_epoch_begins_after_a_call_that_only_ends_the_one_before() -> None:
    calls = [
        ["user_annotation", MULTI, 10_000, 500],
        ["cpu_op", "aten::mm", 11_000, 9_000],
        ["user_annotation", MULTI, 25_000, 20],
        ["cpu_op", "aten::random_", 25_050, 10],
        ["user_annotation", MULTI, 26_000, 4_500],
        ["user_annotation", MULTI, 31_000, 500],
        ["user_annotation", MULTI, 35_000, 20],
        ["cpu_op", "aten::mm", 36_000, 9_000],
        ["user_annotation", MULTI, 46_000, 500],
    ]
    trace = trace_of([*STEPS, *calls])
    rows = data_loading(trace).rows
    assert begins_epoch(trace, rows).tolist() == [False, False, True, False, False, False]
    assert begins_epoch(trace, rows[:1]).tolist() == [False]
