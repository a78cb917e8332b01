"""Click-through-rate baseline: one-hot categories into an MLP (exported from a notebook)."""

import random
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "one_hot_loop": "one-hot rows filled in by a Python loop and converted from lists",
    "micro_batches": "gradients accumulated over chunks of 32 rows of a batch that fits at once",
    "sample_metrics": "accuracy and log loss read sample by sample with item()",
}
on = set(sys.argv[1:])

SEED = 42
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)

BATCH = 256
N_ROWS = 20_000
CARDS = [3, 7, 50, 12, 24, 31, 8, 100, 5, 18, 40, 9, 64, 2, 22, 77, 11, 4, 90, 16, 28, 35, 6, 14]
N_NUM = 13
OFFSETS = np.cumsum([0] + CARDS[:-1])
N_CAT = sum(CARDS)

# ---- data ---------------------------------------------------------------------------------------
cats = np.stack([np.random.randint(0, c, N_ROWS) for c in CARDS], axis=1)
nums = np.random.lognormal(size=(N_ROWS, N_NUM)).astype("float32")
logit = 0.3 * np.sin(cats).sum(1) + 0.2 * np.log(nums).sum(1)
y = (np.random.rand(N_ROWS) < 1 / (1 + np.exp(-logit))).astype("float32")

cats_t = torch.from_numpy(cats)
nums_t = torch.from_numpy(np.log1p(nums))
y_t = torch.from_numpy(y)
offsets_t = torch.from_numpy(OFFSETS)


def encode(codes):
    """One-hot encode all categorical columns side by side."""
    if "one_hot_loop" in on:
        rows = []
        for row in codes.tolist():
            vec = [0.0] * N_CAT  # fault: one_hot_loop
            for off, code in zip(OFFSETS, row):
                vec[off + code] = 1.0  # fault: one_hot_loop
            rows.append(vec)
        return torch.tensor(rows)  # fault: one_hot_loop
    out = torch.zeros(len(codes), N_CAT)
    return out.scatter_(1, codes + offsets_t, 1.0)


def count_metrics(logits, target, totals):
    if "sample_metrics" in on:
        prob = torch.sigmoid(logits)
        for i in range(len(target)):
            p = prob[i].item()  # fault: sample_metrics
            t = target[i].item()  # fault: sample_metrics
            p = min(max(p, 1e-7), 1 - 1e-7)
            totals["correct"] += int((p > 0.5) == (t > 0.5))
            totals["logloss"] -= np.log(p) if t > 0.5 else np.log(1 - p)  # fault: sample_metrics
    else:
        totals["correct"] += ((logits > 0) == (target > 0.5)).sum()
        totals["logloss"] += F.binary_cross_entropy_with_logits(logits, target, reduction="sum")
    totals["n"] += len(target)


# ---- model --------------------------------------------------------------------------------------
model = nn.Sequential(
    nn.Linear(N_CAT + N_NUM, 1024),
    nn.ReLU(),
    nn.Linear(1024, 256),
    nn.ReLU(),
    nn.Linear(256, 1),
)
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

# ---- train --------------------------------------------------------------------------------------
WARMUP, STEPS = 5, 100
chunk = 32 if "micro_batches" in on else BATCH
totals = {"correct": 0, "logloss": 0.0, "n": 0}
order = torch.randperm(N_ROWS)
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        start = time.perf_counter()
    at = step * BATCH % (N_ROWS - BATCH)
    idx = order[at : at + BATCH]
    x = torch.cat([encode(cats_t[idx]), nums_t[idx]], dim=1)
    target = y_t[idx]

    opt.zero_grad()
    outputs = []
    for xb, yb in zip(x.split(chunk), target.split(chunk)):
        out = model(xb).squeeze(1)  # fault: micro_batches
        loss = F.binary_cross_entropy_with_logits(out, yb) * len(xb) / BATCH  # fault: micro_batches
        loss.backward()  # fault: micro_batches
        outputs.append(out.detach())
    opt.step()
    count_metrics(torch.cat(outputs), target, totals)

seconds = time.perf_counter() - start
print(f"acc={totals['correct'] / totals['n']:.4f} logloss={totals['logloss'] / totals['n']:.5f}")
print(f"steps={STEPS} seconds={seconds:.3f} samples={STEPS * BATCH}")
