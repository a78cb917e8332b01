"""Advice on whole recordings: the faults and fixes of the sample logs, and real traces."""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from loading import SAMPLE_LOGS, trace_at
from score import rule_records
from score.__main__ import PAGE
from score.answers import report, serious, statuses
from score.judging import reported_rules, right_first
from score.page import page, parts
from score.peers import hash_of, stored_results
from score.ranges import NO_ESTIMATE, Holds
from score.stories import Pair, Recording, stories
from score.story_pairs import result_of
from stepscope.advice import advise
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.report import RunReport
from stepscope.model.trace import Run

log = logging.getLogger(__name__)


@cache
def report_of(path: Path) -> RunReport:
    """What is said of one recording."""
    return advise(Run(name=path.parent.name, workers=(trace_at(path),)))


def recordings() -> list[Path]:
    return sorted(SAMPLE_LOGS.rglob("*.pt.trace.json.gz"))


def run_of(path: Path) -> str:
    return path.parent.relative_to(SAMPLE_LOGS).as_posix()


def pair_name(value: object) -> str | None:
    return f"{value.fault}-{value.fix}" if isinstance(value, Pair) else None


FEWER_STEPS = {
    "batch_generate_cuda/faulty": 0,
    "batch_generate_cuda/healthy": 0,
    "execution_trace_cuda/without_shapes": 3,
}
"""The first two were recorded whole, without steps."""


# Every recording


@pytest.mark.parametrize("path", recordings(), ids=run_of)
def test_no_rule_fails_and_the_breakdown_sums(path: Path) -> None:
    outcomes = report_of(path)
    assert [o for o in outcomes.outcomes if o.status == "failed"] == []
    steps = step_breakdown(trace_at(path))
    assert steps.step_count >= FEWER_STEPS.get(run_of(path), 5)
    assert steps.parts_ns.sum(axis=1).tolist() == steps.duration_ns.tolist()
    [worker] = outcomes.workers
    assert sum(worker.step.breakdown_ns.values()) == worker.step.mean_ns
    assert worker.synthetic == run_of(path).startswith("synthetic_")


# What is said against what is true: sample_logs/stories.toml


@pytest.mark.parametrize("truth", stories().recording, ids=lambda truth: truth.run)
def test_nothing_is_said_at_warning_or_above_but_what_is_true(truth: Recording) -> None:
    said = {outcome.rule: outcome.message for outcome in serious(report(truth.run))}
    assert said.keys() <= truth.true_rules, said


@pytest.mark.parametrize(
    "truth", [each for each in stories().recording if not each.healthy], ids=lambda truth: truth.run
)
def test_the_right_rule_comes_first_and_each_true_cause_is_said(truth: Recording) -> None:
    is_named = right_first(truth) and set(truth.causes) <= reported_rules(truth.run)
    assert is_named != bool(truth.known_miss), truth.known_miss


@pytest.mark.parametrize("pair", stories().pair, ids=pair_name)
def test_the_fix_silences_the_cause(pair: Pair) -> None:
    """Unless the fix only lessens it; a trace of replays has no launches to judge."""
    silent = {"passed", "rejected", "not-applicable", "cannot-tell"}
    for rule in set(stories().healed(pair)) - stories().of(pair.fix).true_rules:
        assert statuses(pair.fix, rule) <= silent, rule


@pytest.mark.parametrize("pair", stories().pair, ids=pair_name)
def test_the_predicted_range_holds_what_was_won_or_a_note_says_why_not(pair: Pair) -> None:
    result = result_of(pair)
    log.info("%s", result)
    if not pair.outside:
        assert result.holds != "no", result
    else:
        assert result.holds != "yes", f"it holds: the note is out of date: {result}"


def answers_of_pairs(*, is_synthetic: bool) -> list[Holds]:
    """Whether each predicted range holds what was won."""
    answers = (
        result_of(each).holds for each in stories().pair if each.is_synthetic == is_synthetic
    )
    return [each for each in answers if each not in NO_ESTIMATE]


