"""What fetching batches costs, and what cost most inside."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.core.data_loading import data_loading, handover_ns, tensor_count
from stepscope.analyses.idle.data_stalls import data_stalls, slowest_calls
from stepscope.base.errors import MissingDataError, NotApplicableError

US = 1000
SINGLE = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
MULTI = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STEP = ["user_annotation", "ProfilerStep#1", 0, 1000]


def load(start: int, duration: int, name: str = SINGLE, **more: Any) -> list[Any]:
    return ["user_annotation", name, start, duration, more]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        (SINGLE, (1, 1, 0)),
        (MULTI, (1, 0, 1)),
        ("enumerate(DataPipe)#ShufflerIterDataPipe", (1, 0, 0)),
        ("[pl][profile]run_training_epoch.train_dataloader_next", (1, 0, 0)),
        ("[pl][profile][_EvaluationLoop].val_next", (1, 0, 0)),
        ("[pl][profile]get_train_batch", (1, 0, 0)),
        ("[pl][profile]run_training_batch", (0, 0, 0)),
        ("enumerate(something)#else", (0, 0, 0)),
        ("my enumerate(DataLoader)#x", (0, 0, 0)),
    ],
)
def test_these_ranges_are_calls_for_a_batch(name: str, counts: tuple[int, int, int]) -> None:
    found = data_loading(trace_of([STEP, load(10, 100, name)]))
    assert (found.call_count, found.single_process_count, found.multi_process_count) == counts


@pytest.mark.parametrize("category", ["user_annotation", "Operator", "cpu_op"])
def test_they_are_known_in_every_format(category: str) -> None:
    found = data_loading(trace_of([STEP, [category, SINGLE, 10, 100]]))
    assert found.call_count == 1


def test_what_a_device_hides_is_not_exposed() -> None:
    trace = trace_of([STEP, load(100, 100), ["kernel", "gemm", 50, 80]])
    stalls = data_stalls(trace)
    assert stalls.exposed.tolist() == [[130 * US, 200 * US]]
    assert (stalls.exposed_ns, stalls.total_ns) == (70 * US, 100 * US)


def test_any_devices_work_hides_it() -> None:
    rows = [["kernel", "gemm", 100, 50], ["kernel", "gemm", 150, 50, {"device": 1}]]
    assert data_stalls(trace_of([STEP, load(100, 100), *rows])).exposed_ns == 0


def test_without_a_device_all_of_it_is_exposed_and_threads_count_once() -> None:
    trace = trace_of([STEP, load(100, 100), load(150, 100, tid=7)])
    assert data_stalls(trace).exposed.tolist() == [[100 * US, 250 * US]]


def test_only_the_steps_count_and_only_the_iterator_that_is_asked_for() -> None:
    trace = trace_of([STEP, load(-500, 100), load(950, 100), load(100, 10, MULTI), load(1100, 10)])
    single = data_stalls(trace, "_SingleProcess")
    assert single.exposed.tolist() == [[1450 * US, 1500 * US]], "cut where the steps end"
    assert (len(single.rows), single.iterators) == (1, ("_SingleProcessDataLoaderIter",))
    assert data_stalls(trace).iterators == (
        "_MultiProcessingDataLoaderIter",
        "_SingleProcessDataLoaderIter",
    )


def test_calls_within_a_call_are_one_batch() -> None:
    around = "[pl][profile][_TrainingEpochLoop].train_dataloader_next"
    stalls = data_stalls(trace_of([STEP, load(100, 100, around), load(110, 80)]))
    assert (len(stalls.rows), stalls.iterators) == (1, ("_SingleProcessDataLoaderIter",))
    assert (stalls.total_ns, stalls.batch_ns) == (100 * US, 100 * US)


def test_a_frameworks_call_counts_whole_for_the_iterator_that_it_asks() -> None:
    around = "[pl][profile][_TrainingEpochLoop].train_dataloader_next"
    rows = [load(100, 100, around), load(110, 80), load(300, 50, around), load(310, 30, MULTI)]
    stalls = data_stalls(trace_of([STEP, *rows]), "_SingleProcess")
    assert (len(stalls.rows), stalls.total_ns) == (1, 100 * US)
    assert stalls.iterators == ("_SingleProcessDataLoaderIter",)


def test_a_slow_call_moves_the_mean_and_not_the_median() -> None:
    stalls = data_stalls(trace_of([STEP, load(100, 10), load(200, 10), load(300, 100)]))
    assert (stalls.batch_ns, stalls.median_ns) == (40 * US, 10 * US)


def test_a_trace_without_such_calls_has_no_loader_and_one_without_the_host_cannot_tell() -> None:
    with pytest.raises(NotApplicableError, match="no batch was fetched"):
        data_stalls(trace_of([STEP]))
    with pytest.raises(MissingDataError, match="no host activity") as caught:
        data_stalls(trace_of([["kernel", "gemm", 0, 10]]))
    assert "ProfilerActivity.CPU" in caught.value.remedy


def test_the_slowest_call_comes_first_with_what_cost_most_in_it() -> None:
    trace = trace_of(
        [
            STEP,
            load(100, 100),
            ["cpu_op", "aten::stack", 110, 60],
            ["cpu_op", "aten::empty", 180, 10],
            load(300, 200),
            load(600, 50),
            ["python_function", "data.py(8): __getitem__", 605, 20],
            ["python_function", "data.py(9): decode", 606, 4],
            ["python_function", "data.py(8): __getitem__", 625, 20],
        ]
    )
    found = slowest_calls(trace, data_stalls(trace))
    assert [(each.duration_ns, each.detail) for each in found] == [
        (200 * US, ""),
        (100 * US, "60.0 % of it in aten::stack"),
        (50 * US, "80.0 % of it in data.py(8): __getitem__"),
    ]


@pytest.mark.parametrize(
    ("between_ms", "tensors", "expected_us"),
    [(1, 0, 300), (3, 2, 700), (12, 1, 833), (24, 2, 1400), (100, 4, 2200)],
)
def test_a_handover_takes_longer_in_longer_steps_and_for_more_tensors(
    between_ms: float, tensors: int, expected_us: int
) -> None:
    assert handover_ns(between_ms * 1e6, tensors) // 1000 == expected_us


@pytest.mark.parametrize(
    ("iterator", "operator", "counts", "expected"),
    [
        (MULTI, "aten::set_", (3, 3, 4), 3),
        (MULTI, "aten::set_", (1, 1), 1),
        (MULTI, "aten::stack", (3, 3), 2),
        (SINGLE, "aten::stack", (3, 3), 3),
        (SINGLE, "aten::stack", (1, 1), 2),
        (SINGLE, "aten::stack", (64, 64), 2),
        (SINGLE, "aten::set_", (3, 3), 2),
    ],
)
def test_tensors_of_a_batch_are_counted_where_they_are_taken_or_made(
    iterator: str, operator: str, counts: tuple[int, ...], expected: int
) -> None:
    rows = [STEP, ["cpu_op", operator, 1, 2]]
    for call, number in enumerate(counts, 1):
        rows.append(load(100 * call, 90, iterator))
        rows += [["cpu_op", operator, 100 * call + each, 1] for each in range(number)]
    assert tensor_count(trace_of(rows)) == expected
