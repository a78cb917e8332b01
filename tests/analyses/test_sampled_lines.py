"""Samples of the host in unrecorded steps: read from the trace, by line and phase."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.host.hot_spots import worker_spots
from stepscope.analyses.host.phase_names import (
    BACKWARD,
    FORWARD,
    FORWARD_ONLY,
    HOST_CODE,
    LOADING,
    NOT_MODEL,
    OPTIMIZER,
)
from stepscope.analyses.host.sampled_lines import (
    OF_WORKERS,
    lines_in,
    no_grad_lines,
    phase_of,
    sampled_line_table,
    sampled_lines,
    user_line,
    wilson,
    worker_line_table,
)
from stepscope.analyses.settings.host_samples import SampledStack, host_samples, worker_samples
from stepscope.base.errors import MissingDataError

ROWS: list[Any] = [["cpu_op", "aten::mm", 10, 50]]
MS = 1_000_000
MAIN = "train.py(50): main"


def recorded(
    stacks: list[Any], frames: list[Any], damaged: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Metadata of a recorder with these samples, and a measured step of 10 ms."""
    count, time_ns = sum(row[0] for row in stacks), sum(row[1] for row in stacks)
    figures = {"count": count, "time_ns": time_ns, "step_count": 40, "interval_ns": 10 * MS}
    samples = {**figures, "frames": frames, "stacks": stacks, **(damaged or {})}
    step = {f"{name}_ns": 10 * MS for name in ("median", "first_quartile", "third_quartile")}
    steps = {"count": 40, **step, "mean_ns": 10 * MS, "backlog_ns": 0}
    return {"stepscope_recorder": {"host_samples": samples, "unrecorded_steps": steps}}


def stack(*frames: str) -> SampledStack:
    return SampledStack(frames=frames, count=1, time_ns=1)


def test_samples_of_a_line_are_summed_by_phase_and_the_longest_is_first() -> None:
    frames = [MAIN, "torch/_tensor.py(623): backward", "train.py(9): log", "json/encoder.py(2): x"]
    metadata = recorded([[2, 30 * MS, 0, 1], [4, 40 * MS, 0, 2], [3, 30 * MS, 0, 2, 3]], frames)
    lines = sampled_lines(trace_of(ROWS, **metadata))
    assert [(line.frame, line.phase, line.count, line.share) for line in lines] == [
        ("train.py(9): log", HOST_CODE, 4, 0.4),
        (MAIN, BACKWARD, 2, 0.3),
        ("train.py(9): log", "json", 3, 0.3),
    ]
    table = sampled_line_table(trace_of(ROWS, **metadata))
    assert table["step_ns"].tolist() == [4 * MS, 3 * MS, 3 * MS]
    assert table["line"].tolist() == [9, 50, 9]


@pytest.mark.parametrize(
    ("library", "phase"),
    [
        ("torch/_tensor.py(623): backward", BACKWARD),
        ("torch/autograd/__init__.py(503): grad", BACKWARD),
        ("torch/optim/adam.py(456): _single_tensor_adam", OPTIMIZER),
        ("torch/nn/modules/module.py(1778): _wrapped_call_impl", FORWARD),
        ("torch/utils/data/dataloader.py(700): __next__", LOADING),
        ("torch/serialization.py(944): save", "checkpoint"),
        ("torch/nn/modules/module.py(2236): state_dict", "checkpoint"),
        ("PIL/Image.py(2200): resize", "images"),
        ("torch/functional.py(100): einsum", HOST_CODE),
    ],
)
def test_a_function_of_a_library_names_the_phase(library: str, phase: str) -> None:
    assert phase_of(stack(MAIN, library)) == phase
    assert phase_of(stack(MAIN)) == HOST_CODE


def test_all_that_a_data_loader_calls_is_data_loading() -> None:
    loader, images = "torch/utils/data/dataloader.py(700): __next__", "PIL/Image.py(2200): resize"
    assert phase_of(stack(MAIN, loader, "data.py(7): __getitem__", images)) == LOADING


def test_the_innermost_function_that_names_a_phase_decides() -> None:
    module = "torch/nn/modules/module.py(1778): _wrapped_call_impl"
    assert phase_of(stack(MAIN, module, "train.py(9): forward", "json/decoder.py(2): x")) == "json"


MODULE = "torch/nn/modules/module.py(1778): _wrapped_call_impl"


def lines_of(phase: str, *stacks: tuple[str, ...]) -> list[str]:
    """Lines of a phase, of stacks with ten samples each."""
    frames = list(dict.fromkeys(frame for calls in stacks for frame in calls))
    rows = [[10, 100 * MS, *map(frames.index, calls)] for calls in stacks]
    trace = trace_of(ROWS, **recorded(rows, frames))
    return [line.frame for line in lines_in(trace, phase)]


