"""Two runs side by side: what changed, matched by name, told from noise, summing to the step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stepscope
import tracebuild
from loading import ROOT, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.base.errors import UsageError
from stepscope.base.findings import ClaimReport, Evidence, Link, Outcome
from stepscope.base.formatting import duration
from stepscope.base.step_range import StepRange
from stepscope.comparison import compare
from stepscope.comparison.advice_changes import FOLLOWED, subject
from stepscope.comparison.likeness import (
    GRADIENT,
    SAME_MODEL,
    OperatorProfile,
    likeness,
    operator_profile,
)
from stepscope.comparison.messages import Comparison, Row
from stepscope.comparison.operator_changes import (
    device_rows,
    match_rows,
    module_rows,
    operator_rows,
)
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.selected_steps import select_steps
from stepscope.comparison.side import MOST_SAMPLES, batched, side_samples
from stepscope.comparison.significance import confidence_interval
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.render.comparison_phrases import row_name

pytestmark = pytest.mark.frames

STEP_US = 10_000
FIGURES = {"calls": "call_count", "host": "host_ns", "device": "device_ns"}
JITTER_US = (0, 13, 7, 21, 4, 17)


def loop(
    ops: Sequence[tuple[Any, ...]], *, steps: int = 6, step_us: int = STEP_US, device: bool = True
) -> list[tracebuild.Row]:
    """Steps with operators `(name, kernel, kernel_us, calls, shape)`, each kernel jittering."""
    rows: list[tracebuild.Row] = []
    correlation = 0
    for step in range(steps):
        begin = step * step_us
        jitter = JITTER_US[step % len(JITTER_US)]
        rows.append(["user_annotation", f"ProfilerStep#{step}", begin, step_us - 10 + jitter % 9])
        at = begin + 10
        for name, kernel, kernel_us, calls, shape in ops:
            for _ in range(calls):
                correlation += 1
                more = {"Input Dims": shape} if shape else {}
                rows.append(["cpu_op", name, at, 20, more])
                if device:
                    launch = {"correlation": correlation}
                    rows.append(["cuda_runtime", "cudaLaunchKernel", at + 5, 5, launch])
                    rows.append(["kernel", kernel, at + 15, kernel_us + jitter, launch])
                at += max(kernel_us, 20) + 60
    return rows


def compared(before: Trace | list[Trace], after: Trace | list[Trace]) -> Comparison:
    sides = [each if isinstance(each, list) else [each] for each in (before, after)]
    return compare("a", [sample(t) for t in sides[0]], "b", [sample(t) for t in sides[1]])


def of_steps(trace: Trace, before: str, after: str) -> Comparison:
    return stepscope.compare(trace, trace, baseline_steps=before, steps=after).report.comparisons[0]


def test_two_steps_of_one_trace_are_compared() -> None:
    """A whole small comparison: step 1 calls mm once, step 4 twice and relu as well."""
    rows: list[tracebuild.Row] = []
    calls = {0: ["mm"], 1: ["mm"], 2: ["mm"], 3: ["mm"], 4: ["mm", "mm", "relu"], 5: ["mm"]}
    for step, names in calls.items():
        rows.append(["user_annotation", f"ProfilerStep#{step}", step * 1000, 900])
        for at, name in enumerate(names):
            rows.append(["cpu_op", f"aten::{name}", step * 1000 + 100 * at, 50 + step])
    found = of_steps(trace_of(rows), "1", "4")
    assert (found.before.name, found.after.name) == (
        "worker, span 1, step 1",
        "worker, span 1, step 4",
    )
    assert (found.before.step_count, found.after.step_count) == (1, 1)
    assert (found.step.before, found.step.after) == (1_000_000, 1_000_000)
    assert sum(part.change.after for part in found.waterfall) == found.step.after
    shown = {
        each.name: ((each.calls.before, each.calls.after), (each.host.before, each.host.after))
        for each in found.operators
        if each.kind != "rest"
    }
    assert shown == {
        "ProfilerStep*": ((1, 1), (849_000, 738_000)),
        "aten::mm": ((1, 2), (51_000, 108_000)),
        "aten::relu": ((0, 1), (0, 54_000)),
    }
    assert not any((found.advice, found.savings, found.idle, found.figures, found.device_work))
    assert found.warnings[0].startswith("Advice, causes of idle time and figures of devices")


def test_all_steps_selected_give_the_figures_of_the_whole_trace() -> None:
    ops = [("aten::mm", "gemm", 200, 2, None), ("aten::add", "add", 20, 3, None)]
    first, second = trace_of(loop(ops)), trace_of(loop([*ops, ("aten::cos", "cos", 9, 1, None)]))
    whole = compared(first, second)
    selected = compare(
        "a",
        select_steps([sample(first)], StepRange(0, 99)),
        "b",
        select_steps([sample(second)], StepRange(0, 5)),
        are_steps_selected=True,
    )
    assert len(whole.device_work) == 3
    for name in ("step", "step_interval_ns", "waterfall", "operators", "device_work", "before"):
        assert getattr(selected, name) == getattr(whole, name)


def test_each_step_counts_once_over_all_choices() -> None:
    """The steps' figures sum to those of the trace."""
    trace = sample(trace_of(loop([("aten::mm", "gemm", 200, 2, None)])))
    parts = [select_steps([trace], StepRange(step, step))[0] for step in trace.step_numbers]
    assert sum(int(part.duration_ns.sum()) for part in parts) == trace.duration_ns.sum()
    for costs in ("operators", "device_work"):
        whole = getattr(trace, costs)
        for figure in ("call_count", "host_ns", "device_ns", "host_total_ns", "device_total_ns"):
            sums = sum(int(getattr(getattr(part, costs), figure).sum()) for part in parts)
            assert sums == getattr(whole, figure).sum()


