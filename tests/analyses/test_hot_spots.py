"""Hot spots: where the loop, functions, callbacks and forward passes take sampled time."""

from typing import Any

import pytest

from loading import trace_of
from stepscope.analyses.host.hot_spots import HotSpot, hot_spots, loading_lines
from stepscope.model.trace import Trace

MS = 1_000_000
ROWS: list[Any] = [["cpu_op", "aten::mm", 10, 50]]
MAIN, BACKWARD = "train.py(50): main", "torch/_tensor.py(623): backward"
CALL = "torch/nn/modules/module.py(1778): _wrapped_call_impl"


def sampled(*stacks: tuple[int, tuple[str, ...]]) -> Trace:
    """A trace with samples: stacks with their numbers."""
    frames = list(dict.fromkeys(frame for _, calls in stacks for frame in calls))
    figures = {
        "count": sum(count for count, _ in stacks),
        "time_ns": sum(count for count, _ in stacks) * 10 * MS,
        "interval_ns": 10 * MS,
        "frames": frames,
        "stacks": [[n, n * 10 * MS, *map(frames.index, calls)] for n, calls in stacks],
    }
    return trace_of(ROWS, stepscope_recorder={"host_samples": figures})


def spots(*stacks: tuple[int, tuple[str, ...]]) -> list[HotSpot]:
    """Hot spots of stacks with their numbers of samples."""
    return list(hot_spots(sampled(*stacks)))


def test_of_loading_few_samples_still_show_the_lines() -> None:
    fetch = "torch/utils/data/_utils/fetch.py(54): fetch"
    decode, crop = "data.py(8): decode", "data.py(20): crop"
    few = sampled((9, (MAIN,)), (1, (MAIN, fetch, crop)), (2, (MAIN, fetch, decode)))
    assert loading_lines(few) == (decode, crop)
    enough = sampled((9, (MAIN,)), (1, (MAIN, fetch, crop)), (5, (MAIN, fetch, decode)))
    assert loading_lines(enough) == (decode,)


def test_a_function_below_the_loop_is_one_spot_with_all_that_it_calls() -> None:
    report, norm = "train.py(8): report", "train.py(20): norm"
    [spot] = spots(
        (5, ("train.py(40): main", BACKWARD)),
        (2, (MAIN, report, norm)),
        (3, (MAIN, "train.py(9): report", "json/encoder.py(2): x")),
    )
    assert (spot.name, spot.count, spot.share, spot.caller) == ("train.py: report", 5, 0.5, MAIN)
    assert spot.phase == "json"
    assert spot.lines == ("train.py(9): report", norm)


def test_lines_of_the_loop_are_divided_by_distance_and_by_training() -> None:
    near = [f"train.py({line}): main" for line in (10, 12)]
    forward, behind, far = (f"train.py({line}): main" for line in (13, 14, 30))
    named = spots(
        (4, ("train.py(50): main", BACKWARD)),
        (3, (forward, CALL)),
        (2, (near[0],)),
        (1, (near[1],)),
        (1, (behind,)),
        (2, (far,)),
    )
    assert [(spot.name, spot.lines) for spot in named] == [
        ("train.py: main", tuple(near)),
        ("train.py: main #3", (far,)),
        ("train.py: main #2", (behind,)),
    ]


@pytest.mark.parametrize(
    "stack",
    [
        ("train.py(50): main", "lightning/pytorch/trainer/trainer.py(584): fit"),
        ("train.py(50): main", CALL, "torch/nn/modules/linear.py(134): forward"),
        ("train.py(50): main", "torch/utils/data/dataloader.py(7): __next__", "data.py(3): item"),
        ("train.py(60): main", "torch/serialization.py(944): save"),
        ("lightning/pytorch/trainer/trainer.py(584): fit",),
    ],
)
def test_libraries_training_loading_and_checkpoints_are_none(stack: tuple[str, ...]) -> None:
    assert spots((4, (MAIN, BACKWARD)), (4, stack)) == []


def test_a_callback_is_called_by_a_library() -> None:
    fit, hook = "lightning/pytorch/trainer/trainer.py(584): fit", "train.py(9): on_step"
    [spot] = spots((4, (MAIN, fit, BACKWARD)), (4, (MAIN, fit, hook)))
    assert (spot.caller, spot.is_callback) == (MAIN, True)
    decorated = "torch/utils/_contextlib.py(124): decorate_context"
    for calls in ((MAIN, hook), (MAIN, decorated, hook), (MAIN, CALL, hook)):
        [spot] = spots((4, (MAIN, BACKWARD)), (4, calls))
        assert not spot.is_callback


def test_in_a_forward_pass_only_functions_at_work_are_spots() -> None:
    mask, inner = "model.py(9): make_mask", "model.py(10): <listcomp>"
    [spot] = spots(
        (4, (MAIN, BACKWARD)),
        (2, (MAIN, CALL, "model.py(5): forward", mask, inner)),
        (1, (MAIN, CALL, "model.py(5): forward", mask)),
        (5, (MAIN, CALL, "model.py(6): forward", CALL)),
    )
    assert (spot.name, spot.phase, spot.lines) == ("model.py: make_mask", "forward", (inner, mask))


def test_in_inference_the_loop_is_what_calls_the_model() -> None:
    [spot] = spots((4, (MAIN, CALL)), (4, ("train.py(60): main", "train.py(9): write")))
    assert spot.name == "train.py: write"
    assert spots((4, (MAIN,))) == [], "without a model or training, nothing is the loop"
