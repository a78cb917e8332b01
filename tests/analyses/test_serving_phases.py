"""Prefill and decode: names of iterations, a small trace whose answer is known, a slow count."""

from typing import Any

import numpy as np
import pytest

import tracebuild
from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from stepscope.analyses.steps.serving_phases import (
    PHASES,
    Batch,
    batch_of,
    serving_iterations,
    serving_phases,
)
from stepscope.model.trace import Trace

pytestmark = pytest.mark.frames

US = 1000
NAN = float("nan")


@pytest.mark.parametrize(
    ("name", "batch"),
    [
        ("execute_context_2(512)_generation_0(0)", ("prefill", 2, 0, 512, 0)),
        ("execute_context_0(0)_generation_32(40)", ("decode", 32, 32, 0, 40)),
        ("execute_context_1(100)_generation_3(3)", ("mixed", 4, 3, 100, 3)),
        ("execute_context_0(0)_generation_0(0)", ("unknown", 0, 0, 0, 0)),
        (
            "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
            ("decode", 32, 32, 0, 32),
        ),
        ("execute_new_2_cached_0", ("prefill", 2, NAN, NAN, NAN)),
        ("execute_new_0_cached_8", ("unknown", 8, NAN, NAN, NAN)),
        ("execute_new_1_cached_8", ("unknown", 9, NAN, NAN, NAN)),
        ("step[DECODE bs=32]", ("decode", 32, 32, 0, 32)),
        ("step[EXTEND bs=2 toks=107]", ("prefill", 2, 0, 107, 0)),
        ("step[EXTEND bs=2]", ("prefill", 2, 0, NAN, 0)),
        ("step[TARGET_VERIFY bs=4]", ("decode", 4, NAN, NAN, NAN)),
        ("step[MIXED bs=5]", ("mixed", 5, NAN, NAN, NAN)),
        ("step[IDLE bs=0]", ("unknown", 0, NAN, NAN, NAN)),
        ("execute_context", None),
        ("ProfilerStep#1", None),
        ("step[1]", None),
    ],
)
def test_names_of_iterations_state_their_batches(name: str, batch: Any) -> None:
    found = batch_of(name)
    if batch is None:
        assert found is None
        return
    assert found is not None
    assert found.phase == batch[0]
    stated = [
        found.requests, found.decoding_requests, found.prompt_tokens, found.output_tokens
    ]  # fmt: skip
    np.testing.assert_equal(stated, list(batch[1:]))


def iteration(name: str, at: int, length: int, work: list[tuple[int, int]]) -> list[Any]:
    """An annotation, and kernels (start, duration) that it launches."""
    rows: list[tracebuild.Row] = [["user_annotation", name, at, length]]
    for index, (start, took) in enumerate(work):
        number = 10_000 * at + index
        launch = ["cuda_runtime", "cudaLaunchKernel", at + index, 1, {"correlation": number}]
        kernel = ["kernel", "k", start, took, {"correlation": number, "stream": 7 + index}]
        rows += [launch, kernel]
    return rows


SERVED: list[tracebuild.Row] = [
    *iteration("execute_context_1(400)_generation_0(0)", 0, 50, [(20, 100), (60, 80)]),
    # launched while the prefill's work runs: it begins when that ends, at 140
    *iteration("execute_context_0(0)_generation_4(4)", 60, 20, [(150, 30)]),
    *iteration("execute_context_0(0)_generation_8(8)", 300, 50, [(310, 20)]),
    # nested: the outermost counts
    ["user_annotation", "step[DECODE bs=8]", 305, 40],
    *iteration("execute_context_1(10)_generation_2(4)", 400, 10, [(405, 95)]),
    *iteration("execute_new_1_cached_3", 600, 10, []),
    ["kernel", "of no iteration", 700, 50],
]
"""Times in µs."""


