"""TabNet on a frame of loan applications: which of them default."""

import sys
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "encode": "text columns looked up in their vocabularies in every batch",
    "onehot": "categories one-hot encoded and multiplied by the embedding table",
    "cutoff": "a search of the best F1 cutoff over the epoch's predictions in every step",
}
on = set(sys.argv[1:])

BATCH = 256
WARMUP, STEPS = 5, 140
CUTOFF_EVERY = 1 if "cutoff" in on else STEPS
NUMERIC = ["income", "amount", "age", "rate", "months", "late_30d", "late_90d", "utilization"]
CARDINALITY = {"employer": 1200, "zip3": 600, "purpose": 14, "branch": 180, "agent": 400}
TARGET = "default"


def read_frame(rows=20_000):
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({name: rng.gamma(2.0, 2.0, rows) for name in NUMERIC})
    for name, size in CARDINALITY.items():
        frame[name] = [f"{name}_{i}" for i in rng.integers(0, size, rows)]
    risk = frame["late_90d"] - 0.3 * frame["income"] + rng.normal(0, 1, rows)
    frame[TARGET] = (risk > risk.quantile(0.8)).astype("float32")
    return frame


class Frame:
    """Shuffled batches of numbers, codes and targets."""

    def __init__(self, frame):
        scaled = np.log1p(frame[NUMERIC])
        frame[NUMERIC] = ((scaled - scaled.mean()) / scaled.std()).astype("float32")
        self.frame = frame
        self.vocabularies = {
            name: {value: code for code, value in enumerate(sorted(frame[name].unique()))}
            for name in CARDINALITY
        }
        if "encode" not in on:
            self.tensors = self.to_tensors(frame)

    def to_tensors(self, part):
        codes = [part[name].map(self.vocabularies[name]) for name in CARDINALITY]  # fault: encode
        numbers, target = part[NUMERIC].to_numpy("float32").copy(), part[TARGET].to_numpy().copy()
        return tuple(map(torch.from_numpy, (numbers, np.stack(codes, axis=1), target)))

    def __iter__(self):
        for rows in torch.randperm(len(self.frame)).split(BATCH)[:-1]:
            if "encode" in on:
                yield self.to_tensors(self.frame.iloc[rows.numpy()])  # fault: encode
            else:
                yield tuple(tensor[rows] for tensor in self.tensors)


class Embedder(nn.Module):
    def __init__(self, sizes, width=8):
        super().__init__()
        self.sizes, self.out = sizes, width * len(sizes)
        self.register_buffer("offsets", torch.tensor([0, *np.cumsum(sizes)[:-1].tolist()]))
        self.table = nn.Embedding(sum(sizes), width)

    def forward(self, codes):
        if "onehot" not in on:
            return self.table(codes + self.offsets).flatten(1)
        parts = []
        for column, weight in enumerate(self.table.weight.split(self.sizes)):
            hot = F.one_hot(codes[:, column], self.sizes[column]).float()  # fault: onehot
            parts.append(hot @ weight)  # fault: onehot
        return torch.cat(parts, 1)


def sparsemax(z):
    ordered = z.sort(1, descending=True).values
    ranks = torch.arange(1, z.shape[1] + 1)
    sums = ordered.cumsum(1) - 1
    size = (ranks * ordered > sums).sum(1, keepdim=True)
    return F.relu(z - sums.gather(1, size - 1) / size)


class GLUBlock(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc, self.bn = nn.Linear(n_in, 2 * n_out, bias=False), nn.BatchNorm1d(2 * n_out)

    def forward(self, x):
        return F.glu(self.bn(self.fc(x)))


class TabNet(nn.Module):
    def __init__(self, sizes, n_d=64, n_steps=3, gamma=1.3):
        super().__init__()
        self.embed, self.gamma = Embedder(sizes), gamma
        n_in = self.embed.out + len(NUMERIC)
        self.bn = nn.BatchNorm1d(n_in)
        self.shared = GLUBlock(n_in, 2 * n_d)
        self.steps = nn.ModuleList(GLUBlock(2 * n_d, 2 * n_d) for _ in range(n_steps + 1))
        self.attention = nn.ModuleList(nn.Linear(n_d, n_in) for _ in range(n_steps))
        self.head = nn.Linear(n_d, 1)

    def forward(self, numbers, codes):
        x = self.bn(torch.cat([numbers, self.embed(codes)], 1))
        prior, total = torch.ones_like(x), 0.0
        _, a = self.steps[0](self.shared(x)).chunk(2, 1)
        for attention, step in zip(self.attention, self.steps[1:]):
            mask = sparsemax(attention(a) * prior)
            prior = prior * (self.gamma - mask)
            hidden = self.shared(mask * x)
            d, a = ((step(hidden) + hidden) * 0.7071).chunk(2, 1)
            total = total + F.relu(d)
        return self.head(total).squeeze(1)


def best_cutoff(scores, targets):
    scores, targets = np.concatenate(scores), np.concatenate(targets) > 0.5
    best = (0.0, 0.5)
    for cutoff in np.arange(0.01, 1.0, 0.01):
        selected = scores > cutoff  # fault: cutoff
        hits = (selected & targets).sum()  # fault: cutoff
        best = max(best, (2 * hits / (selected.sum() + targets.sum()), cutoff))  # fault: cutoff
    return best


torch.manual_seed(7)
data = Frame(read_frame())
model = TabNet([len(vocabulary) for vocabulary in data.vocabularies.values()])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2, fused=True)
step, started = 0, 0.0
while step < WARMUP + STEPS:
    scores, targets = [], []
    for numbers, codes, y in data:
        if step == WARMUP:
            started = time.perf_counter()
        logits = model(numbers, codes)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        scores.append(logits.detach().sigmoid().numpy())
        targets.append(y.numpy())
        if step > WARMUP and (step - WARMUP) % CUTOFF_EVERY == 0:
            f1, cutoff = best_cutoff(scores, targets)  # fault: cutoff
        if step == WARMUP + STEPS:
            break

seconds = time.perf_counter() - started
print(f"loss {loss.item():.3f}, F1 {f1:.3f} at {cutoff:.2f}")
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
