"""What advice says, in words, of the stories that were recorded."""

import pytest

from score.answers import first_cause, report, serious, statuses
from stepscope.base.findings import Outcome


def verdict_of(run: str) -> str:
    return report(run).workers[0].verdict


def only_cause(run: str) -> Outcome:
    [outcome] = [outcome for outcome in serious(report(run)) if not outcome.is_symptom]
    return outcome


@pytest.mark.parametrize("run", ["in_memory", "loaded"])
def test_a_heavy_model_is_called_that_with_its_operators_and_no_advice_on_the_loop(
    run: str,
) -> None:
    told = report(f"heavy_model/{run}")
    assert (
        "; computing on the CPU is the limit, and the loop is healthy:"
        " aten::convolution_backward takes " in verdict_of(f"heavy_model/{run}")
    )
    assert ", aten::mkldnn_convolution " in verdict_of(f"heavy_model/{run}")
    assert serious(told) == []
    found = {each.outcome.rule for each in told.merged if each.outcome.status == "found"}
    assert not found & {"dataloader-bound", "dataloader-no-workers", "step-time-jitter"}


@pytest.mark.parametrize("run", ["transformer_inference", "conv_training", "gradient_accumulation"])
def test_of_good_practice_it_is_said_that_the_loop_is_fine(run: str) -> None:
    assert "computing on the CPU is the limit, and the loop is healthy" in verdict_of(
        f"good_practice/{run}"
    )
    [standing] = [worker.standing for worker in report(f"good_practice/{run}").workers]
    assert standing is not None
    assert standing.state == "healthy"


def test_double_precision_names_the_operators_and_the_default_dtype() -> None:
    outcome = only_cause("double_precision/float64")
    assert outcome.rule == "float64-compute"
    assert "most of it aten::conv2d" in outcome.message
    assert "run as aten::thnn_conv2d" in outcome.message
    assert "it is the default dtype (recorded by the trace handler)" in outcome.message
    assert outcome.fix is not None
    assert "torch.set_default_dtype(torch.float32)" in (outcome.fix.code or "")


def test_where_batches_are_only_taken_over_the_workers_are_not_blamed() -> None:
    assert [outcome.rule for outcome in serious(report("cifar_resnet18/thin_workers"))] == [
        "tiny-batch-size"
    ]
    assert statuses("cifar_resnet18/thin_workers", "dataloader-bound") == {"rejected"}


def test_on_a_cpu_a_larger_batch_is_said_to_save_for_the_same_number_of_samples() -> None:
    outcome = only_cause("batch_size/batch_8")
    assert outcome.rule == "tiny-batch-size"
    assert "The batch is 8 (first dimension of aten::conv2d)" in outcome.message
    assert outcome.claim is not None
    assert "a step takes longer, a sample less" in outcome.claim.method


def test_a_cache_that_grows_is_the_first_cause_and_start_up_is_none() -> None:
    first = first_cause(report("batch_generate_cuda/faulty"))
    assert first is not None
    assert first.rule == "growing-concatenation"
    assert "24 tensors" in first.message
    assert serious(report("batch_generate_cuda/healthy")) == []
    assert statuses("batch_generate_cuda/healthy", "gpu-idle-gap") == {"rejected"}
    [start] = [
        merged.outcome
        for merged in report("batch_generate_cuda/healthy").merged
        if merged.outcome.rule == "warmup-in-window"
    ]
    assert "Code was loaded at its first use for 303 ms" in start.message


def test_pooling_on_the_host_is_named_by_its_lines() -> None:
    causes = serious(report("embed_corpus_cuda/faulty"))
    lines = {outcome.rule: [line.line for line in outcome.locations] for outcome in causes}
    assert lines["hot-path"] == [85, 87]
    assert lines["blocking-d2h-copy"] == [85]
    assert "gpu-idle-gap" not in lines


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        ("optimizer_cuda/one_by_one", "optimizer-single-tensor"),
        ("metrics_cuda/item_each_step", "python-loop-indexing"),
    ],
)
def test_the_cause_of_most_launches_precedes_launching(run: str, rule: str) -> None:
    first, second = serious(report(run))[:2]
    assert (first.rule, second.rule) == (rule, "launch-bound")