def test_ranges_of_recordings_hold_what_was_won_or_miss_by_jitter() -> None:
    """More than half with no allowance: ranges are half as wide as before, when 95 % held.

    Of the seven pairs on a GPU, three: no factor was measured on them.
    """
    answers = answers_of_pairs(is_synthetic=False)
    assert answers.count("yes") >= 0.55 * len(answers) > 0
    assert answers.count("no") <= 0.15 * len(answers)


def test_four_of_five_ranges_predicted_of_schedules_hold_what_was_won_or_miss_by_jitter() -> None:
    answers = answers_of_pairs(is_synthetic=True)
    assert len(answers) - answers.count("no") >= 0.8 * len(answers) > 0


def test_the_page_on_accuracy_says_what_is_said_now() -> None:
    outdated = [run for run, answers in stored_results().items() if answers.sha256 != hash_of(run)]
    assert outdated == [], "recorded again since other programs were asked: run `make score`"
    told = page(stories(), stored_results())
    assert told == PAGE.read_text(encoding="utf-8"), "run `make score`"


def test_the_rules_pages_say_how_they_fare_now() -> None:
    written = rule_records.content(parts(stories()))
    assert written == rule_records.FILE.read_bytes(), "run `make score`"


def test_one_cause_is_counted_once() -> None:
    bound = next(
        each.outcome
        for each in report("dataloader/no_workers").merged
        if each.outcome.rule == "dataloader-bound"
    )
    assert bound.severity == "info"
    assert bound.claim is not None
    assert bound.claim.net_high_ns == 0


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        ("metrics/item_each_step", "item-sync"),
        ("metrics/item_each_step", "blocking-d2h-copy"),
    ],
)
def test_without_a_device_these_rules_do_not_apply(run: str, rule: str) -> None:
    assert statuses(run, rule) == {"not-applicable"}


def test_of_a_tiny_batch_no_more_throughput_is_promised_than_was_won() -> None:
    fault, fix = report("synthetic_tiny_batch/fault"), report("synthetic_tiny_batch/fix")
    # The rule gives the throughput to gain at most as the time lost to dispatch; larger kernels
    # also run better, so that a sample takes less still.
    before, after = fault.workers[0].step.mean_ns / 2, fix.workers[0].step.mean_ns / 128
    [tiny] = [outcome for outcome in serious(fault) if outcome.rule == "tiny-batch-size"]
    promised = next(e.value for e in tiny.evidence if e.label.startswith("Throughput"))
    assert isinstance(promised, float)
    assert promised < 1 - after / before


# Real traces

TB = "kineto/resnet50_num_workers_"
W0 = [f"{TB}0/worker0.{stamp}.pt.trace.json.gz" for stamp in (1623143089861, 1623143566756)]
W4 = [f"{TB}4/worker0.{stamp}.pt.trace.json.gz" for stamp in (1623212756351, 1623213129365)]
NCCL = "hta/nccl_parser_config/nccl_data.json.gz"
CTL = "hta/trace_diff/control/control.json.gz"
ALEX = "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"
EVS = "hta/critical_path/cuda_event_sync/event_sync_trace.json.gz"
RANKS = [f"hta/trace_filter/sampled_rank-{rank}.json.gz" for rank in (0, 1)]
MINI = "hta/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz"
NO_GPU = "hta/distributed_info_unavailable/distributed_info_not_found.json.gz"
CPU_ONLY = "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"
MTIA = "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"
B200 = "tracelens/b200/eager_trace.json.gz"
FALCON, FALCON_AMD = (
    f"tracelens/{m}/Falconsai_nsfw_image_detection__1016002.json.gz" for m in ("h100", "mi300")
)
QWEN, QWEN_AMD = (
    f"tracelens/{m}/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz" for m in ("h100", "mi300")
)
SGLANG = "tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz"
VLLM = "tracelens/inference/vllm_decode_full/graph_execution.json.gz"

