"""Multiple-choice questions on short passages: a small BERT fine-tuned with the Trainer."""

import sys
import tempfile
import time

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    BertConfig,
    BertForMultipleChoice,
    PreTrainedTokenizerFast,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

FAULTS = {
    "checkpointing": "activations recomputed in the backward pass of a model that fits in memory",
    "tokenise": "passages and choices tokenised in the collator, batch after batch",
    "histograms": "a histogram of every weight and its gradient logged in every step",
}
on = set(sys.argv[1:])

BATCH, CHOICES = 6, 4
WARMUP, STEPS = 5, 60
HISTOGRAM_EVERY = 1 if "histograms" in on else 100
KEYS = ["input_ids", "token_type_ids"]


def make_tokenizer():
    syllables = ["ka", "mo", "ri", "tel", "sun", "vo", "la", "per", "din", "gu"]
    pieces = syllables + ["##" + s for s in syllables]
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ".", "?", *pieces]
    ids = {piece: i for i, piece in enumerate(vocab)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.post_processor = BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]")
    return fast, syllables, len(vocab)


def make_exam(syllables, count=320):
    rng = np.random.default_rng(3)

    def sentence(words):
        return " ".join("".join(rng.choice(syllables, 2)) for _ in range(words))

    return [
        {
            "passage": sentence(14) + ".",
            "choices": [sentence(4) + "?" for _ in range(CHOICES)],
            "label": int(rng.integers(CHOICES)),
        }
        for _ in range(count)
    ]


def encode(tokenizer, question):
    passage, encoded = question["passage"], []
    for choice in question["choices"]:
        encoded.append(tokenizer(passage, choice, return_token_type_ids=True))  # fault: tokenise
    row = {key: [torch.tensor(choice[key]) for choice in encoded] for key in KEYS}
    return row | {"label": question["label"]}


class ChoiceCollator:
    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __call__(self, rows):
        if "tokenise" in on:
            rows = [encode(self.tokenizer, row) for row in rows]  # fault: tokenise
        batch = {}
        for key in KEYS:
            flat = [choice for row in rows for choice in row[key]]
            batch[key] = pad_sequence(flat, batch_first=True).view(len(rows), CHOICES, -1)
        batch["attention_mask"] = (batch["input_ids"] != 0).long()
        batch["labels"] = torch.tensor([row["label"] for row in rows])
        return batch


class WeightHistograms(TrainerCallback):
    written = {}

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        if (state.global_step + 1) % HISTOGRAM_EVERY:
            return
        for name, parameter in model.named_parameters():
            weight = parameter.detach().numpy()
            gradient = parameter.grad.numpy()
            self.written[name] = np.histogram(weight, bins=64)  # fault: histograms
            self.written[name + ".grad"] = np.histogram(gradient, bins=64)  # fault: histograms


class Clock(TrainerCallback):
    started = ended = 0.0

    def on_step_end(self, args, state, control, **kwargs):
        self.ended = time.perf_counter()
        if state.global_step == WARMUP:
            self.started = self.ended


def main():
    set_seed(0)
    tokenizer, syllables, vocab_size = make_tokenizer()
    questions = make_exam(syllables)
    if "tokenise" not in on:
        questions = [encode(tokenizer, question) for question in questions]
    config = BertConfig(
        vocab_size=vocab_size,
        hidden_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=64,
    )
    clock = Clock()
    with tempfile.TemporaryDirectory() as output:
        arguments = TrainingArguments(
            output_dir=output,
            per_device_train_batch_size=BATCH,
            max_steps=WARMUP + STEPS,
            learning_rate=5e-4,
            logging_steps=20,
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
            gradient_checkpointing="checkpointing" in on,
        )
        trainer = Trainer(
            model=BertForMultipleChoice(config),
            args=arguments,
            train_dataset=questions,
            data_collator=ChoiceCollator(tokenizer),
            callbacks=[WeightHistograms(), clock],
        )
        trainer.train()  # fault: checkpointing
    print(f"steps={STEPS} seconds={clock.ended - clock.started:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
