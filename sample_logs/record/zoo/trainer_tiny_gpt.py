"""Fine-tune a tiny GPT-2 with the Hugging Face Trainer on synthetic instructions."""

import random
import sys
import tempfile
import time

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

FAULTS = {
    "checkpointing": "gradient checkpointing of a model that fits in memory many times",
    "collate": "a collate function that builds and masks each token in Python, in the main process",
    "log_every_step": "logging with statistics of every weight in every step",
}
on = set(sys.argv[1:])

VOCAB_SIZE = 500
PAD, SEP = 0, 1
BATCH_SIZE = 8
WARMUP_STEPS, STEPS = 5, 60


class InstructionDataset(torch.utils.data.Dataset):
    def __init__(self, size):
        rng = random.Random(0)
        self.rows = []
        for _ in range(size):
            prompt = [rng.randrange(2, VOCAB_SIZE) for _ in range(rng.randint(20, 40))]
            reply = [token ^ 1 for token in prompt[: rng.randint(10, 24)]]
            self.rows.append({"prompt": prompt, "reply": reply})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate_by_token(features):
    """input_ids, attention_mask, labels; the prompt has no loss."""
    longest = max(len(f["prompt"]) + 1 + len(f["reply"]) for f in features)
    input_ids = torch.full((len(features), longest), PAD)
    attention_mask = torch.zeros_like(input_ids)
    labels = torch.full_like(input_ids, -100)
    for row, feature in enumerate(features):
        for position, token in enumerate(feature["prompt"] + [SEP] + feature["reply"]):
            input_ids[row, position] = token  # fault: collate
        for position in range(longest):
            if input_ids[row, position] != PAD:  # fault: collate
                attention_mask[row, position] = 1  # fault: collate
                if position > len(feature["prompt"]):
                    labels[row, position] = input_ids[row, position]  # fault: collate
    return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def collate(features):
    rows = [f["prompt"] + [SEP] + f["reply"] for f in features]
    longest = max(map(len, rows))
    input_ids = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    prompts = torch.tensor([len(f["prompt"]) for f in features])
    positions = torch.arange(longest)
    attention_mask = positions < lengths[:, None]
    labels = input_ids.masked_fill(~attention_mask | (positions <= prompts[:, None]), -100)
    return {"input_ids": input_ids, "attention_mask": attention_mask.long(), "labels": labels}


class WeightStatistics(TrainerCallback):
    """Adds norms and quantiles of the weights to the log."""

    def __init__(self):
        self.history = []

    def on_log(self, args, state, control, model=None, **kwargs):
        row = {"step": state.global_step}
        for name, parameter in model.named_parameters():
            values = parameter.detach().flatten()
            row[f"{name}/norm"] = values.norm().item()  # fault: log_every_step
            row[f"{name}/median"] = values.median().item()  # fault: log_every_step
            row[f"{name}/max"] = values.abs().max().item()  # fault: log_every_step
        self.history.append(row)


class StepTimer(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == WARMUP_STEPS:
            self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    set_seed(42)
    config = GPT2Config(
        vocab_size=VOCAB_SIZE, n_positions=128, n_embd=64, n_layer=2, n_head=2, bos_token_id=SEP,
        eos_token_id=SEP, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
    )  # fmt: skip
    timer = StepTimer()
    with tempfile.TemporaryDirectory() as output_dir:
        arguments = TrainingArguments(
            output_dir=output_dir,
            max_steps=WARMUP_STEPS + STEPS,
            per_device_train_batch_size=BATCH_SIZE,
            learning_rate=5e-4,
            gradient_checkpointing="checkpointing" in on,
            logging_steps=1 if "log_every_step" in on else 50,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            use_cpu=True,
        )
        trainer = Trainer(
            model=GPT2LMHeadModel(config),
            args=arguments,
            train_dataset=InstructionDataset(256),
            data_collator=collate_by_token if "collate" in on else collate,
            callbacks=[WeightStatistics(), timer],
        )
        trainer.train()  # fault: checkpointing
    print(f"steps={STEPS} seconds={timer.seconds:.4f} samples={STEPS * BATCH_SIZE}")


if __name__ == "__main__":
    main()