def test_host_code_between_operators_may_be_of_any_function_but_no_operators_of_a_layer() -> None:
    stacks = (
        (MAIN, "train.py(9): preview", "PIL/Image.py(2200): save"),
        (MAIN, MODULE, "train.py(20): build_mask"),
        (MAIN, MODULE, "train.py(21): forward", "torch/nn/functional.py(9): gelu"),
        (MAIN, "torch/_tensor.py(623): backward"),
    )
    assert lines_of(HOST_CODE, *stacks) == ["train.py(9): preview", "train.py(20): build_mask"]
    assert lines_of(NOT_MODEL, *stacks, (MAIN,)) == [MAIN]
    assert lines_of("images", *stacks) == ["train.py(9): preview"]


def test_a_validation_is_known_by_the_name_of_its_function() -> None:
    stacks = (
        (MAIN, "train.py(30): validate", MODULE, "train.py(21): forward"),
        (MAIN, MODULE, "train.py(21): forward"),
        (MAIN, "train.py(40): evaluate_all", "train.py(30): validate", MODULE),
        (MAIN, "train.py(50): validate_arguments"),
    )
    assert lines_of(FORWARD_ONLY, *stacks) == ["train.py(30): validate"]


def test_few_samples_name_no_line() -> None:
    metadata = recorded([[2, 20 * MS, 0]], [MAIN])
    assert lines_in(trace_of(ROWS, **metadata), HOST_CODE) == ()


def test_a_sample_belongs_to_the_users_innermost_line() -> None:
    module = "torch/nn/modules/linear.py(134): forward"
    assert user_line(stack(MAIN, "train.py(9): forward", module)) == "train.py(9): forward"
    assert user_line(stack(module)) == module


@pytest.mark.parametrize(
    "damaged",
    [
        {"stacks": "none"},
        {"stacks": [[1, 10]]},
        {"stacks": [[1, 10, 7]]},
        {"stacks": [[-1, 10, 0], [True, 10, 0], ["x", 10, 0], None]},
        {"frames": {"0": MAIN}},
        {"frames": [7]},
        {"interval_ns": 0},
        {"count": 0},
        {"time_ns": 1},
        {"time_ns": 1e400},
    ],
)
def test_figures_that_contradict_each_other_count_as_absent(damaged: dict[str, Any]) -> None:
    metadata = recorded([[1, 10 * MS, 0]], [MAIN], damaged)
    assert host_samples(trace_of(ROWS, **metadata)) is None


def test_a_damaged_stack_costs_one_stack() -> None:
    metadata = recorded([[1, 10 * MS, 0], [1, 10 * MS, 9]], [MAIN])
    samples = host_samples(trace_of(ROWS, **metadata))
    assert samples is not None
    assert [part.frames for part in samples.stacks] == [(MAIN,)]
    assert sampled_lines(trace_of(ROWS, **metadata))[0].share == 0.5, "the other half is unknown"


def test_without_samples_the_table_names_the_code_that_takes_them() -> None:
    with pytest.raises(MissingDataError) as error:
        sampled_line_table(trace_of(ROWS))
    assert "stepscope.trace_handler" in error.value.remedy
    assert sampled_lines(trace_of(ROWS)) == ()


@given(st.integers(1, 500), st.data())
def test_the_interval_contains_the_fraction_and_narrows_with_more_samples(
    count: int, data: st.DataObject
) -> None:
    share = data.draw(st.integers(0, count)) / count
    low, high = wilson(share, count)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    narrower = wilson(share, 4 * count)
    assert narrower[1] - narrower[0] < high - low


def test_wilsons_interval_is_that_of_the_paper() -> None:
    low, high = wilson(0.1, 100)
    assert math.isclose(low, 0.0552, abs_tol=1e-4)
    assert math.isclose(high, 0.1744, abs_tol=1e-4)


def test_frames_of_installed_packages_are_not_the_users() -> None:
    frames = [MAIN, "booster/core.py(7): fit", "json/encoder.py(2): x", "torch/_tensor.py(3): norm"]
    samples = {"library_frames": [1, 2, 3, -1, "x"]}
    metadata = recorded([[4, 40 * MS, 0, 1, 2, 3]], frames, samples)
    samples_read = host_samples(trace_of(ROWS, **metadata))
    assert samples_read is not None
    assert samples_read.stacks[0].frames == (
        MAIN,
        "site-packages/booster/core.py(7): fit",
        *frames[2:],
    )
    [line] = sampled_lines(trace_of(ROWS, **metadata))
    assert line.frame == MAIN