# Trace, rule, answer, and where it is known a figure: (label, value, within). The figures come from
# an independent prototype of these rules; where ours differ, a note says why.
Stated = tuple[str, str, str, tuple[str, float, float] | None]
STATED: list[Stated] = [
    (B200, "low-gpu-utilization", "critical", ("GPU 0 busy", 0.14, 0.005)),
    (FALCON, "low-gpu-utilization", "critical", ("GPU 0 busy", 0.16, 0.005)),
    (NCCL, "low-gpu-utilization", "critical", ("GPU 0 busy", 0.24, 0.005)),
    (W0[0], "low-gpu-utilization", "warning", ("GPU 0 busy", 0.57, 0.005)),
    (W0[1], "low-gpu-utilization", "warning", ("GPU 0 busy", 0.65, 0.005)),
    (W4[0], "low-gpu-utilization", "passed", None),
    (QWEN, "low-gpu-utilization", "passed", None),
    (NCCL, "gpu-idle-gap", "critical", None),  # 23.4 %, some of which other findings save as well
    (RANKS[0], "gpu-idle-gap", "critical", None),  # 27.1 %
    (RANKS[1], "gpu-idle-gap", "critical", None),
    (QWEN, "gpu-idle-gap", "passed", None),
    (W0[0], "gpu-idle-gap", "passed", None),  # 0.2 %
    # The prototype did not look at sglang: its host waits 463 ms in one copy for what was not
    # recorded, so the finding is there, but doubtful.
    (SGLANG, "gpu-idle-gap", "warning", None),
    (FALCON, "tiny-batch-size", "info", ("Batch size", 4, 0)),  # inference
    (FALCON_AMD, "tiny-batch-size", "info", ("Batch size", 4, 0)),
    (MINI, "tiny-batch-size", "warning", ("Batch size", 5, 0)),
    (QWEN, "tiny-batch-size", "passed", None),
    (W0[0], "tiny-batch-size", "passed", None),
    (NCCL, "tiny-batch-size", "cannot-tell", None),  # no shapes: unknown, not inapplicable
    # the prototype's 0.339 and 0.232 left the time between two steps out of the step
    (W0[0], "dataloader-no-workers", "critical", ("Exposed loading", 0.334, 0.0005)),
    (W0[1], "dataloader-no-workers", "critical", ("Exposed loading", 0.229, 0.0005)),
    # a note, since dataloader-no-workers would win all of it
    (W0[0], "dataloader-bound", "info", ("Exposed loading", 0.334, 0.0005)),
    (W4[0], "dataloader-no-workers", "passed", None),
    (W4[1], "dataloader-no-workers", "passed", None),
    (W4[0], "dataloader-bound", "passed", None),
    (W4[1], "dataloader-bound", "passed", None),
    (CTL, "dataloader-no-workers", "passed", None),
    (CTL, "dataloader-bound", "passed", None),
    (NO_GPU, "dataloader-no-workers", "passed", None),
    (CPU_ONLY, "dataloader-bound", "not-applicable", None),
    (W0[0], "pageable-h2d-copy", "info", ("Bytes per step", 19.27e6, 5e3)),
    (W0[0], "pageable-h2d-copy", "info", ("Rate", 10.1e9, 5e7)),
    (W4[0], "pageable-h2d-copy", "warning", ("Rate", 6.1e9, 5e7)),
    # 10.1 % by the prototype, by the sum of the calls; here within the window
    (W4[1], "pageable-h2d-copy", "warning", ("Host time in the copy calls", 0.101, 0.002)),
    (ALEX, "pageable-h2d-copy", "info", ("Rate", 4.4e9, 5e7)),
    (CTL, "pageable-h2d-copy", "passed", None),
    (NCCL, "pageable-h2d-copy", "not-applicable", None),
    (FALCON_AMD, "pageable-h2d-copy", "not-applicable", None),
    (CTL, "exposed-h2d-copy", "rejected", ("Exposed copying", 0.036, 0.0005)),
    (CTL, "exposed-h2d-copy", "rejected", ("Copies in total", 150, 0)),  # 25 per step
    (W4[0], "exposed-h2d-copy", "passed", None),  # 2.2 %
    (EVS, "item-sync", "warning", ("Idle time right behind them", 0.032, 0.0005)),
    (CTL, "item-sync", "rejected", ("Idle time right behind them", 0.004, 0.0005)),
    (CTL, "item-sync", "rejected", ("Values read in total", 24, 0)),  # 4 per step
    (QWEN, "item-sync", "rejected", ("Idle time right behind them", 0.003, 0.0005)),
    (W0[0], "item-sync", "passed", None),
    (W4[0], "item-sync", "passed", None),
    (W0[0], "blocking-d2h-copy", "passed", None),
    (FALCON, "launch-bound", "critical", ("Idle, dispatch", 0.833, 0.0005)),
    (B200, "launch-bound", "critical", ("Idle, dispatch", 0.754, 0.0005)),
    (NCCL, "launch-bound", "critical", ("Idle, dispatch", 0.527, 0.0005)),
    # 18.7 % by the prototype: there with what the allocator and waits took of the same gaps
    (W4[0], "launch-bound", "warning", ("Idle, dispatch", 0.187, 0.005)),
    (W0[0], "launch-bound", "passed", None),
    (VLLM, "launch-bound", "passed", None),
    # 3.1 % by the prototype; but 30 % of its device events have no launch, and the guard holds
    (QWEN, "launch-bound", "cannot-tell", None),
    (MTIA, "launch-bound", "cannot-tell", None),
    (B200, "weak-step-coverage", "info", ("Steps", 0, 0)),
    (SGLANG, "weak-step-coverage", "info", ("Steps", 0, 0)),
    (VLLM, "weak-step-coverage", "info", ("Steps", 0, 0)),
    (FALCON, "weak-step-coverage", "info", ("Steps", 1, 0)),
    (W0[0], "weak-step-coverage", "passed", None),
    (NCCL, "weak-step-coverage", "passed", None),
    *((path, "host-device-pingpong", "passed", None) for path in (*W0, *W4, CTL, NCCL, ALEX, B200)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rule", "answer", "figure"),
    STATED,
    ids=[f"{rule}-{Path(name).parent.name}-{n}" for n, (name, rule, _, _) in enumerate(STATED)],
)
def test_a_real_trace_has_the_answer_that_the_prototype_gave(
    shared_traces: Path, name: str, rule: str, answer: str, figure: tuple[str, float, float] | None
) -> None:
    [outcome] = [o for o in report_of(shared_traces / name).outcomes if o.rule == rule]
    assert (outcome.severity or outcome.status) == answer, outcome.message or outcome.reason
    if figure is not None:
        label, value, within = figure
        values = {evidence.label: evidence.value for evidence in outcome.evidence}
        assert values[label] == pytest.approx(value, abs=within)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [(NCCL, 0.234), (RANKS[0], 0.271)])