def test_of_several_ranks_those_with_the_step_are_compared() -> None:
    trace = sample(trace_of(loop([("aten::mm", "gemm", 200, 1, None)])))
    short = select_steps([trace], StepRange(0, 2))[0]
    assert len(select_steps([trace, short], StepRange(4, 4))) == 1
    assert len(select_steps([trace, short], StepRange(2, 4))) == 2


@pytest.mark.parametrize(
    ("trace", "steps", "message"),
    [
        (loop([("aten::mm", "gemm", 9, 1, None)]), "7", "no step 7: the complete steps are 0-5"),
        (loop([("aten::mm", "gemm", 9, 1, None)]), "7-9", "there are no steps 7-9: the complete"),
        ([["cpu_op", "aten::mm", 0, 10]], "1", "there is no step 1: no step is marked"),
        ([["cpu_op", "aten::mm", 0, 10]], "x", "steps takes a number, or two as in 3-5, not 'x'"),
    ],
)  # fmt: skip
def test_steps_that_are_not_there_are_an_error(
    trace: list[tracebuild.Row], steps: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        of_steps(trace_of(trace), steps, steps)


def row(rows: Sequence[Row], name: str) -> Row:
    [found] = [each for each in rows if each.name == name]
    return found


def test_work_between_the_steps_of_the_host_belongs_to_the_step_before() -> None:
    """Each step of 10 ms has its `ProfilerStep` for 4 ms, and an operator after it."""
    rows: list[tracebuild.Row] = []
    for step in range(4):
        begin, launch = step * STEP_US, {"correlation": step + 1}
        rows += [
            ["user_annotation", f"ProfilerStep#{step}", begin, 4000],
            ["cpu_op", "aten::mm", begin + 10, 20],
            ["cpu_op", "aten::relu", begin + 5000, 20],
            ["cuda_runtime", "cudaLaunchKernel", begin + 5005, 5, launch],
            ["kernel", "relu", begin + 5020, 300, launch],
        ]
    found = sample(trace_of(rows))
    calls = found.operators.operator_calls
    assert calls == {"aten::mm": 4, "aten::relu": 3}
    assert found.device_work.step.tolist() == [0, 1, 2]  # after the last step is no step
    assert found.device_work.device_ns.tolist() == [300_000] * 3


MM = ("aten::mm", "gemm", 1000, 2, [[8, 8], [8, 8]])
RELU = ("aten::relu", "relu", 300, 1, [[8, 8]])
BASE = trace_of(loop([MM, RELU]))


def test_a_run_beside_itself_has_not_changed() -> None:
    found = compared(BASE, BASE)
    assert (found.step.delta, found.step.verdict) == (0, "same")
    assert {each.status for each in (*found.operators, *found.device_work)} == {"same"}
    assert {each.status for each in found.advice} <= {"still"}
    assert found.warnings == ()


def test_what_is_slower_faster_added_and_gone_is_named() -> None:
    after = trace_of(
        loop([("aten::mm", "gemm", 1400, 2, MM[4]), ("aten::silu", "silu", 90, 1, [])])
    )
    found = compared(BASE, after)
    work = {each.name: each.status for each in found.device_work}
    assert work == {"gemm": "slower", "relu": "gone", "silu": "added"}
    gemm = row(found.device_work, "gemm").device
    assert gemm.delta == pytest.approx(800_000)
    assert gemm.p is not None
    assert gemm.p < 0.05
    operators = {each.name: each.status for each in found.operators}
    assert operators["aten::mm"] == "slower"
    assert operators["aten::relu"] == "gone"
    assert operators["aten::silu"] == "added"


def test_calls_a_step_may_change_where_time_does_not() -> None:
    halves = trace_of(loop([("aten::mm", "gemm", 500, 4, MM[4]), RELU]))
    found = row(compared(BASE, halves).device_work, "gemm")
    assert (found.calls.before, found.calls.after, found.calls.verdict) == (2, 4, "more")
    assert found.status == "other-calls"


def test_operators_are_matched_by_name_not_by_place() -> None:
    found = compared(BASE, trace_of(loop([RELU, MM])))
    assert {each.status for each in found.device_work} == {"same"}
    assert {each.matched_by for each in found.operators} == {"name, shape and module"}


def test_another_shape_of_the_same_operator_is_the_same_operator() -> None:
    wider = trace_of(loop([("aten::mm", "gemm", 2000, 2, [[16, 8], [8, 8]]), RELU]))
    found = row(compared(BASE, wider).operators, "aten::mm")
    assert (found.matched_by, found.status) == ("name and module", "slower")
    assert (found.shapes_before, found.shapes_after) == (("[[8,8],[8,8]]",), ("[[16,8],[8,8]]",))


def test_a_shape_that_comes_on_top_is_added() -> None:
    more = trace_of(loop([MM, RELU, ("aten::mm", "gemm", 700, 1, [[2, 2], [2, 2]])]))
    found = [each for each in compared(BASE, more).operators if each.name == "aten::mm"]
    assert sorted((each.status, each.shapes_after) for each in found) == [
        ("added", ("[[2,2],[2,2]]",)),
        ("same", ("[[8,8],[8,8]]",)),
    ]


def test_a_change_spread_over_many_small_rows_is_seen_in_their_sum() -> None:
    def layers(kernel_us: int) -> Trace:
        shapes = [("aten::mul", "mul", kernel_us, 1, [[2, number]]) for number in range(60)]
        return trace_of(loop([MM, *shapes], step_us=40_000))

    found = compared(layers(4), layers(24))
    both = (side_samples("a", [sample(layers(4))]), side_samples("b", [sample(layers(24))]))
    assert [each.name for each in operator_rows(both)].count("aten::mul") == 1
    sums = row(found.operators, "aten::mul")
    assert (sums.summed_count, sums.matched_by, sums.status) == (60, "name", "slower")
    assert sums.device.delta == pytest.approx(60 * 20_000)


def test_what_is_small_by_any_name_is_in_the_rest() -> None:
    def named(kernel_us: int) -> Trace:
        many: list[tuple[Any, ...]] = [
            (f"aten::op{number}", f"k{number}", kernel_us, 1, []) for number in range(60)
        ]
        return trace_of(loop([MM, *many], step_us=40_000, device=False))

    rest = [each for each in compared(named(20), named(20)).operators if each.kind == "rest"]
    assert [(each.summed_count, each.name, each.calls.before) for each in rest] == [(60, "", 60)]
    assert row_name(rest[0]) == "the rest: 60 rows below 0.1 % of the step"


def test_the_waterfall_sums_to_the_step() -> None:
    after = trace_of(loop([("aten::mm", "gemm", 1400, 2, MM[4])], step_us=11_001, steps=5))
    _sums_to_the_step(compared(BASE, after))


@pytest.mark.parametrize(
    "odd",
    [
        ["user_annotation", "ProfilerStep#99", 1e9, 1e13],
        ["kernel", "endless", 5, 1e13, {"correlation": 1}],
        ["kernel", "backwards", 5, -7],
        ["cpu_op", "", 0, 0],
        ["gpu_memcpy", "Memcpy HtoD", -1e6, 1, {"correlation": -5}],
    ],
)
def test_absurd_times_sum_to_the_step_too(odd: tracebuild.Row) -> None:
    trace = trace_of([*loop([MM]), odd])
    for found in (compared(trace, BASE), compared(BASE, trace), compared(trace, trace)):
        _sums_to_the_step(found)


@pytest.mark.parametrize("name", shared_trace_names())
def test_every_recording_can_be_compared(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    _sums_to_the_step(compared(trace, BASE))
    same = compared(trace, trace)
    _rows_sum_to_what_was_sampled(trace, BASE)
    trace.results.clear()
    assert {each.status for each in (*same.operators, *same.device_work)} <= {"same", "untested"}
    assert same.step.verdict in {"same", "untested"}


def _rows_sum_to_what_was_sampled(before: Trace, after: Trace) -> None:
    sides = (side_samples("a", [sample(before)]), side_samples("b", [sample(after)]))
    of_modules = module_rows(sides) or operator_rows(sides)  # none where none was recorded
    for rows, name in (
        (operator_rows(sides), "operators"),
        (device_rows(sides), "device_work"),
        (of_modules, "operators"),
    ):
        for side, end in zip(sides, ("before", "after"), strict=True):
            costs = getattr(side.traces[0], name)
            for figure, column in FIGURES.items():
                total = sum(getattr(getattr(row, figure), end) for row in rows)
                assert total * side.ranks.sum() == pytest.approx(getattr(costs, column).sum())


def _sums_to_the_step(found: Comparison) -> None:
    for side in ("before", "after"):
        parts = sum(getattr(part.change, side) for part in found.waterfall)
        assert parts == getattr(found.step, side)
    assert sum(part.change.delta for part in found.waterfall) == found.step.delta


def test_ranks_of_one_step_are_one_sample() -> None:
    ranks = [_named(loop([MM, RELU]), f"rank{rank}") for rank in range(4)]
    found = compared(ranks, BASE)
    assert (found.before.step_count, found.before.worker_count) == (6, 4)
    assert row(found.device_work, "gemm").calls.before == 2
    assert found.step.delta == 0
    assert found.comparability.level == "with-care"
    assert found.comparability.cautions == ("There are 4 workers before and 1 worker after.",)


def _named(rows: list[tracebuild.Row], worker: str, span: str = "1", **metadata: Any) -> Trace:
    trace = trace_of(rows, **metadata)
    return trace_from_columns(trace.columns, worker=worker, span=span)


def test_a_change_smaller_than_that_between_spans_is_noise() -> None:
    spans = [
        _named(loop([("aten::mm", "gemm", us, 2, [])]), "w", span)
        for us, span in ((1000, "1"), (1400, "2"))
    ]
    middle = _named(loop([("aten::mm", "gemm", 1250, 2, [])]), "w")
    found = row(compared(spans, middle).device_work, "gemm")
    assert found.device.p is not None
    assert found.status == "same"
    far = _named(loop([("aten::mm", "gemm", 2250, 2, [])]), "w")
    assert row(compared(spans, far).device_work, "gemm").status == "slower"


def test_without_steps_nothing_is_told_from_noise() -> None:
    rows = [each for each in loop([MM]) if not str(each[1]).startswith("ProfilerStep")]
    found = compared(trace_of(rows), BASE)
    assert found.step.verdict == "untested"
    assert {each.status for each in found.device_work} <= {"untested", "added", "gone"}
    assert any("no steps before" in warning for warning in found.warnings)


CONVOLUTION = ("aten::conv2d", "conv", 900, 1, [[32, 3, 8, 8], [4, 3, 3, 3]])


def test_other_conditions_ask_for_care() -> None:
    before, after = (
        _named(
            loop([CONVOLUTION]),
            "w",
            cuda_runtime_version=version,
            distributedInfo={"world_size": size},
        )
        for version, size in ((12040, 2), (12060, 4))
    )
    found = compared(before, after).comparability
    assert (found.level, found.reasons, found.likeness) == ("with-care", (), 1)
    assert found.cautions == (
        "Cuda runtime version was 12040 and is 12060.",
        "The number of ranks was 2 and is 4.",
    )


def test_steps_of_other_batches_are_not_comparable() -> None:
    larger = ("aten::conv2d", "conv", 900, 1, [[64, 3, 8, 8], [4, 3, 3, 3]])
    found = compared(trace_of(loop([CONVOLUTION])), trace_of(loop([larger])))
    assert found.comparability.level == "not-comparable"
    [reason] = found.comparability.reasons
    assert reason.startswith("The batch size was 32 and is 64: compare the time per sample, ")


def test_the_time_per_sample_is_that_of_the_sides() -> None:
    """A rank with more steps than the others weighs no more."""
    larger = ("aten::conv2d", "conv", 900, 1, [[64, 3, 8, 8], [4, 3, 3, 3]])
    ranks = [
        _named(loop([CONVOLUTION], steps=6), "one"),
        _named(loop([CONVOLUTION], steps=3, step_us=20_000), "two"),
    ]
    found = compared(ranks, trace_of(loop([larger])))
    assert found.before.batch_ns is not None
    assert found.after.batch_ns is not None
    [reason] = found.comparability.reasons
    was, now = duration(found.before.batch_ns), duration(found.after.batch_ns)
    assert f"compare the time per sample, {was} before and {now} after" in reason


def test_steps_of_other_devices_are_not_comparable() -> None:
    before, after = (
        _named(loop([MM, RELU]), "w", deviceProperties=[{"id": 0, "name": name}])
        for name in ("A100", "H100")
    )
    found = compared(before, after)
    assert found.comparability.level == "not-comparable"
    assert found.comparability.reasons == ("The devices are different: A100 before, H100 after.",)
    assert found.savings == ()
    assert compared(before, before).comparability.level == "comparable"


def test_steps_of_other_models_are_not_comparable() -> None:
    other: list[tuple[Any, ...]] = [
        (f"aten::{name}", name, 900, 2, []) for name in ("lstm", "sort", "embedding")
    ]
    found = compared(BASE, trace_of(loop([*other, RELU]))).comparability
    assert found.level == "not-comparable"
    assert found.likeness is not None
    assert found.likeness < SAME_MODEL
    [reason] = found.reasons
    assert reason.startswith("The models are different: ")


def profile(**calls: float) -> OperatorProfile:
    """A profile of operators, by calls per step."""
    names = {"AccumulateGrad": GRADIENT}
    return OperatorProfile(calls={names.get(name, name): count for name, count in calls.items()})


def repeated(one: OperatorProfile, times: int, *, has_steps: bool) -> OperatorProfile:
    """A profile of several passes in a step, or in a trace without steps."""
    calls = {name: count * times for name, count in one.calls.items()}
    return OperatorProfile(calls=calls, has_steps=has_steps)


def alike(one: OperatorProfile, other: OperatorProfile) -> float | None:
    """The likeness, which is the same both ways."""
    there, back = likeness(one, other), likeness(other, one)
    if there is None or back is None:
        assert there is back is None
        return None
    assert there.value == pytest.approx(back.value)
    return there.value


def test_likeness_is_of_the_operators_and_of_the_parameters() -> None:
    one = profile(mm=3, relu=1, AccumulateGrad=4)
    assert alike(one, one) == 1
    assert alike(one, profile()) is None
    assert alike(one, profile(lstm=3)) == 0
    more = profile(mm=3, relu=1, AccumulateGrad=8)
    jaccard = np.log(4 * 2 * 5) / np.log(4 * 2 * 9)
    assert alike(one, more) == pytest.approx(jaccard / 2)


RESNET18 = {"relu": 17, "ReluBackward0": 17, "NllLossBackward0": 1, "AccumulateGrad": 62}
RESNET50 = {"relu": 49, "ReluBackward0": 49, "NllLossBackward0": 1, "AccumulateGrad": 161}


@pytest.mark.parametrize("has_steps", [True, False])
def test_passes_through_the_model_play_no_part_in_its_likeness(*, has_steps: bool) -> None:
    """Gradient accumulation, and ten iterations in a trace without steps."""
    once = profile(**RESNET18)
    assert alike(once, repeated(once, 10, has_steps=has_steps)) == pytest.approx(1)
    other = alike(once, repeated(profile(**RESNET50), 10, has_steps=has_steps))
    assert other is not None
    assert other < 0.9
    if has_steps:
        assert other < SAME_MODEL


def test_passes_of_a_model_without_a_backward_pass_are_counted_without_steps() -> None:
    """The operator that was called once prepared the ten iterations."""
    forward = {"embedding": 1.0, "norm": 1.0, **{f"op{number}": 12.0 for number in range(12)}}
    many = repeated(profile(**forward), 10, has_steps=False)
    many = OperatorProfile(calls={**many.calls, "empty": 1}, has_steps=False)
    found = alike(profile(**forward, empty=1 / 6), many)
    assert found is not None
    assert found > 0.95
    deeper = {name: count * 2 if count > 1 else count for name, count in forward.items()}
    layers = alike(profile(**forward), profile(**deeper))
    assert layers is not None
    assert layers < 0.9


def test_accumulated_gradients_are_a_difference_of_settings() -> None:
    sides = ("conv_training", "gradient_accumulation")
    runs = (stepscope.load(ROOT / "sample_logs/good_practice" / name) for name in sides)
    found = compared(*(run.workers[0] for run in runs)).comparability
    text = "A step has 1 backward pass before and 4 backward passes after (gradient accumulation)."
    assert text in found.cautions
    assert found.reasons == ("The batch size was 64 and is 32.",)  # without times per sample
    once, fourfold = (
        trace_of(loop([MM, ("MeanBackward0", "mean", 50, count, [])])) for count in (1, 4)
    )
    assert compared(once, fourfold).comparability.level == "with-care"


def test_iterations_without_steps_are_of_the_same_model() -> None:
    calls: list[tuple[Any, ...]] = [
        ("aten::mm", "gemm", 500, 3, []),
        ("MeanBackward0", "mean", 50, 1, []),
    ]
    calls += [(GRADIENT, "add", 20, 6, [])]
    rows = loop(calls)
    whole = trace_of([each for each in rows if not str(each[1]).startswith("ProfilerStep")])
    found = compared(trace_of(rows), whole).comparability
    assert (found.level, found.reasons, found.likeness) == ("comparable", (), 1)


def test_a_compiled_model_is_alike_though_operators_are_replaced() -> None:
    eager = profile(mm=3, AccumulateGrad=4, **{f"op{number}": 5 for number in range(20)})
    compiled = profile(mm=3, AccumulateGrad=4, CompiledFunction=1)
    found = alike(eager, compiled)
    assert found is not None
    assert found > 0.8


SIBLINGS = (
    ("batch_size/batch_128", "batch_size/batch_8"),
    ("compiled/eager", "compiled/compiled"),
    ("dataloader/no_workers", "dataloader/two_workers"),
    ("metrics/item_each_step", "metrics/kept_as_tensors"),
    ("optimizer/one_by_one", "optimizer/fused"),
)


@pytest.mark.parametrize(("before", "after"), SIBLINGS)
def test_models_of_before_and_after_are_alike(before: str, after: str) -> None:
    found = _sample_likeness(before, after)
    assert found is not None
    assert found >= SAME_MODEL


def test_models_of_other_samples_are_not_alike() -> None:
    found = _sample_likeness("good_practice/conv_training", "good_practice/transformer_inference")
    assert found is not None
    assert found < SAME_MODEL


def _sample_likeness(*names: str) -> float | None:
    runs = (stepscope.load(ROOT / "sample_logs" / name) for name in names)
    return alike(*(operator_profile([sample(run.workers[0])]) for run in runs))


def test_the_interval_of_a_difference_is_that_of_welch() -> None:
    """Means 9 and 13, standard error sqrt(1/3 + 5/6), 4.742 degrees of freedom: t = 2.613."""
    found = confidence_interval(np.array([9.0, 8.0, 10.0]), np.array([12.0, 14.0, 11.0, 15.0]))
    assert found is not None
    assert found == pytest.approx((4 - 2.8226, 4 + 2.8226), abs=1e-3)
    assert confidence_interval(np.array([9.0]), np.array([1.0, 2.0])) is None
    assert confidence_interval(np.array([9.0, 9.0]), np.array([7.0, 7.0])) == (-2, -2)


def test_many_steps_are_batched() -> None:
    values = np.arange(1050, dtype=np.float64)[None, :]
    found = batched(values)
    assert found.shape == (1, MOST_SAMPLES)
    assert found[0, 0] == pytest.approx(np.arange(10).mean(), abs=0.6)
    assert batched(values[:, :7]).tolist() == values[:, :7].tolist()


def test_what_is_kept_does_not_grow_with_the_recording() -> None:
    one = sample(trace_of(loop([MM])))
    many = {
        "step_numbers": tuple(range(6000)),
        "duration_ns": np.tile(one.duration_ns, 1000),
        "loop_ns": np.tile(one.loop_ns, 1000),
        "parts_ns": np.tile(one.parts_ns, (1000, 1)),
    }
    side = side_samples("a", [Sample(**{**vars(one), **many})])
    assert (side.step_count, len(side.durations())) == (6000, 2000)
    assert side.durations().mean() == pytest.approx(one.duration_ns.mean())


def test_steps_of_one_number_are_told_apart() -> None:
    twice = sample(trace_of(loop([MM])))
    odd = Sample(**{**vars(twice), "step_numbers": (1,) * 6})
    assert len(side_samples("a", [odd]).durations()) == 6


def test_a_compiled_graph_is_known_without_its_hash() -> None:
    graphs = [f"## Call CompiledFxGraph f{letter * 51} ##" for letter in "ab"]
    sides = [trace_of(loop([(name, "triton_poi_fused_0", 500, 1, [])])) for name in graphs]
    found = row(compared(*sides).operators, "## Call CompiledFxGraph … ##")
    assert (found.matched_by, found.status) == ("name without its hash", "same")


# --- matching, against the obvious way -----------------------------------------------------------

names = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("12")), max_size=8
)


