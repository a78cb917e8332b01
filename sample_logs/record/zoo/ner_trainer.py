"""Token classification with the Hugging Face Trainer: a small BERT tags entities in tickets."""

import random
import sys
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

FAULTS = {
    "max_length": "padding of every sentence to 128 tokens instead of to the longest in the batch",
    "subwords": "the split into subwords repeated on each access to a sentence",
    "recompute": "activations computed again in the backward pass though memory suffices",
}
on = set(sys.argv[1:])

WARMUP, STEPS, BATCH = 5, 60, 8
MAX_LENGTH, MAX_PIECE = 128, 12
TAGS = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]

random.seed(0)
torch.manual_seed(0)
SYLLABLES = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s")]
pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *SYLLABLES, *("##" + s for s in SYLLABLES)]
piece_ids = {piece: i for i, piece in enumerate(pieces)}


def ticket():
    words = ["".join(random.choices(SYLLABLES, k=random.randint(2, 6))) for _ in range(10)]
    while sum(len(w) for w in words) < 110:
        words.append("".join(random.choices(SYLLABLES, k=2)))
    return words, [random.choice(TAGS) for _ in words]


def wordpiece(word):
    found, start = [], 0
    while start < len(word):
        for end in range(min(len(word), start + MAX_PIECE), start, -1):  # fault: subwords
            piece = ("##" if start else "") + word[start:end]  # fault: subwords
            if piece in piece_ids:  # fault: subwords
                found.append(piece_ids[piece])
                start = end
                break
        else:
            return [piece_ids["[UNK]"]]
    return found


def encode(words, tags):
    ids, labels = [piece_ids["[CLS]"]], [-100]
    for word, tag in zip(words, tags, strict=True):
        subwords = wordpiece(word)  # fault: subwords
        ids += subwords
        labels += [TAGS.index(tag)] + [-100] * (len(subwords) - 1)  # fault: subwords
    return {"input_ids": ids + [piece_ids["[SEP]"]], "labels": [*labels, -100]}


class TicketDataset(Dataset):
    def __init__(self, tickets):
        self.tickets = tickets
        if "subwords" not in on:
            self.encoded = [encode(*t) for t in tickets]

    def __len__(self):
        return len(self.tickets)

    def __getitem__(self, index):
        if "subwords" in on:
            return encode(*self.tickets[index])  # fault: subwords
        return self.encoded[index]


def collate(examples):
    length = max(len(e["input_ids"]) for e in examples)
    if "max_length" in on:
        length = MAX_LENGTH
    ids = torch.zeros(len(examples), length, dtype=torch.long)
    labels = torch.full((len(examples), length), -100)
    for row, example in enumerate(examples):
        n = len(example["input_ids"])
        ids[row, :n] = torch.tensor(example["input_ids"])
        labels[row, :n] = torch.tensor(example["labels"])
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}


class WeightedTrainer(Trainer):
    weights = torch.tensor([0.2] + [1.0] * (len(TAGS) - 1))

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)  # fault: max_length
        loss = nn.functional.cross_entropy(
            outputs.logits.flatten(0, 1), labels.flatten(), weight=self.weights
        )
        return (loss, outputs) if return_outputs else loss


class Clock(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == WARMUP:
            self.started = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.started


config = BertConfig(
    vocab_size=len(pieces),
    hidden_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=512,
    max_position_embeddings=MAX_LENGTH,
    num_labels=len(TAGS),
)
clock = Clock()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=BATCH,
        max_steps=WARMUP + STEPS,
        learning_rate=5e-4,
        activation_checkpointing="recompute" in on,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
    )
    trainer = WeightedTrainer(
        model=BertForTokenClassification(config),
        args=arguments,
        train_dataset=TicketDataset([ticket() for _ in range((WARMUP + STEPS) * BATCH)]),
        data_collator=collate,
        callbacks=[clock],
    )
    trainer.train()  # fault: max_length  # fault: recompute

print(f"steps={STEPS} seconds={clock.seconds:.4f} samples={STEPS * BATCH}")
