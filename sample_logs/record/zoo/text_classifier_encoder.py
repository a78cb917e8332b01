"""Classifier of short reviews with a transformer encoder, typed and in small classes."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

FAULTS = {
    "padded": "every sample padded to 512 tokens instead of the longest of its batch",
    "tokenizing": "tokenization of every text in pure Python inside the training loop",
    "mask_loop": "the padding mask filled element by element in a Python loop",
}
on = set(sys.argv[1:])

PAD, UNKNOWN = 0, 1


@dataclass(frozen=True)
class Config:
    vocabulary: int = 4000
    max_length: int = 512
    width: int = 64
    heads: int = 2
    layers: int = 2
    batch_size: int = 4
    steps: int = 60
    warmup: int = 4
    lr: float = 3e-4


class WordPiece:
    """Greedy longest-match-first tokenizer."""

    def __init__(self, pieces: list[str]) -> None:
        self.ids = {piece: index for index, piece in enumerate(pieces, start=2)}

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for word in text.lower().split():  # fault: tokenizing
            start = 0
            while start < len(word):
                end = len(word)
                while end > start and word[start:end] not in self.ids:  # fault: tokenizing
                    end -= 1
                if end == start:
                    tokens.append(UNKNOWN)
                    break
                tokens.append(self.ids[word[start:end]])
                start = end
        return tokens


class Classifier(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width, padding_idx=PAD)
        self.positions = nn.Embedding(config.max_length, config.width)
        layer = nn.TransformerEncoderLayer(
            config.width, config.heads, 4 * config.width, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.layers, enable_nested_tensor=False)
        self.head = nn.Linear(config.width, 2)

    def forward(self, ids: Tensor, padding: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]  # fault: padded
        x = self.encoder(x, src_key_padding_mask=padding)  # fault: padded
        return self.head(x[:, 0])


def padding_mask(ids: Tensor) -> Tensor:
    """True where a position holds no token."""
    if "mask_loop" not in on:
        return ids == PAD
    mask = torch.zeros(ids.shape, dtype=torch.bool)
    for row in range(ids.shape[0]):
        for column in range(ids.shape[1]):
            if ids[row, column] == PAD:  # fault: mask_loop
                mask[row, column] = True  # fault: mask_loop
    return mask


def pad(batch: list[list[int]], config: Config) -> Tensor:
    length = config.max_length if "padded" in on else max(map(len, batch))
    return torch.tensor([ids + [PAD] * (length - len(ids)) for ids in batch])  # fault: padded


def reviews(count: int, rng: random.Random) -> tuple[list[str], list[str], list[int]]:
    """Pieces of a vocabulary, texts that are made of them, and their labels."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    pieces = ["".join(rng.choices(letters, k=rng.randint(2, 6))) for _ in range(3900)]
    texts = []
    for _ in range(count):
        words = rng.randint(12, 32)
        texts.append(" ".join("".join(rng.choices(pieces, k=2)) for _ in range(words)))
    return [*dict.fromkeys(pieces), *letters], texts, [rng.randint(0, 1) for _ in texts]


def batches(count: int, size: int, rng: random.Random) -> Iterator[list[int]]:
    while True:
        order = rng.sample(range(count), count)
        yield from (order[at : at + size] for at in range(0, count - size + 1, size))


def main(config: Config) -> None:
    rng = random.Random(7)
    torch.manual_seed(7)
    pieces, texts, labels = reviews(200, rng)
    tokenizer = WordPiece(pieces)
    encoded = [] if "tokenizing" in on else [tokenizer.encode(text) for text in texts]
    model = Classifier(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    started = 0.0
    for step, indices in enumerate(batches(len(texts), config.batch_size, rng)):
        if step == config.warmup:
            started = time.perf_counter()
        if step == config.warmup + config.steps:
            break
        if "tokenizing" in on:
            tokens = [tokenizer.encode(texts[i]) for i in indices]  # fault: tokenizing
        else:
            tokens = [encoded[i] for i in indices]
        ids = pad(tokens, config)
        logits = model(ids, padding_mask(ids))  # fault: padded # fault: mask_loop
        loss = nn.functional.cross_entropy(logits, torch.tensor([labels[i] for i in indices]))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # fault: padded
        optimizer.step()
    seconds = time.perf_counter() - started
    print(f"steps={config.steps} seconds={seconds:.4f} samples={config.steps * config.batch_size}")


if __name__ == "__main__":
    main(Config())
