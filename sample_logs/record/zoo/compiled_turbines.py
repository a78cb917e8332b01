"""Power of wind turbines from weather tables: a gated MLP trained with torch.compile."""

import sys
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "discarded": "the original model in the loop, because the result of torch.compile is thrown away",
    "rows": "rows of a DataFrame looked up one by one",
    "norms": "norms of all weights and gradients read one by one in each step",
}
on = set(sys.argv[1:])

FEATURES, WIDTH, DEPTH, BATCH = 12, 256, 4, 128
WARMUP, STEPS = 12, 80


class GatedBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.gate = nn.Linear(WIDTH, WIDTH)
        self.scale = nn.Parameter(torch.full((WIDTH,), 0.1))

    def forward(self, x, noise):
        h = self.norm(x)
        v = self.value(h)
        v = v * torch.tanh(F.softplus(v))
        h = v * torch.sigmoid(self.gate(h)) + 0.02 * torch.sin(3.0 * v)
        h = h * (1 + noise) - 0.1 * F.relu(-h) ** 2
        return x + self.scale * h * torch.rsqrt(1 + h * h)


class PowerCurve(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(GatedBlock() for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x, noise):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x, noise)  # fault: discarded
        mean, log_var = self.head(x).unbind(-1)
        return mean, log_var.clamp(-6, 6)


class Weather(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.x = torch.tensor(frame.drop(columns="power").to_numpy(np.float32))
        self.y = torch.tensor(frame["power"].to_numpy(np.float32))

    def __len__(self):
        return len(self.frame)

    def __getitems__(self, indices):
        if "rows" in on:
            return [self.frame.iloc[i] for i in indices]  # fault: rows
        return indices

    def collate(self, batch):
        if "rows" in on:
            table = torch.tensor(
                np.stack([row.to_numpy(np.float32) for row in batch])
            )  # fault: rows
            return table[:, :-1], table[:, -1]
        return self.x[batch], self.y[batch]


def weight_norms(model):
    norms = {}
    for name, p in model.named_parameters():
        norms[f"weight/{name}"] = p.norm().item()  # fault: norms
        norms[f"grad/{name}"] = p.grad.norm().item()  # fault: norms
        norms[f"ratio/{name}"] = (p.grad.norm() / (p.norm() + 1e-8)).item()  # fault: norms
    return norms


rng = np.random.default_rng(0)
frame = pd.DataFrame(
    rng.normal(size=(4096, FEATURES)), columns=[f"sensor_{i}" for i in range(FEATURES)]
)
frame["power"] = np.tanh(frame["sensor_0"] ** 2 + 0.3 * frame["sensor_1"])

torch.manual_seed(0)
weather = Weather(frame)
loader = DataLoader(
    weather, batch_size=BATCH, shuffle=True, drop_last=True, collate_fn=weather.collate
)
model = PowerCurve()
if "discarded" in on:
    torch.compile(model)
else:
    model.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

step, started = 0, 0.0
while step < WARMUP + STEPS:
    for x, y in loader:
        if step == WARMUP:
            started = time.perf_counter()
        mean, log_var = model(x, 0.05 * torch.randn(BATCH, WIDTH))  # fault: discarded
        loss = (0.5 * (log_var + (y - mean) ** 2 * torch.exp(-log_var))).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if "norms" in on or step % 40 == 0:
            logged = weight_norms(model)  # fault: norms
        optimizer.step()
        if step % 40 == 0:
            print(f"{step}: nll {loss.item():.4f}, stem {logged['weight/stem.weight']:.3f}")
        step += 1
        if step == WARMUP + STEPS:
            break

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
