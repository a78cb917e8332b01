"""The callback for Hugging Face's Trainer, with the Trainer itself: nothing is fetched."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from saved_spans import count, recordings, settings_of, steps

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore"),  # those of the libraries
]

WORDS = 20
BATCH = 2
ROWS = 32
OWN = "stepscope.recording"


@pytest.fixture(scope="module", autouse=True)
def transformers() -> Any:
    """The library, which takes seconds to import, without the network."""
    patch = pytest.MonkeyPatch()
    patch.setenv("HF_HUB_OFFLINE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    yield transformers
    patch.undo()


@pytest.fixture
def train(transformers: Any, tmp_path: Path) -> Callable[..., Any]:
    """Trains for 16 steps, or what is asked for, and gives the model."""
    rows = torch.randint(0, WORDS, (ROWS, 4), generator=torch.Generator().manual_seed(1))
    data = [{"input_ids": row, "attention_mask": row * 0 + 1, "labels": row} for row in rows]

    def trained(*callbacks: Any, checkpoint: str | None = None, **arguments: Any) -> Any:
        transformers.set_seed(2)
        size = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 4, "vocab_size": WORDS}
        config = transformers.GPT2Config(**size, bos_token_id=0, eos_token_id=0)
        model = transformers.GPT2LMHeadModel(config)
        settings = {"num_train_epochs": 1, "save_strategy": "no", **arguments}
        options = transformers.TrainingArguments(
            str(tmp_path / "out"),
            per_device_train_batch_size=BATCH,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            **settings,
        )
        trainer = transformers.Trainer(
            model, options, train_dataset=data, eval_dataset=data[:4], callbacks=list(callbacks)
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        return model

    return trained


@pytest.fixture
def callback(tmp_path: Path) -> Callable[..., Any]:
    from stepscope.recording.transformers import StepscopeCallback

    def made(folder: Path = tmp_path / "log", **options: Any) -> Any:
        options.setdefault("schedule", schedule(wait=1, warmup=1, active=3, repeat=1))
        return StepscopeCallback(folder, **{"acc_events": True, **options})

    return made


@pytest.fixture
def doing(transformers: Any) -> Callable[..., Any]:
    """A callback of the test's own, which does something at the end of a step."""

    def made(step: int, do: Callable[[Any], None]) -> Any:
        class Doing(transformers.TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                del args
                if state.global_step == step:
                    do(control)

        return Doing()

    return made


def parameters(model: Any) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def fail(_: Any) -> None:
    msg = "the training's own"
    raise ArithmeticError(msg)


def stop(control: Any) -> None:
    control.should_training_stop = True


def test_a_step_is_one_of_the_optimizer_with_all_its_batches(
    train: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    train(callback(), gradient_accumulation_steps=2, bf16=True, dataloader_drop_last=True)
    [recording] = recordings(tmp_path)
    assert steps(recording) == [2, 3, 4]
    assert count(recording, "Optimizer.step#AdamW.step") == 3
    assert count(recording, "enumerate(DataLoader)#_SingleProcess") == 6, "two batches a step"
    told = settings_of(recording)
    assert told["batch"] == {"sample_count": 2 * BATCH}
    assert told["precision"]["autocast"] == {"enabled": True, "device": "cpu", "dtype": "bfloat16"}
    assert told["dataloaders"][0]["batch_size"] == BATCH
    assert told["dataloaders"][0]["sampler"] == "SeedableRandomSampler", "accelerate's"
    assert told["optimizers"][0]["name"] == "AdamW"
    assert (told["model"]["name"], told["model"]["training"]) == ("GPT2LMHeadModel", True)
    framework = told["framework"]
    assert framework.pop("version")
    assert framework == {
        "name": "transformers",
        "accumulated_batch_count": 2,
        "precision": "bf16",
        "max_step_count": 8,
        "gradient_checkpointing": False,
    }


@pytest.mark.slow
def test_without_a_schedule_one_is_chosen_for_the_length_of_the_training(
    train: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    train(callback(schedule=None))
    assert [steps(recording) for recording in recordings(tmp_path)] == [list(range(3, 11))]


@pytest.mark.slow
def test_training_comes_to_the_same_with_it_and_without(
    train: Callable[..., Any], callback: Callable[..., Any]
) -> None:
    alone, random_alone = train(), torch.random.get_rng_state()
    beside, random_beside = train(callback(with_stack=True)), torch.random.get_rng_state()
    assert torch.equal(parameters(alone), parameters(beside))
    assert torch.equal(random_alone, random_beside)


@pytest.mark.slow
def test_evaluation_is_in_no_file(
    train: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    chosen = schedule(wait=1, warmup=1, active=5, repeat=1)
    train(callback(schedule=chosen), eval_strategy="steps", eval_steps=4)
    found = recordings(tmp_path)
    assert [steps(recording) for recording in found] == [[2, 3], [5, 6, 7]]
    batches = [count(recording, "aten::cross_entropy_loss") for recording in found]
    assert batches == [2, 3], "of the steps alone"


def test_an_evaluation_that_another_callback_asks_for_ends_the_step(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    doing: Callable[..., Any],
    tmp_path: Path,
) -> None:
    def evaluate(control: Any) -> None:
        control.should_evaluate = True

    train(callback(), doing(4, evaluate))  # behind ours: it is seen with its first batch
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3], [5]]


def test_a_training_that_stops_early_is_saved(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    doing: Callable[..., Any],
    tmp_path: Path,
) -> None:
    train(doing(4, stop), callback())
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3]]


