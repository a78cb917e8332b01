"""Fine-tuning a DistilBERT classifier with the Hugging Face Trainer, on made-up token ids."""

import random
import sys
import tempfile
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

FAULTS = {
    "padding": "every batch padded to the maximum length instead of its longest text",
    "grad_norms": "the gradient norm of each parameter read with item() in every step",
    "eager": "attention with materialised scores instead of the fused kernel",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
SECONDS, WARMUP, MIN_STEPS = 1.0, 12, 30
BATCH, WIDTH, LAYERS, HEADS = (192, 768, 6, 12) if GPU else (4, 32, 2, 2)
LONGEST, MAX_LENGTH = (128, 256) if GPU else (16, 32)
VOCAB = 30522 if GPU else 500
PAD, CLS, SEP = 0, 101, 102


class Reviews(Dataset):
    """Token ids of texts of different lengths, as a tokenizer returns them."""

    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = rng.randrange(2)
            length = rng.randint(LONGEST - LONGEST // 16, LONGEST) - 2
            low = 200 + label * (VOCAB - 200) // 4
            ids = [CLS, *rng.choices(range(low, VOCAB), k=length), SEP]
            self.rows.append({"input_ids": ids, "label": label})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    length = -(-longest // 8) * 8
    if "padding" in on:
        length = MAX_LENGTH  # fault: padding
    ids = torch.full((len(rows), length), PAD, dtype=torch.long)
    mask = torch.zeros(len(rows), length, dtype=torch.long)
    for i, row in enumerate(rows):
        n = len(row["input_ids"])
        ids[i, :n] = torch.tensor(row["input_ids"])
        mask[i, :n] = 1
    labels = torch.tensor([row["label"] for row in rows])
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


class NormTrainer(Trainer):
    """Keeps the norm of the gradients before clipping, for the plot at the end."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norms = []

    def training_step(self, model, inputs, *args, **kwargs):
        loss = super().training_step(model, inputs, *args, **kwargs)
        if "grad_norms" in on:
            total = 0.0
            for p in model.parameters():
                if p.grad is not None:
                    total += p.grad.detach().norm(2).item() ** 2  # fault: grad_norms
            self.norms.append(total**0.5)
        else:
            grads = [p.grad for p in model.parameters() if p.grad is not None]
            self.norms.append(torch.nn.utils.get_total_norm(grads))
        return loss


class StopWatch(TrainerCallback):
    def __init__(self):
        self.steps, self.started, self.seconds = 0, 0.0, 0.0

    @staticmethod
    def synchronize():
        if GPU:
            torch.cuda.synchronize()

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == WARMUP:
            self.synchronize()
            self.started = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        self.steps = state.global_step - WARMUP
        if self.steps >= MIN_STEPS and time.perf_counter() - self.started >= SECONDS:
            self.synchronize()
            self.seconds = time.perf_counter() - self.started
            control.should_training_stop = True
        return control


def main():
    set_seed(0)
    torch.set_float32_matmul_precision("high")
    config = DistilBertConfig(
        vocab_size=VOCAB,
        dim=WIDTH,
        hidden_dim=4 * WIDTH,
        n_layers=LAYERS,
        n_heads=HEADS,
        max_position_embeddings=512,
        num_labels=2,
        attn_implementation="eager" if "eager" in on else "sdpa",  # fault: eager
    )
    model = DistilBertForSequenceClassification(config)
    train = Reviews(20_000 if GPU else 400, seed=1)
    watch = StopWatch()
    with tempfile.TemporaryDirectory() as folder:
        args = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=BATCH,
            max_steps=20_000,
            learning_rate=5e-5,
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            bf16=GPU,
            use_cpu=not GPU,
            logging_steps=200,
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_num_workers=4 if GPU else 1,
            dataloader_persistent_workers=True,
            dataloader_prefetch_factor=4,
            dataloader_pin_memory=GPU,
            dataloader_drop_last=True,
            remove_unused_columns=False,
        )
        trainer = NormTrainer(
            model=model, args=args, train_dataset=train, data_collator=collate, callbacks=[watch]
        )
        trainer.train()  # fault: eager
    norms = torch.tensor([float(norm) for norm in trainer.norms])
    print(f"gradient norm: first {norms[0]:.4f}, mean {norms.mean():.4f}")
    print(f"steps={watch.steps} seconds={watch.seconds:.4f} samples={watch.steps * BATCH}")


if __name__ == "__main__":
    main()