@given(names, names)
def test_matching_is_by_the_first_level_that_fits(
    before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]
) -> None:
    columns = ["name", "shape", "module"]
    levels = (("name", "shape", "module"), ("name", "module"), ("name",))
    first, second = (pd.DataFrame(each, columns=columns, dtype=object) for each in (before, after))
    found = match_rows(first, second, levels)
    pairs = {
        (i, j)
        for i, group in enumerate(found.before.tolist())
        for j, other in enumerate(found.after.tolist())
        if group == other
    }
    assert pairs == _obvious(before, after)
    assert (found.before >= 0).all()
    assert (found.after >= 0).all()


def _obvious(before: list[tuple[str, str, str]], after: list[tuple[str, str, str]]) -> set[Any]:
    left: list[set[int]] = [set(range(len(before))), set(range(len(after)))]
    pairs: set[tuple[int, int]] = set()
    for chosen in ((0, 1, 2), (0, 2), (0,)):

        def key(name: tuple[str, str, str], chosen: tuple[int, ...] = chosen) -> tuple[str, ...]:
            return tuple(name[place] for place in chosen)

        found = {(i, j) for i in left[0] for j in left[1] if key(before[i]) == key(after[j])}
        pairs |= found
        left[0] -= {i for i, _ in found}
        left[1] -= {j for _, j in found}
    return pairs


