"""Training loops and inference recorded here: each fault is found, and its fix is not."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules import Rule
from stepscope.rules.debug_mode_on import RULE as ANOMALIES
from stepscope.rules.inference_mode_off import RULE as INFERENCE
from stepscope.rules.memory_growth import RULE as GROWTH
from stepscope.rules.optimizer_single_tensor import RULE as UPDATES
from stepscope.rules.unfused_grad_clip import RULE as CLIPPING
from stepscope.rules.zero_grad_memset import RULE as ZEROS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.recording
STEPS = 6
LAYERS = 12


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Small operators on many threads mostly wait for each other, where cores are taken."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def said(path: Path, rule: Rule[Any], step: Callable[[], object]) -> list[Outcome]:
    """What a rule says of some steps, recorded with shapes and memory."""
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu, record_shapes=True, profile_memory=True):
        step()  # what it does first takes as long as some steps here, and its file is doubted
    with torch.profiler.profile(activities=cpu, record_shapes=True, profile_memory=True) as prof:
        for number in range(STEPS):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step()
    prof.export_chrome_trace(str(path / "trace.json"))
    return rule_outcomes(trace_at(path / "trace.json"), [rule])


def network() -> Any:
    layers = (torch.nn.Linear(64, 64) for _ in range(LAYERS))
    return torch.nn.Sequential(*layers, torch.nn.Dropout(0.1), torch.nn.BatchNorm1d(64))


def training(
    *, to_none: bool = True, clip: bool | None = None, anomaly: bool = False, keeps: Any = None
) -> Callable[[], object]:
    """A step of training; `clip` is whether all gradients are clipped at once."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rows = torch.ones(8, 64)

    def step() -> None:
        with torch.autograd.set_detect_anomaly(anomaly):
            optimizer.zero_grad(set_to_none=to_none)
            loss = model(rows).square().mean()
            loss.backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=clip)
        optimizer.step()
        if keeps is not None:
            keeps.append(model(rows))

    return step


def status(outcomes: list[Outcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def test_filling_gradients_with_zeros_is_found_and_freeing_them_is_not(tmp_path: Path) -> None:
    [fault] = said(tmp_path, ZEROS, training(to_none=False))
    # twelve layers and the normalisation, weight and bias
    assert "Gradients are filled with zeros, 26 operators per step" in fault.message
    assert status(said(tmp_path, ZEROS, training())) == ["passed"]


def test_clipping_one_by_one_is_found_and_all_at_once_is_not(tmp_path: Path) -> None:
    [fault] = said(tmp_path, CLIPPING, training(clip=False))
    # and the norm of the norms
    assert "Gradients are clipped one by one, 27 norms an update" in fault.message
    assert status(said(tmp_path, CLIPPING, training(clip=True))) == ["passed"]
    assert status(said(tmp_path, CLIPPING, training())) == ["passed"]


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_anomaly_detection_is_found_and_its_absence_is_not(tmp_path: Path) -> None:
    [fault] = said(tmp_path, ANOMALIES, training(anomaly=True))
    assert fault.severity in ("warning", "critical")
    assert "Anomaly detection is on" in fault.message
    assert fault.claim is not None
    assert status(said(tmp_path, ANOMALIES, training())) == ["passed"]


def test_tensors_in_a_list_make_memory_grow_and_numbers_do_not(tmp_path: Path) -> None:
    [fault] = said(tmp_path, GROWTH, training(keeps=[]))
    assert fault.status == "found"  # how surely, the file's health says too
    assert fault.tables
    assert status(said(tmp_path, GROWTH, training())) == ["passed"]


def test_the_loop_over_parameters_is_right_on_a_cpu(tmp_path: Path) -> None:
    assert status(said(tmp_path, UPDATES, training())) == ["not-applicable"]


def test_inference_with_gradients_is_found_and_without_is_not(tmp_path: Path) -> None:
    model, rows = network().eval(), torch.ones(8, 64)
    [fault] = said(tmp_path, INFERENCE, lambda: model(rows))
    assert "gradients are on" in fault.message
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            assert status(said(tmp_path, INFERENCE, lambda: model(rows))) == ["passed"]


def test_layers_that_train_in_inference_are_found(tmp_path: Path) -> None:
    model, rows = network().train(), torch.ones(8, 64)
    with torch.no_grad():
        [fault] = said(tmp_path, INFERENCE, lambda: model(rows))
    assert fault.severity == "warning"
    assert "12 calls of aten::batch_norm, aten::dropout behave as in training" in fault.message


def test_training_is_no_inference(tmp_path: Path) -> None:
    assert status(said(tmp_path, INFERENCE, training())) == ["not-applicable"]
