"""Advice on whole recordings: the faults and fixes of the sample logs, and real traces."""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from loading import SAMPLE_LOGS, trace_at
from stepscope.advice import advise
from stepscope.analyses.steps.breakdown import step_breakdown
from stepscope.library import load_all
from stepscope.report import MergedOutcome, Outcome, RunReport
from stepscope.trace import Run

log = logging.getLogger(__name__)
SERIOUS = ("critical", "warning")


@cache
def report_of(path: Path) -> RunReport:
    """What is said of one recording."""
    return advise(Run(name=path.parent.name, workers=(trace_at(path),)))


@cache
def report(run: str) -> RunReport:
    """What is said of a run of the sample logs, over all its recordings."""
    [found_there] = load_all(SAMPLE_LOGS / run)
    return advise(found_there)


def recordings() -> list[Path]:
    return sorted(SAMPLE_LOGS.rglob("*.pt.trace.json.gz"))


def run_of(path: Path) -> str:
    return path.parent.relative_to(SAMPLE_LOGS).as_posix()


RUNS = sorted({run_of(path) for path in recordings()})


def serious(of: RunReport) -> list[Outcome]:
    """The findings at warning or above, in the order in which they are listed."""
    return [each.outcome for each in of.merged if each.outcome.severity in SERIOUS]


def statuses(run: str, rule: str) -> set[str]:
    """What a rule says of each recording of a run."""
    return {outcome.status for outcome in report(run).outcomes if outcome.rule == rule}


# Every recording


@pytest.mark.parametrize("path", recordings(), ids=run_of)
def test_no_rule_fails_and_the_breakdown_sums(path: Path) -> None:
    outcomes = report_of(path)
    assert [o for o in outcomes.outcomes if o.status == "failed"] == []
    steps = step_breakdown(trace_at(path))
    assert steps.step_count >= 5
    assert steps.parts_ns.sum(axis=1).tolist() == steps.duration_ns.tolist()
    [worker] = outcomes.workers
    assert sum(worker.step.breakdown_ns.values()) == worker.step.mean_ns
    assert worker.synthetic == run_of(path).startswith("synthetic_")


# The whole of what is said at warning or above: rule, and the runs of which it is said. The right
# rule of a fault stands in FAULTS; of the others:
# - masking/tensor: its volume is float64 by intention, and comparing it takes a quarter of the
#   step. With NumPy in the way (the fault) torch does not do that comparison, so nothing is seen.
# - ranks/balanced: a sixth of the step is gloo's all-reduce of the one bucket that this small
#   model has, behind which no backward pass is left. It is small because of that, and it is true.
# - low-gpu-utilization names what the causes cost together; tiny-batch-size stands behind
#   launch-bound, since with a batch of 2 the host cannot launch fast enough.
WARNED: dict[str, set[str]] = {
    "dataloader-no-workers": {"dataloader/no_workers", "synthetic_dataloader/fault"},
    "exposed-communication": {"ranks/balanced"},
    "float64-compute": {"masking/tensor", "precision/float64"},
    "host-device-pingpong": {"synthetic_host_device_pingpong/fault"},
    "item-sync": {"synthetic_item_sync/fault"},
    "launch-bound": {"synthetic_tiny_batch/fault"},
    "low-gpu-utilization": {
        "synthetic_dataloader/fault",
        "synthetic_host_stall/fault",
        "synthetic_tiny_batch/fault",
    },
    "numpy-in-step": {
        "masking/numpy",
        "masking/numpy_without_stacks",
        "synthetic_host_stall/fault",
    },
    "pageable-h2d-copy": {"synthetic_pageable_copies/fault"},
    "straggler-rank": {"ranks/one_slow_rank"},
    "tiny-batch-size": {"synthetic_tiny_batch/fault"},
    "unfused-elementwise": {"compiled/eager"},
}


@pytest.mark.parametrize("run", RUNS)
def test_these_rules_warn_of_a_run_and_no_others(run: str) -> None:
    warned = {outcome.rule: outcome.message for outcome in serious(report(run))}
    assert warned.keys() == {rule for rule, runs in WARNED.items() if run in runs}, warned


def test_every_run_that_the_table_names_is_there() -> None:
    assert set().union(*WARNED.values()) <= set(RUNS)