def test_what_was_recorded_before_an_exception_is_saved_later(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    doing: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_exit: list[Callable[[], None]] = []
    monkeypatch.setattr("atexit.register", at_exit.append)
    with pytest.raises(ArithmeticError, match="the training's own"):
        train(callback(), doing(4, fail))
    assert recordings(tmp_path) == [], "the Trainer tells callbacks nothing of it"
    for ending in at_exit:  # as `close()` does, which they are
        ending()
        ending()
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3]]


@pytest.mark.slow
def test_a_training_that_begins_anew_saves_what_the_broken_one_left(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    doing: Callable[..., Any],
    tmp_path: Path,
) -> None:
    ours = callback()
    with pytest.raises(ArithmeticError, match="the training's own"):
        train(ours, doing(4, fail))
    train(ours)
    assert [steps(recording) for recording in recordings(tmp_path)] == [[2, 3], [2, 3, 4]]


@pytest.mark.slow
def test_a_training_that_goes_on_from_a_checkpoint_counts_its_own_steps(
    train: Callable[..., Any], callback: Callable[..., Any], tmp_path: Path
) -> None:
    train(save_strategy="steps", save_steps=6, max_steps=6)
    train(callback(), max_steps=12, checkpoint=str(tmp_path / "out" / "checkpoint-6"))
    [recording] = recordings(tmp_path)
    assert steps(recording) == [2, 3, 4]
    assert settings_of(recording)["framework"]["max_step_count"] == 12


@pytest.mark.slow
def test_a_disk_that_cannot_be_written_costs_the_recording_only(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "log").write_text("a file where a folder should be")
    twice = schedule(wait=1, warmup=1, active=1, repeat=2)
    alone, beside = train(), train(callback(schedule=twice))
    assert torch.equal(parameters(alone), parameters(beside))
    said = [record for record in caplog.records if record.name == OWN]
    assert len(said) == 1
    assert "not saved" in said[0].getMessage()


def test_beside_another_profiler_it_does_nothing(
    train: Callable[..., Any],
    callback: Callable[..., Any],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with profile(activities=[ProfilerActivity.CPU], acc_events=True) as other:
        train(callback())
    assert recordings(tmp_path) == []
    assert "another torch profiler is running" in caplog.text
    assert sum(event.name == "Optimizer.step#AdamW.step" for event in other.events()) == 16


NOTHING_IS_IMPORTED = """
import sys
import stepscope, stepscope.recording
heavy = {"torch", "lightning", "pytorch_lightning", "transformers", "accelerate"}
sys.exit(", ".join(heavy & sys.modules.keys()) or None)
"""


def test_stepscope_itself_imports_none_of_these_libraries() -> None:
    subprocess.run([sys.executable, "-c", NOTHING_IS_IMPORTED], check=True, capture_output=True)


TRAIN_WITH_TWO_RANKS = """
import sys
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from stepscope.recording.transformers import StepscopeCallback

model = GPT2LMHeadModel(GPT2Config(
    n_embd=8, n_layer=1, n_head=1, n_positions=4, vocab_size=20, bos_token_id=0, eos_token_id=0,
))
row = torch.arange(4)
data = [{"input_ids": row, "attention_mask": row * 0 + 1, "labels": row}] * 64
arguments = TrainingArguments(
    sys.argv[1] + "/out", per_device_train_batch_size=2, use_cpu=True, report_to=[],
    max_steps=12, save_strategy="no", disable_tqdm=True,
)
callback = StepscopeCallback(sys.argv[1] + "/log")
Trainer(model, arguments, train_dataset=data, callbacks=[callback]).train()
"""


@pytest.mark.slow
def test_each_rank_is_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    script = tmp_path / "train.py"
    script.write_text(TRAIN_WITH_TWO_RANKS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launcher, str(script), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
    ranks = [settings_of(recording)["distributed"] for recording in recordings(tmp_path)]
    assert [(told["rank"], told["world_size"], told["strategy"]) for told in ranks] == [
        (0, 2, "DDP"),
        (1, 2, "DDP"),
    ]
    assert [steps(recording) for recording in recordings(tmp_path)] == [list(range(3, 11))] * 2
