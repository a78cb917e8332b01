"""Advice on whole recordings: the faults and fixes of the sample logs, and real traces."""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from loading import trace_at
from stepscope.advice import advise
from stepscope.analyses.steps.breakdown import step_breakdown
from stepscope.report import Outcome, RunReport
from stepscope.trace import Run

log = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_logs"
SERIOUS = ("critical", "warning")
NO_ADVICE = (
    "batch_size",
    "compiled",
    "language_model",
    "masking",
    "metrics",
    "precision",
    "ranks",
    "synthetic_healthy",
)
"""What these twelve rules have nothing to say of: they need a device, or there is no fault."""


@cache
def report_of(path: Path) -> RunReport:
    """What is said of one recording."""
    return advise(Run(name=path.parent.name, workers=(trace_at(path),)))


def recordings(folder: str = "") -> list[Path]:
    return sorted((SAMPLES / folder).rglob("*.pt.trace.json.gz"))


def only(folder: str) -> RunReport:
    [path] = recordings(folder)
    return report_of(path)


def found(report: RunReport) -> list[Outcome]:
    """The findings, as they are listed."""
    return [outcome for outcome in report.outcomes if outcome.status == "found"]


def serious(report: RunReport) -> set[str]:
    return {outcome.rule for outcome in found(report) if outcome.severity in SERIOUS}


def status(report: RunReport, rule: str) -> str:
    return next(outcome.status for outcome in report.outcomes if outcome.rule == rule)


# Every recording


@pytest.mark.parametrize("path", recordings(), ids=lambda path: str(path.parent.name))
def test_no_rule_fails_and_the_breakdown_sums(path: Path) -> None:
    report = report_of(path)
    assert [o for o in report.outcomes if o.status == "failed"] == []
    steps = step_breakdown(trace_at(path))
    assert steps.step_count >= 5
    assert steps.parts_ns.sum(axis=1).tolist() == steps.duration_ns.tolist()
    [worker] = report.workers
    assert sum(worker.step.breakdown_ns.values()) == worker.step.mean_ns
    assert worker.synthetic == path.parts[len(SAMPLES.parts)].startswith("synthetic_")


@pytest.mark.parametrize(
    "path",
    [path for folder in NO_ADVICE for path in recordings(folder)],
    ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}",
)
def test_there_is_no_advice_where_these_rules_have_none(path: Path) -> None:
    assert [(outcome.rule, outcome.message) for outcome in found(report_of(path))] == []


def test_the_job_without_workers_is_told_so_and_that_with_workers_is_not() -> None:
    fault, fix = only("dataloader/no_workers"), only("dataloader/two_workers")
    first, second = found(fault)
    assert (first.rule, first.severity) == ("dataloader-no-workers", "critical")
    assert second.rule == "dataloader-bound"
    assert second.claim is not None
    assert second.claim.net_high_ns == 0, "one cause, counted once"
    assert status(fix, "dataloader-no-workers") == "passed"
    assert not serious(fix)


# Synthetic faults

FAULTS = {
    "dataloader": "dataloader-no-workers",
    "pageable_copies": "pageable-h2d-copy",
    "item_sync": "item-sync",
    "host_device_pingpong": "host-device-pingpong",
    "host_stall": "numpy-in-step",
    # With a batch of 2 the host cannot launch fast enough: that is the first cause, and the batch
    # size, which claims no step time, is the advice behind it.
    "tiny_batch": "launch-bound",
}


@pytest.mark.parametrize(("scenario", "rule"), FAULTS.items())
def test_the_fault_is_the_first_cause_and_the_fix_silences_it(scenario: str, rule: str) -> None:
    fault, fix = only(f"synthetic_{scenario}/fault"), only(f"synthetic_{scenario}/fix")
    first = found(fault)[0]
    assert first.rule == rule
    assert first.severity in SERIOUS
    assert status(fix, rule) == "passed"
    assert not serious(fix), "the fix makes no new fault"


def test_the_tiny_batch_is_named_and_its_fix_is_not() -> None:
    fault, fix = only("synthetic_tiny_batch/fault"), only("synthetic_tiny_batch/fix")
    assert {"tiny-batch-size", "launch-bound"} <= serious(fault)
    assert status(fix, "tiny-batch-size") == "passed"
    # The rule gives the throughput to gain at most as the time lost to dispatch, 76 % of the step.
    # Here a sample takes 84 % less (2 a step before, 128 after): larger kernels also run better.
    before, after = fault.workers[0].step.mean_ns / 2, fix.workers[0].step.mean_ns / 128
    [tiny] = [outcome for outcome in found(fault) if outcome.rule == "tiny-batch-size"]
    promised = next(e.value for e in tiny.evidence if e.label.startswith("Throughput"))
    assert isinstance(promised, float)
    assert promised < 1 - after / before