# Faults and their fixes: fault, its rule, fix. Two recorded pairs are not here, since no rule has
# anything to warn of on a machine without a device:
# - batch_size: a sample takes 0.13 ms instead of 0.04, but the rule on batch sizes speaks of
#   devices that stand idle, and what a CPU could do with a larger batch is not in a recording.
# - metrics: `.item()` waits for nothing there; the two runs' ranges of step times overlap.
FAULTS = (
    ("compiled/eager", "unfused-elementwise", "compiled/compiled"),
    ("dataloader/no_workers", "dataloader-no-workers", "dataloader/two_workers"),
    ("masking/numpy", "numpy-in-step", "masking/tensor"),
    ("masking/numpy_without_stacks", "numpy-in-step", "masking/tensor"),
    ("precision/float64", "float64-compute", "precision/float32"),
    ("ranks/one_slow_rank", "straggler-rank", "ranks/balanced"),
    *(
        (f"synthetic_{scenario}/fault", rule, f"synthetic_{scenario}/fix")
        for scenario, rule in (
            ("dataloader", "dataloader-no-workers"),
            ("host_device_pingpong", "host-device-pingpong"),
            ("host_stall", "numpy-in-step"),
            ("item_sync", "item-sync"),
            ("pageable_copies", "pageable-h2d-copy"),
            ("tiny_batch", "launch-bound"),
        )
    ),
)


@pytest.mark.parametrize(("fault", "rule", "fix"), FAULTS)
def test_the_fault_is_the_first_cause_and_the_fix_silences_it(
    fault: str, rule: str, fix: str
) -> None:
    first = next(each.outcome for each in report(fault).merged if not each.outcome.is_symptom)
    assert (first.rule, first.severity in SERIOUS) == (rule, True), first.message
    assert statuses(fix, rule) == {"passed"}


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        ("batch_size/batch_8", "tiny-batch-size"),
        ("metrics/item_each_step", "item-sync"),
        ("metrics/item_each_step", "blocking-d2h-copy"),
    ],
)
def test_without_a_device_these_rules_do_not_apply(run: str, rule: str) -> None:
    assert statuses(run, rule) == {"not-applicable"}
    assert {worker.standing.state for worker in report(run).workers if worker.standing} == {
        "healthy"
    }


def test_one_cause_is_counted_once() -> None:
    bound = next(
        each.outcome
        for each in report("dataloader/no_workers").merged
        if each.outcome.rule == "dataloader-bound"
    )
    assert bound.severity == "info"
    assert bound.claim is not None
    assert bound.claim.net_high_ns == 0


def test_the_tiny_batch_is_named_and_its_fix_is_not() -> None:
    fault, fix = report("synthetic_tiny_batch/fault"), report("synthetic_tiny_batch/fix")
    assert statuses("synthetic_tiny_batch/fix", "tiny-batch-size") == {"passed"}
    # The rule gives the throughput to gain at most as the time lost to dispatch, 76 % of the step.
    # Here a sample takes 84 % less (2 a step before, 128 after): larger kernels also run better.
    before, after = fault.workers[0].step.mean_ns / 2, fix.workers[0].step.mean_ns / 128
    [tiny] = [outcome for outcome in serious(fault) if outcome.rule == "tiny-batch-size"]
    promised = next(e.value for e in tiny.evidence if e.label.startswith("Throughput"))
    assert isinstance(promised, float)
    assert promised < 1 - after / before


# What was predicted, and what came of it: `pytest -k predicted -o log_cli=1 -o log_level=INFO`


def predicted_and_realised(fault: str, fix: str) -> tuple[float, float, float]:
    """Milliseconds a step: promised at least and at most, and the difference of the two runs.

    Of several ranks the first is taken, whose steps are as long as the others'.
    """
    before, after = report(fault), report(fix)
    low, high = (sum(ns) / 1e6 for ns in zip(*map(claimed, before.merged), strict=True))
    realised = (before.workers[0].step.mean_ns - after.workers[0].step.mean_ns) / 1e6
    log.info("%s: predicted %.2f to %.2f ms a step, realised %.2f", fault, low, high, realised)
    return low, high, realised


def claimed(each: MergedOutcome) -> tuple[int, int]:
    claim = each.outcome.claim
    return (claim.net_low_ns, claim.net_high_ns) if claim else (0, 0)


PAIRS = {fault: fix for fault, _, fix in FAULTS if fix != "synthetic_tiny_batch/fix"}
"""Of a tiny batch the fix does other work in a step, so that steps cannot be compared."""
MORE_WON = {
    "compiled/eager": "compiled code also calls fewer operators, which the rule does not claim",
}


@pytest.mark.parametrize(("fault", "fix"), PAIRS.items())
def test_what_is_predicted_at_least_is_won(fault: str, fix: str) -> None:
    low, _, realised = predicted_and_realised(fault, fix)
    assert 0 <= low <= realised


@pytest.mark.parametrize(
    ("fault", "fix"), [each for each in PAIRS.items() if each[0] not in MORE_WON]
)
def test_no_more_is_won_than_was_predicted(fault: str, fix: str) -> None:
    _, high, realised = predicted_and_realised(fault, fix)
    assert realised <= 1.01 * high  # the two runs' jitter differs


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
    # 23.4 %, of which other findings (the optimizer, the bucket copies) take 6.3: by what is left
    (NCCL, "gpu-idle-gap", "warning", None),
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