def test_what_a_closure_of_an_optimizer_calls_is_no_update() -> None:
    step = "torch/optim/adam.py(456): step"
    assert phase_of(stack(MAIN, step)) == OPTIMIZER
    assert phase_of(stack(MAIN, step, "train.py(8): on_step", "torch/_tensor.py(3): norm")) == (
        HOST_CODE
    )


def test_lines_that_call_a_model_without_autograd_are_known_in_training() -> None:
    call = "torch/nn/modules/module.py(1778): _wrapped_call_impl"
    frames = [MAIN, "train.py(8): teach", call, "torch/_tensor.py(623): backward"]
    stacks = [[5, 50 * MS, 0, 1, 2], [5, 50 * MS, 0, 2], [5, 50 * MS, 0, 3]]
    trained = recorded(stacks, frames, {"without_grad": [0]})
    [line] = no_grad_lines(trace_of(ROWS, **trained))
    assert (line.frame, line.phase, line.count) == ("train.py(8): teach", FORWARD_ONLY, 5)
    assert not no_grad_lines(trace_of(ROWS, **recorded(stacks, frames)))
    served = recorded(stacks[:2], frames, {"without_grad": [0, 1]})
    assert not no_grad_lines(trace_of(ROWS, **served))


FETCH, COLLATE = (f"torch/utils/data/_utils/{name}" for name in ("fetch.py(54): f", "c.py(2): c"))


def of_workers(
    stacks: list[Any], frames: list[Any], damaged: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Metadata of a recorder with these samples of two workers that also waited for 50 ms."""
    samples = recorded(stacks, frames)["stepscope_recorder"]["host_samples"]
    waits = {"process_count": 2, "waiting_count": 5, "waiting_ns": 50 * MS}
    return {"stepscope_recorder": {"worker_samples": {**samples, **waits, **(damaged or {})}}}


def test_lines_of_workers_have_fractions_of_their_working_time() -> None:
    frames = [FETCH, "data.py(8): read", "data.py(9): read", COLLATE]
    stacks = [[8, 80 * MS, 0, 2], [4, 40 * MS, 0, 1], [3, 30 * MS, 3]]
    trace = trace_of(ROWS, **of_workers(stacks, frames))
    samples = worker_samples(trace)
    assert samples is not None
    assert (samples.process_count, samples.waiting_share) == (2, 0.25)
    table = worker_line_table(trace)
    assert list(table.columns) == [column.name for column in OF_WORKERS]
    assert list(table["line"]) == [9, 8, 2]
    assert list(table["sample_count"]) == [8, 4, 3]
    assert list(table["working_ns"]) == pytest.approx([80 * MS, 40 * MS, 30 * MS])
    assert table["working_share"].sum() == pytest.approx(1)
    assert sampled_lines(trace) == (), "they are no lines of the training process"


def test_functions_of_workers_are_the_users_innermost_or_the_librarys() -> None:
    frames = [FETCH, "data.py(8): read", "data.py(9): read", "data.py(9): <lambda>", COLLATE]
    stacks = [[8, 80 * MS, 0, 2, 3], [4, 40 * MS, 0, 1], [3, 30 * MS, 4], [2, 20 * MS, 0, 1, 0]]
    spots = worker_spots(trace_of(ROWS, **of_workers(stacks, frames)))
    assert [(spot.name, spot.count) for spot in spots] == [
        ("data.py: read", 14),
        ("torch/utils/data/_utils/c.py: c", 3),
    ]
    assert spots[0].lines == ("data.py(9): <lambda>", "data.py(8): read")


@pytest.mark.parametrize(
    "damaged",
    [
        {"process_count": 0},
        {"process_count": "many"},
        {"waiting_ns": -1},
        {"waiting_ns": None},
        {"stacks": {}},
        {"frames": None},
        {"count": 0},
        {"interval_ns": 1e400},
    ],
)
def test_damaged_figures_of_workers_count_as_absent(damaged: dict[str, Any]) -> None:
    trace = trace_of(ROWS, **of_workers([[4, 40 * MS, 0]], [MAIN], damaged))
    assert worker_samples(trace) is None
    assert worker_spots(trace) == ()
    with pytest.raises(MissingDataError):
        worker_line_table(trace)


def test_samples_of_workers_that_are_no_object_count_as_absent() -> None:
    trace = trace_of(ROWS, stepscope_recorder={"worker_samples": [1, 2]})
    assert worker_samples(trace) is None
