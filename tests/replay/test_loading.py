"""Loading that moves to workers: a queue by hand as oracle, and pairs that were recorded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.model.trace import Trace
from stepscope.replay.graph import replay_graph
from stepscope.replay.loading import HANDOVER_NS, FetchCalls, MoveLoading, move_loading
from stepscope.replay.simulation import PARTS, simulate

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
BATCHES = 6
FITTED = 0.08
"""Largest error of the pairs that the two constants were measured on."""


def loop(load_us: int, compute_us: int, *, name: str = LOADER) -> Trace:
    """Return a loop that fetches a batch and computes, in steps."""
    rows, at_us = [], 0
    for number in range(BATCHES):
        duration_us = load_us + compute_us
        rows += [
            ["user_annotation", f"ProfilerStep#{number}", at_us, duration_us],
            ["user_annotation", name, at_us, load_us],
            ["cpu_op", "aten::mm", at_us + load_us, compute_us],
        ]
        at_us += duration_us
    return trace_of(rows)


def end_of_queue(load_ns: int, compute_ns: int, change: MoveLoading) -> float:
    """Return the end of a loop that takes batches from a queue which workers fill."""
    loop_ns = compute_ns + change.handover_ns
    step_ns = max(loop_ns, load_ns / change.workers)
    needed = compute_ns * min(change.threads, change.cores) + change.handover_ns + load_ns
    crowding = max(1, needed / change.cores / step_ns)
    slowdown = max(crowding, 1 + change.contention * load_ns / step_ns / crowding)
    at_ns = 0.0
    for number in range(BATCHES):
        ready_ns = number * load_ns / change.workers * crowding
        at_ns = max(at_ns, ready_ns) + change.handover_ns + compute_ns * slowdown
    return at_ns


times_us = st.integers(1, 50_000)
numbers = st.integers(1, 8)


@given(load_us=times_us, compute_us=times_us, workers=numbers, cores=numbers, threads=numbers)
def test_the_loop_takes_batches_from_a_queue_that_workers_fill(
    load_us: int, compute_us: int, workers: int, cores: int, threads: int
) -> None:
    change = MoveLoading(workers=workers, cores=cores, threads=threads)
    result = simulate(loop(load_us, compute_us), [change])
    expected = end_of_queue(load_us * 1000, compute_us * 1000, change)
    assert result.simulated_ns == pytest.approx(expected, abs=4 * BATCHES)
    assert sum(result.simulated_path_ns().values()) == result.simulated_ns


def test_a_loop_waits_for_workers_that_are_slower_than_it() -> None:
    change = MoveLoading(workers=2, cores=8, contention=0)
    result = simulate(loop(100_000, 10_000), [change])
    expected = (BATCHES - 1) * 50_000_000 + HANDOVER_NS + 10_000_000
    assert result.simulated_ns == expected
    path = dict(zip(PARTS, (10_000_000, 0, 0, expected - 10_000_000), strict=True))
    assert result.simulated_path_ns() == path


def test_without_a_free_core_workers_save_nothing() -> None:
    result = simulate(loop(30_000, 50_000), [MoveLoading(workers=4, cores=1)])
    assert -0.05 * result.recorded_ns < result.saved_ns <= 0


def test_batches_that_are_cheaper_than_their_handover_cost_time() -> None:
    assert simulate(loop(300, 50_000), [MoveLoading(workers=2, cores=8)]).saved_ns < 0


def test_more_workers_deliver_as_much_faster_as_there_are_more() -> None:
    name, metadata = WORKERS, {"stepscope": {"num_workers": 2}}
    slow = loop(40_000, 10_000, name=name)
    hinted = trace_of(
        [["user_annotation", name, at, 40_000] for at in range(0, 300_000, 50_000)], **metadata
    )
    with pytest.raises(MissingDataError, match="number of the recorded workers is unknown"):
        move_loading(slow, 4, 16)
    assert move_loading(hinted, 4, 16).batch_ns == 2 * 50_000_000


def test_workers_that_keep_up_and_loops_without_a_loader_are_refused() -> None:
    with pytest.raises(MissingDataError, match="the recorded workers keep up"):
        move_loading(loop(1_000, 50_000, name=WORKERS), 8, 16)
    with pytest.raises(NotApplicableError, match="no batch was fetched"):
        move_loading(trace_of([["cpu_op", "aten::mm", 0, 50]]), 4, 8)
    with pytest.raises(MissingDataError, match="number of cores was not recorded"):
        move_loading(loop(1_000, 50_000), 4)


def predicted_ms(trace: Trace, workers: int, cores: int | None = None) -> float:
    result = simulate(trace, [move_loading(trace, workers, cores)])
    return result.simulated_ns / result.step_count / 1e6


@pytest.mark.parametrize(
    ("name", "measured_ms"),
    list(zip(shared_trace_names("kineto/resnet50_num_workers_0"), (128.0, 123.2), strict=False)),
)
def test_without_loading_the_kineto_job_takes_as_long_as_with_workers(
    name: str, measured_ms: float
) -> None:
    predicted = predicted_ms(trace_at(SHARED_TRACES / name), workers=4)
    assert predicted == pytest.approx(measured_ms, rel=0.05)


@pytest.mark.parametrize(
    ("run", "cores", "measured_ms"),
    [
        ("dataloader/no_workers", 2, 62.39),
        ("lightning_fetch/no_workers", None, 58.43),
        ("cifar_resnet18/thin", None, 15.30),
        ("synthetic_dataloader/fault", 8, 28.33),
    ],
)
def test_without_loading_the_samples_take_as_long_as_their_fixes(
    run: str, cores: int | None, measured_ms: float
) -> None:
    [path] = (SAMPLE_LOGS / run).glob("*.json.gz")
    assert predicted_ms(trace_at(path), 2, cores) == pytest.approx(measured_ms, rel=FITTED)


def test_calls_inside_a_call_are_one_fetch() -> None:
    inner = ["user_annotation", LOADER, 10, 50]
    outer = ["user_annotation", "[pl][profile][_TrainingEpochLoop].train_dataloader_next", 0, 100]
    calls = FetchCalls.of(replay_graph(trace_of([outer, inner, ["cpu_op", "aten::mm", 200, 9]])))
    assert np.column_stack((calls.start_ns, calls.end_ns)).tolist() == [[0, 100_000]]