def test_host_stalls_have_the_share_that_the_prototype_gave(
    shared_traces: Path, name: str, share: float
) -> None:
    report = report_of(shared_traces / name)
    [gap] = [o for o in report.outcomes if o.rule == "gpu-idle-gap" and o.status == "found"]
    assert gap.claim is not None
    # of the finding alone; rank 0: 27.1 % of the window with the device's last work, 27.5 %
    mean_ns = report.workers[0].step.mean_ns
    assert gap.claim.high_ns / mean_ns == pytest.approx(share, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("span", "realised_ms"), [(0, 49.7), (1, 27.4)])
def test_the_natural_experiment_lies_in_the_predicted_range(
    shared_traces: Path, span: int, realised_ms: float
) -> None:
    """The same training with 0 and 4 workers: the difference of the median steps."""
    without, with_four = (
        step_breakdown(trace_at(shared_traces / names[span])) for names in (W0, W4)
    )
    median: Callable[[object], float] = np.median  # type: ignore[assignment]
    realised = (median(without.duration_ns) - median(with_four.duration_ns)) / 1e6
    assert realised == pytest.approx(realised_ms, abs=3)
    report = report_of(shared_traces / W0[span])
    [rule] = [o for o in report.outcomes if o.rule == "dataloader-no-workers"]
    assert rule.claim is not None
    jitter_ms = 3  # less than the standard error of the difference: 4.5 ms in the second span
    assert rule.claim.net_low_ns / 1e6 - jitter_ms <= realised_ms <= rule.claim.net_high_ns / 1e6
