"""What advice says, in words, of the stories that were recorded."""

import pytest

from score.answers import report, serious, statuses
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