# What was predicted, and what came of it: `pytest -k predicted -o log_cli=1 -o log_level=INFO`


def predicted_and_realised(
    scenario: str, fault: str = "fault", fix: str = "fix"
) -> tuple[int, int, int]:
    before, after = only(f"{scenario}/{fault}"), only(f"{scenario}/{fix}")
    claims = [outcome.claim for outcome in found(before) if outcome.claim]
    low = sum(claim.net_low_ns for claim in claims)
    high = sum(claim.net_high_ns for claim in claims)
    realised = before.workers[0].step.mean_ns - after.workers[0].step.mean_ns
    figures = (low / 1e6, high / 1e6, realised / 1e6)
    log.info("%s: predicted %.2f to %.2f ms a step, realised %.2f", scenario, *figures)
    return low, high, realised


@pytest.mark.parametrize(
    "scenario",
    [
        "dataloader",
        "pageable_copies",
        "host_stall",
        "item_sync",
        "host_device_pingpong",
    ],
)
def test_what_a_fix_wins_lies_in_the_predicted_range(scenario: str) -> None:
    low, high, realised = predicted_and_realised(f"synthetic_{scenario}")
    assert low <= realised <= 1.01 * high  # the two runs' jitter differs


@pytest.mark.parametrize("scenario", sorted(FAULTS.keys() - {"tiny_batch"}))
def test_what_is_promised_at_least_is_won(scenario: str) -> None:
    low, _, realised = predicted_and_realised(f"synthetic_{scenario}")
    assert low <= realised


def test_workers_win_what_was_predicted_on_a_cpu_too() -> None:
    low, high, realised = predicted_and_realised("dataloader", "no_workers", "two_workers")
    assert low <= realised <= high


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
    (NCCL, "gpu-idle-gap", "critical", None),  # 23.4 %
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
    (NCCL, "tiny-batch-size", "not-applicable", None),
    (W0[0], "dataloader-no-workers", "critical", ("Exposed loading", 0.339, 0.0005)),
    (W0[1], "dataloader-no-workers", "critical", ("Exposed loading", 0.232, 0.0005)),
    # a note, since dataloader-no-workers would win all of it
    (W0[0], "dataloader-bound", "info", ("Exposed loading", 0.339, 0.0005)),
    (W4[0], "dataloader-no-workers", "passed", None),
    (W4[1], "dataloader-no-workers", "passed", None),
    (W4[0], "dataloader-bound", "passed", None),
    (W4[1], "dataloader-bound", "passed", None),
    (CTL, "dataloader-no-workers", "passed", None),
    (CTL, "dataloader-bound", "passed", None),
    (NO_GPU, "dataloader-no-workers", "passed", None),
    (CPU_ONLY, "dataloader-bound", "not-applicable", None),
    (W0[0], "pageable-h2d-copy", "info", ("Bytes a step", 19.27e6, 5e3)),
    (W0[0], "pageable-h2d-copy", "info", ("Rate", 10.1e9, 5e7)),
    (W4[0], "pageable-h2d-copy", "warning", ("Rate", 6.1e9, 5e7)),
    # 10.1 % by the prototype, by the sum of the calls; here within the window
    (W4[1], "pageable-h2d-copy", "warning", ("Host time in the copy calls", 0.101, 0.002)),
    (ALEX, "pageable-h2d-copy", "info", ("Rate", 4.4e9, 5e7)),
    (CTL, "pageable-h2d-copy", "passed", None),
    (NCCL, "pageable-h2d-copy", "not-applicable", None),
    (FALCON_AMD, "pageable-h2d-copy", "not-applicable", None),
    (CTL, "exposed-h2d-copy", "info", ("Exposed copying", 0.036, 0.0005)),
    (CTL, "exposed-h2d-copy", "info", ("Copies", 150, 0)),  # 25 a step
    (W4[0], "exposed-h2d-copy", "passed", None),  # 2.2 %
    (EVS, "item-sync", "warning", ("Idle time behind them", 0.032, 0.0005)),
    (CTL, "item-sync", "rejected", ("Idle time behind them", 0.004, 0.0005)),
    (CTL, "item-sync", "rejected", ("Values read", 24, 0)),  # 4 a step
    (QWEN, "item-sync", "rejected", ("Idle time behind them", 0.003, 0.0005)),
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
    assert gap.claim.gross_ns / mean_ns == pytest.approx(share, abs=0.005)


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
    assert rule.claim.net_low_ns / 1e6 <= realised_ms <= rule.claim.net_high_ns / 1e6