def test_phases_of_a_small_trace() -> None:
    columns = [
        "phase", "iteration_count", "request_count", "prompt_token_count", "output_token_count",
        "wall_ns", "device_busy_ns", "mean_ns", "time_per_output_token_ns",
    ]  # fmt: skip
    table = serving_phases(trace_of(SERVED))
    expected = [
        ["prefill", 1, 1, 400, 0, 140 * US, 120 * US, 140 * US, NAN],
        ["decode", 2, 12, 0, 12, 90 * US, 50 * US, 45 * US, (40 * 4 + 50 * 8) * US / 12],
        ["mixed", 1, 3, 10, 4, 100 * US, 95 * US, 100 * US, 100 * US * 2 / 4],
        ["unknown", 1, 4, NAN, NAN, 10 * US, 0, 10 * US, NAN],
    ]
    for row, values in zip(table[columns].to_numpy().tolist(), expected, strict=True):
        np.testing.assert_equal(row, values)
    assert list(table["wall_share"]) == pytest.approx([140 / 340, 90 / 340, 100 / 340, 10 / 340])
    assert set(table["source"]) == {"annotation"}


def test_python_calls_are_iterations_of_an_unknown_phase() -> None:
    trace = trace_of(
        [
            ["python_function", "vllm/v1/worker/gpu_worker.py(300): execute_model", 0, 100],
            ["python_function", "vllm/v1/worker/gpu_model_runner.py(2000): execute_model", 5, 80],
            ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1}],
            ["kernel", "k", 40, 100, {"correlation": 1}],
        ]
    )
    (row,) = rows_of(serving_phases(trace))
    assert (row.phase, row.source, row.iteration_count) == ("unknown", "Python call", 1)
    assert (row.wall_ns, row.device_busy_ns) == (135 * US, 100 * US)
    assert np.isnan(row.request_count)


def test_other_traces_have_no_phases() -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 10], ["kernel", "k", 0, 5]])
    assert serving_iterations(trace) is None
    assert len(serving_phases(trace)) == 0


def _slow(rows: list[Any]) -> dict[str, tuple[int, int, int]]:
    """Iterations, duration and busy time (µs) of each phase, microsecond by microsecond."""
    spans = sorted((row[2], row[3], row[1]) for row in rows if row[0] == "user_annotation")
    launches = {row[4]["correlation"]: row[2] for row in rows if row[0] == "cuda_runtime"}
    kernels = [row for row in rows if row[0] == "kernel"]
    result: dict[str, tuple[int, int, int]] = {}
    busy: dict[str, set[int]] = {phase: set() for phase in PHASES}
    free_at = 0
    for start, length, name in spans:
        batch = batch_of(name)
        assert batch is not None
        end = start + length
        for _, _, begin, took, arguments in kernels:
            if start <= launches[arguments["correlation"]] < start + length:
                busy[batch.phase] |= set(range(begin, begin + took))
                end = max(end, begin + took)
        end = max(end, free_at)
        count, wall, _ = result.get(batch.phase, (0, 0, 0))
        result[batch.phase] = (count + 1, wall + end - max(start, free_at), len(busy[batch.phase]))
        free_at = end
    return result


@pytest.mark.parametrize("seed", range(20))
def test_phases_agree_with_a_slow_count(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows: list[Any] = []
    at = 0
    for _ in range(chance.integers(1, 13)):
        at += int(chance.integers(10, 61))
        name = str(
            chance.choice(
                [
                    "execute_context_1(400)_generation_0(0)",
                    "execute_context_0(0)_generation_4(4)",
                    "step[MIXED bs=3]",
                    "execute_new_0_cached_2",
                ]
            )
        )
        work = [
            (at + int(chance.integers(5, 81)), int(chance.integers(1, 41)))
            for _ in range(chance.integers(0, 5))
        ]
        rows += iteration(name, at, length := int(chance.integers(8, 31)), work)
        at += length
    table = serving_phases(trace_of(rows))
    found = {
        row.phase: (row.iteration_count, row.wall_ns // US, row.device_busy_ns // US)
        for row in rows_of(table)
    }
    assert found == _slow(rows)


@pytest.mark.parametrize("name", shared_trace_names("tracelens/inference"))
def test_recorded_iterations_of_engines_decode(name: str) -> None:
    trace: Trace = trace_at(SHARED_TRACES / name)
    (row,) = rows_of(serving_phases(trace))
    assert (row.phase, row.iteration_count, row.request_count) == ("decode", 1, 32)
    assert row.output_token_count == 32
    iterations = serving_iterations(trace)
    assert iterations is not None
    assert iterations.batches == (
        Batch(phase="decode", requests=32, decoding_requests=32, prompt_tokens=0, output_tokens=32),
    )
    assert (iterations.events == 0).all()
    assert 0 < row.device_busy_ns < row.wall_ns
