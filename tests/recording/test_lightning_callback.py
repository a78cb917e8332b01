"""The callback for Lightning's Trainer, with Lightning itself: what is recorded, and what not."""

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from saved_spans import count, recordings, settings_of, steps

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore"),  # Lightning's, of few workers and more
]

ROWS = 32
BATCH = 2
IN_VALIDATION = "in validation"


@pytest.fixture(scope="module", autouse=True)
def lightning() -> Iterator[Any]:
    """Lightning, which takes seconds to import, quiet."""
    from lightning import pytorch

    log = logging.getLogger("lightning.pytorch")
    level = log.level
    log.setLevel(logging.ERROR)
    yield pytorch
    log.setLevel(level)


@pytest.fixture(scope="module")
def network(lightning: Any) -> Callable[..., Any]:
    """A small model that Lightning trains; `fails_at` ends it with an exception."""

    class Network(lightning.LightningModule):
        def __init__(self, fails_at: int | None = None, stops_at: int | None = None) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)
            self.dropout = torch.nn.Dropout(0.5)
            self.fails_at, self.stops_at = fails_at, stops_at

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if batch_idx == self.fails_at:
                msg = "the training's own"
                raise ArithmeticError(msg)
            if batch_idx == self.stops_at:
                self.trainer.should_stop = True
            return self.dropout(self.layer(batch[0])).square().sum()

        def validation_step(self, batch: Any, _batch_idx: int) -> None:
            with record_function(IN_VALIDATION):
                self.layer(batch[0])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.01)

    return Network


def loader() -> Any:
    rows = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(1))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=BATCH)


@pytest.fixture
def fit(lightning: Any, network: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """Trains an epoch of 16 batches with callbacks, and gives the model."""

    def trained(*callbacks: Any, model: Any = None, checkpoint: Any = None, **options: Any) -> Any:
        torch.manual_seed(2)
        model = model or network()
        quiet = dict.fromkeys(("logger", "enable_progress_bar", "enable_model_summary"), False)
        settings = {"max_epochs": 1, "enable_checkpointing": False, **quiet, **options}
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=1,
            callbacks=list(callbacks),
            default_root_dir=tmp_path / "root",
            num_sanity_val_steps=1,
            **settings,
        )
        validation = loader() if "val_check_interval" in options else None
        trainer.fit(model, loader(), validation, ckpt_path=checkpoint)
        return model

    return trained


@pytest.fixture
def callback(tmp_path: Path) -> Callable[..., Any]:
    from stepscope.recording.lightning import StepscopeCallback

    def made(folder: Path = tmp_path / "log", **options: Any) -> Any:
        options.setdefault("schedule", schedule(wait=1, warmup=1, active=3, repeat=1))
        return StepscopeCallback(folder, **{"acc_events": True, **options})

    return made


def test_a_step_is_one_of_the_optimizer_with_all_its_batches(
    fit: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    fit(callback(), accumulate_grad_batches=2, precision="bf16-mixed", max_steps=6)
    [recording] = recordings(tmp_path)
    assert steps(recording) == [2, 3, 4]
    assert count(recording, "Optimizer.step#SGD.step") == 3
    assert count(recording, "enumerate(DataLoader)#_SingleProcess") == 6, "two batches a step"
    told = settings_of(recording)
    assert told["batch"] == {"sample_count": 2 * BATCH}
    assert told["precision"]["autocast"] == {"enabled": True, "device": "cpu", "dtype": "bfloat16"}
    assert told["dataloaders"][0]["batch_size"] == BATCH
    assert told["optimizers"][0]["name"] == "SGD"
    assert (told["model"]["name"], told["model"]["training"]) == ("Network", True)
    assert told["profiler"]["schedule"]["active"] == 3
    framework = told["framework"]
    assert framework.pop("version")
    assert framework == {
        "name": "lightning",
        "accumulated_batch_count": 2,
        "precision": "bf16-mixed",
        "strategy": "SingleDeviceStrategy",
        "max_step_count": 6,
    }


def test_without_a_schedule_one_is_chosen_for_the_length_of_the_training(
    fit: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    fit(callback(schedule=None))
    assert [steps(recording) for recording in recordings(tmp_path)] == [list(range(3, 11))]


def test_training_comes_to_the_same_with_it_and_without(
    fit: Callable[..., Any], callback: Callable[..., Any]
) -> None:
    alone, random_alone = fit(), torch.random.get_rng_state()
    beside, random_beside = fit(callback(with_stack=True)), torch.random.get_rng_state()
    assert torch.equal(alone.layer.weight, beside.layer.weight)
    assert torch.equal(random_alone, random_beside)


def test_validation_is_in_no_file(
    fit: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    fit(callback(schedule=schedule(wait=1, warmup=1, active=5, repeat=1)), val_check_interval=4)
    found = recordings(tmp_path)
    assert [steps(recording) for recording in found] == [[2, 3], [5, 6, 7]]
    assert not any(count(recording, IN_VALIDATION) for recording in found)
    assert all(settings_of(recording)["model"]["training"] for recording in found)


def test_what_was_recorded_before_an_exception_is_saved(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    network: Callable[..., Any],
    tmp_path: Path,
) -> None:
    with pytest.raises(ArithmeticError, match="the training's own"):
        fit(callback(), model=network(fails_at=4))
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3, 4]]
    fit(callback())  # the next training begins anew
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3, 4]] * 2