# --- advice ---------------------------------------------------------------------------------------


def test_advice_that_was_followed_is_held_against_its_promise() -> None:
    """PyTorch's own natural experiment: 0 against 4 DataLoader workers, two spans each."""
    folder = SHARED_TRACES / "kineto"
    if not folder.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    runs = [stepscope.load(folder / f"resnet50_num_workers_{count}") for count in (0, 4)]
    report = stepscope.compare(*runs).report
    [found] = report.comparisons
    assert found.step.verdict == "less"
    by_rule = {each.rule: each.status for each in found.advice}
    assert by_rule["dataloader-no-workers"] == "fixed"
    singles = found.savings[1:]
    assert [f"{each.predicted_high_ns / 1e6:.1f}" for each in singles] == ["62.2", "36.9"]
    assert [f"{each.realised_median_ns / 1e6:.1f}" for each in singles] == ["49.7", "27.4"]
    text = str(stepscope.compare(*runs))
    for figure in ("62.2 ms", "36.9 ms", "49.7 ms", "27.4 ms"):
        assert figure in text


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("synthetic_item_sync", "item-sync"),
        ("synthetic_tiny_batch", "tiny-batch-size"),
        ("synthetic_host_device_pingpong", "host-device-pingpong"),
    ],
)
def test_a_fix_is_seen_and_its_undoing_too(fault: str, rule: str) -> None:
    runs = [stepscope.load(ROOT / "sample_logs" / fault / name) for name in ("fault", "fix")]
    [there] = stepscope.compare(*runs).report.comparisons
    [back] = stepscope.compare(*reversed(runs)).report.comparisons
    assert {each.rule: each.status for each in there.advice}[rule] == "fixed"
    assert {each.rule: each.status for each in back.advice}[rule] == "new"


