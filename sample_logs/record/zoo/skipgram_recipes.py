"""Word vectors of a corpus of recipes: skip-gram with negative sampling."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "item_by_item": "a data loader that fetches and stacks single pairs of numbers",
    "multinomial": "negatives drawn from the probabilities of all words in each step",
    "dense": "gradients of the size of the whole tables for a few rows",
}
on = set(sys.argv[1:])

VOCAB, DIM = 20000, 100
WINDOW, NEGATIVES = 4, 5
BATCH, WARMUP, STEPS = 2560, 5, 80

rng = np.random.default_rng(0)
torch.manual_seed(0)

# corpus, word frequencies after Zipf
frequencies = 1.0 / np.arange(1, VOCAB + 1)
frequencies /= frequencies.sum()
corpus = rng.choice(VOCAB, size=30_000, p=frequencies)

centers, contexts = [], []
for offset in range(1, WINDOW + 1):
    centers += [corpus[:-offset], corpus[offset:]]
    contexts += [corpus[offset:], corpus[:-offset]]
centers = torch.from_numpy(np.concatenate(centers))
contexts = torch.from_numpy(np.concatenate(contexts))

noise = frequencies**0.75
noise /= noise.sum()
weights = torch.from_numpy(noise)
noise_table = torch.from_numpy(rng.choice(VOCAB, size=1_000_000, p=noise))


class Pairs(Dataset):
    def __len__(self):
        return len(centers)

    def __getitem__(self, i):
        return centers[i], contexts[i]  # fault: item_by_item


def batches():
    if "item_by_item" in on:
        loader = DataLoader(Pairs(), batch_size=BATCH, shuffle=True, drop_last=True)
        yield from loader  # fault: item_by_item
    else:
        order = torch.randperm(len(centers))
        for chosen in order.split(BATCH):
            yield centers[chosen], contexts[chosen]


def draw_negatives(count):
    if "multinomial" in on:
        drawn = torch.multinomial(
            weights, count * NEGATIVES, replacement=True
        )  # fault: multinomial
        return drawn.view(count, NEGATIVES)
    return noise_table[torch.randint(len(noise_table), (count, NEGATIVES))]


class SkipGram(nn.Module):
    def __init__(self):
        super().__init__()
        sparse = "dense" not in on
        self.inner = nn.Embedding(VOCAB, DIM, sparse=sparse)
        self.outer = nn.Embedding(VOCAB, DIM, sparse=sparse)
        nn.init.uniform_(self.inner.weight, -0.5 / DIM, 0.5 / DIM)
        nn.init.zeros_(self.outer.weight)

    def forward(self, center, context, negatives):
        v = self.inner(center)
        words = torch.cat([context.unsqueeze(1), negatives], 1)
        scores = torch.bmm(self.outer(words), v.unsqueeze(2)).squeeze(2)
        labels = torch.zeros_like(scores)
        labels[:, 0] = 1.0
        return F.binary_cross_entropy_with_logits(scores, labels, reduction="sum") / len(center)


model = SkipGram()
optimizer = torch.optim.SGD(model.parameters(), lr=2.0)

step, started, running = 0, 0.0, 0.0
for center, context in batches():  # fault: item_by_item
    if step == WARMUP:
        started = time.perf_counter()
    negatives = draw_negatives(len(center))  # fault: multinomial
    loss = model(center, context, negatives)
    optimizer.zero_grad()
    loss.backward()  # fault: dense
    optimizer.step()  # fault: dense
    running = 0.95 * running + 0.05 * loss.item()
    step += 1
    if step % 25 == 0:
        print(f"step {step}: loss {running:.3f}")
    if step == WARMUP + STEPS:
        break

seconds = time.perf_counter() - started
assert step == WARMUP + STEPS
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