def test_a_training_that_stops_early_is_saved(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    network: Callable[..., Any],
    tmp_path: Path,
) -> None:
    fit(callback(), model=network(stops_at=3))
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3]]


def test_a_training_that_goes_on_from_a_checkpoint_counts_its_own_steps(
    fit: Callable[..., Any], callback: Callable[..., Any], lightning: Any, tmp_path: Path
) -> None:
    saved = lightning.callbacks.ModelCheckpoint(tmp_path / "saved", save_last=True)
    fit(saved, enable_checkpointing=True)
    fit(callback(), checkpoint=tmp_path / "saved" / "last.ckpt", max_epochs=2)
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3, 4]]


def test_a_disk_that_cannot_be_written_costs_the_recording_only(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "log").write_text("a file where a folder should be")
    twice = schedule(wait=1, warmup=1, active=1, repeat=2)
    alone, beside = fit(), fit(callback(schedule=twice))
    assert torch.equal(alone.layer.weight, beside.layer.weight)
    said = [record for record in caplog.records if record.name == "stepscope.recording"]
    assert len(said) == 1
    assert "not saved" in said[0].getMessage()


def test_beside_another_profiler_it_does_nothing(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as other:
        fit(callback())
    assert recordings(tmp_path) == []
    assert "another torch profiler is running" in caplog.text
    assert sum(event.name == "Optimizer.step#SGD.step" for event in other.events()) == 16


def test_beside_lightnings_own_torch_profiler_it_does_nothing(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    lightning: Any,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = lightning.profilers.PyTorchProfiler(tmp_path / "own", "own", acc_events=True)
    fit(callback(), profiler=own)
    assert recordings(tmp_path) == []
    assert "the Trainer has a PyTorchProfiler" in caplog.text
    assert list((tmp_path / "own").glob("*.pt.trace.json"))


@pytest.mark.parametrize("is_seen", [True, False])
def test_with_manual_optimization_a_step_is_a_batch(
    fit: Callable[..., Any],
    callback: Callable[..., Any],
    network: Callable[..., Any],
    tmp_path: Path,
    *,
    is_seen: bool,
) -> None:
    class Manual(network):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> None:
            optimizers = self.optimizers(use_pl_optimizer=is_seen)
            self.manual_backward(super().training_step(batch, batch_idx))
            for optimizer in optimizers:  # two, so that Lightning counts two steps
                optimizer.step()

        def configure_optimizers(self) -> Any:
            parameters = list(self.parameters())
            return [torch.optim.SGD([each], lr=0.01) for each in parameters]

    fit(callback(), model=Manual())
    [recording] = recordings(tmp_path)
    assert steps(recording) == [2, 3, 4]
    assert count(recording, "enumerate(DataLoader)#_SingleProcess") == 3


def test_an_argument_that_torchs_profiler_does_not_know_is_refused_at_once(
    callback: Callable[..., Any],
) -> None:
    from stepscope.base.errors import UsageError

    with pytest.raises(UsageError, match="does not accept stacks here"):
        callback(stacks=True)


FIT_BY_THE_OTHER_NAME = """
import sys, warnings
warnings.simplefilter("ignore")
import pytorch_lightning
from stepscope.recording.lightning import StepscopeCallback

import torch
from torch.utils.data import DataLoader, TensorDataset

assert issubclass(StepscopeCallback, pytorch_lightning.Callback)
assert "lightning.pytorch" not in sys.modules

class Network(pytorch_lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

pytorch_lightning.Trainer(
    accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
    enable_progress_bar=False, callbacks=[StepscopeCallback(sys.argv[1])],
).fit(Network(), DataLoader(TensorDataset(torch.ones(16, 4))))
"""


@pytest.mark.slow
def test_it_is_a_callback_of_whichever_lightning_the_program_uses(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FIT_BY_THE_OTHER_NAME, str(tmp_path / "log")]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    [recording] = recordings(tmp_path)
    assert steps(recording) == list(range(3, 11))
    assert settings_of(recording)["framework"]["name"] == "pytorch_lightning"


FIT_WITH_TWO_RANKS = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset
from stepscope.recording.lightning import StepscopeCallback

class Network(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

if __name__ == "__main__":
    Trainer(
        accelerator="cpu", devices=2, strategy="ddp_spawn", max_epochs=1, logger=False,
        enable_checkpointing=False, enable_progress_bar=False,
        callbacks=[StepscopeCallback(sys.argv[1])],
    ).fit(Network(), DataLoader(TensorDataset(torch.ones(32, 4))))
"""


@pytest.mark.slow
def test_each_rank_is_a_worker(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(FIT_WITH_TWO_RANKS)
    command = [sys.executable, str(script), str(tmp_path / "log")]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    found = recordings(tmp_path)
    ranks = [settings_of(recording)["distributed"] for recording in found]
    assert [(told["rank"], told["world_size"], told["strategy"]) for told in ranks] == [
        (0, 2, "DDP"),
        (1, 2, "DDP"),
    ]
    names = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert [name[:6] for name in names] == ["rank0_", "rank1_"]