def with_savings(trace: Trace, **net_ms: tuple[int, int]) -> Sample:
    """A sample whose findings, by rule, have these net savings, low and high."""
    outcomes = []
    for rule, (low, high) in net_ms.items():
        low_ns, high_ns = low * 1_000_000, high * 1_000_000
        claim = ClaimReport(low_ns, high_ns, 0.1, low_ns, high_ns, 0.1, "As measured.")
        outcomes.append(Outcome(rule, rule, "c", "found", "w", "1", severity="info", claim=claim))
    plain = sample(trace)
    return replace(plain, advice=msgspec.structs.replace(plain.advice, outcomes=tuple(outcomes)))


@pytest.mark.parametrize(
    ("after", "statuses", "predicted_ms"),
    [
        ({}, {"a": "fixed", "b": "fixed"}, (10, 130)),
        ({"a": (1, 5), "b": (6, 28)}, {"a": "better", "b": "still"}, (9, 95)),
        ({"a": (20, 30), "b": (6, 28)}, {"a": "better", "b": "still"}, (0, 70)),
        ({"a": (10, 100), "b": (90, 90)}, {"a": "still", "b": "worse"}, (0, 0)),
    ],
)
def test_what_is_no_longer_estimated_was_estimated_of_followed_advice(
    after: dict[str, tuple[int, int]], statuses: dict[str, str], predicted_ms: tuple[int, int]
) -> None:
    trace = trace_of(loop([("aten::mm", "gemm", 200, 2, None)]))
    first, second = with_savings(trace, a=(10, 100), b=(0, 30)), with_savings(trace, **after)
    found = compare("a", [first], "b", [second])
    assert {each.rule: each.status for each in found.advice} == statuses
    [saving] = found.savings
    assert set(saving.rules) == {n for n, status in statuses.items() if status in FOLLOWED}
    predicted_ns = saving.predicted_low_ns, saving.predicted_high_ns
    assert predicted_ns == tuple(each * 1_000_000 for each in predicted_ms)


def test_a_finding_is_about_what_its_evidence_links_to() -> None:
    link = Link(view="operators", search="aten::item")
    evidence = (Evidence("a", 1, "count"), Evidence("b", 2, "count", link))
    outcome = Outcome("r", "t", "c", "found", "w", "1", evidence=evidence)
    assert subject(outcome) == "aten::item"
