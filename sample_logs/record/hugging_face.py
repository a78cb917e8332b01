"""Hugging Face's Trainer with stepscope's callback: a small GPT-2, two batches to a step.

It has no fault: the tokens are in memory, the optimizer is fused, logging is rare.
"""

import tempfile
from pathlib import Path

import torch
from torch.profiler import schedule
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from recording import SEED, TRACE_PATTERN, Plan, Target, seeded, target
from stepscope.recording.transformers import StepscopeCallback

SEQUENCE = 64
WORDS = 1000
BATCH = 8
BATCHES_A_STEP = 2
PLAN = Plan(wait=2, active=5)
WORKER = "trainer"


def tokens(count: int) -> list[dict[str, torch.Tensor]]:
    """Returns random token sequences, as in a tokenized data set in memory."""
    drawn = torch.randint(
        0, WORDS, (count, SEQUENCE), generator=torch.Generator().manual_seed(SEED)
    )
    mask = torch.ones(SEQUENCE, dtype=torch.int64)
    return [{"input_ids": row, "attention_mask": mask, "labels": row} for row in drawn]


def network() -> GPT2LMHeadModel:
    """Builds the model from a configuration, without a download."""
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS,
            n_positions=SEQUENCE,
            n_embd=192,
            n_layer=2,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
    )


def record(run: Path, device: torch.device) -> None:
    """Trains for two more steps than the plan has."""
    seeded()
    for earlier in run.glob(f"{WORKER}.{TRACE_PATTERN}"):
        earlier.unlink()
    steps = PLAN.steps + 2
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            per_device_train_batch_size=BATCH,
            gradient_accumulation_steps=BATCHES_A_STEP,
            max_steps=steps,
            use_cpu=device.type == "cpu",
            logging_steps=steps,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=SEED,
        )
        active_steps = schedule(wait=PLAN.wait, warmup=PLAN.warmup, active=PLAN.active, repeat=1)
        callback = StepscopeCallback(run, schedule=active_steps, worker_name=WORKER)
        data = tokens(BATCH * BATCHES_A_STEP * steps)
        Trainer(network(), arguments, train_dataset=data, callbacks=[callback]).train()
    print(f"{run.parent.name}/{run.name}: {WORKER} recorded")


def main(where: Target) -> None:
    """Records the one run."""
    record(where.run("two_batches_a_step"), where.device)


if __name__ == "__main__":
    main(target("hugging_face", __doc__))
