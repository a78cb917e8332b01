"""Day-ahead forecast of electricity loads with a transformer encoder and accelerate."""

import math
import sys
import time

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "frame": "windows cut from a DataFrame by column names for each sample",
    "weights": "attention weights requested and thrown away",
    "running": "metrics of all predictions so far computed again in every step",
}
on = set(sys.argv[1:])

CONTEXT, HORIZON, BATCH = 96, 24, 16
DIM, HEADS, LAYERS = 64, 8, 2
WARMUP, STEPS = 6, 80
TARGETS = ["north", "south", "east", "west"]
EXTRAS = ["temperature", "wind", "hour_sin", "hour_cos"]


def load_table(hours=3000):
    rng = np.random.default_rng(0)
    t = np.arange(hours)
    df = pd.DataFrame(index=pd.date_range("2021-01-01", periods=hours, freq="h"))
    for i, name in enumerate(TARGETS):
        df[name] = np.sin(2 * np.pi * (t + 3 * i) / 24) + 0.2 * rng.standard_normal(hours)
    df["temperature"] = np.sin(2 * np.pi * t / 8760) + 0.1 * rng.standard_normal(hours)
    df["wind"] = rng.gamma(2.0, 0.5, hours)
    df["hour_sin"], df["hour_cos"] = np.sin(2 * np.pi * t / 24), np.cos(2 * np.pi * t / 24)
    return df


class Windows(Dataset):
    def __init__(self, df):
        self.df = df
        self.values = torch.tensor(df[TARGETS + EXTRAS].to_numpy(np.float32))

    def __len__(self):
        return len(self.df) - CONTEXT - HORIZON + 1

    def __getitem__(self, i):
        mid, end = i + CONTEXT, i + CONTEXT + HORIZON
        if "frame" in on:
            past = self.df.iloc[i:mid][TARGETS + EXTRAS].values  # fault: frame
            future = self.df.iloc[mid:end][TARGETS].values  # fault: frame
            x = torch.tensor(past, dtype=torch.float32)  # fault: frame
            return x, torch.tensor(future, dtype=torch.float32)  # fault: frame
        return self.values[i:mid], self.values[mid:end, : len(TARGETS)]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        h = self.norm1(x)
        out, _ = self.attn(h, h, h, need_weights="weights" in on)  # fault: weights
        x = x + out
        return x + self.ff(self.norm2(x))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(len(TARGETS + EXTRAS), DIM)
        self.position = nn.Parameter(torch.randn(CONTEXT, DIM) / math.sqrt(DIM))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, HORIZON * len(TARGETS))

    def forward(self, x):
        h = self.layers(self.embed(x) + self.position)  # fault: weights
        return self.head(self.norm(h[:, -1])).view(-1, HORIZON, len(TARGETS))


class ErrorReport:
    def __init__(self):
        self.errors, self.sizes = [], []

    def update(self, pred, true):
        self.errors.append((pred - true).abs().numpy())
        self.sizes.append((pred.abs() + true.abs()).numpy())

    def compute(self):
        error = np.concatenate(self.errors)  # fault: running
        size = np.concatenate(self.sizes)  # fault: running
        return {
            "mae": error.mean(),
            "smape": 200 * np.mean(error / (size + 1e-8)),  # fault: running
            "p50": np.percentile(error, 50),  # fault: running
            "p90": np.percentile(error, 90),  # fault: running
        }


def main():
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    loader = DataLoader(Windows(load_table()), BATCH, shuffle=True, drop_last=True)
    model = Forecaster()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, WARMUP + STEPS)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    criterion = nn.HuberLoss()
    report = ErrorReport()
    step, started = 0, 0.0
    for x, y in loader:
        if step == WARMUP:
            started = time.perf_counter()
        prediction = model(x)
        loss = criterion(prediction, y)
        accelerator.backward(loss)  # fault: weights
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        report.update(*accelerator.gather_for_metrics((prediction.detach(), y)))
        step += 1
        if "running" in on or step % 40 == 0:
            metrics = report.compute()  # fault: running
            if step % 40 == 0:
                accelerator.print(step, {k: round(float(v), 4) for k, v in metrics.items()})
        if step == WARMUP + STEPS:
            break
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


main()
