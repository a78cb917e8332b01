"""Transformer forecaster of substation feeders: two days of hours in, the next twelve out."""

import math
import sys
import time

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "frames": "windows and calendar features taken from the data frame for every sample",
    "positions": "the sinusoidal position table filled entry by entry in every forward pass",
    "anomaly": "the anomaly detection of autograd left on",
    "report": "a data frame of errors grouped by feeder in every step",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 32, 5, 60
CONTEXT, HORIZON, FEEDERS, DIM = 48, 12, 8, 64


def load_feeders(hours=24 * 90):
    rng = np.random.default_rng(11)
    index = pd.date_range("2023-01-01", periods=hours, freq="h")
    day = np.sin(2 * np.pi * (index.hour.to_numpy() - 8) / 24)
    week = 1.0 - 0.2 * (index.day_of_week.to_numpy() >= 5)
    frame = pd.DataFrame({"temperature": 8 + 6 * day + rng.normal(0, 1, hours)}, index=index)
    for k in range(FEEDERS):
        frame[f"feeder_{k}"] = (1 + 0.4 * day) * week * (k + 3) + rng.normal(0, 0.2, hours)
    return (frame - frame.mean()) / frame.std()


def calendar(index):
    hour = 2 * np.pi * index.hour.to_numpy() / 24  # fault: frames
    weekday = 2 * np.pi * index.day_of_week.to_numpy() / 7  # fault: frames
    return np.stack([np.sin(hour), np.cos(hour), np.sin(weekday), np.cos(weekday)], axis=1)


class Windows(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.starts = len(frame) - CONTEXT - HORIZON
        if "frames" not in on:
            shared = np.column_stack([frame["temperature"], calendar(frame.index)])
            self.shared = torch.from_numpy(shared).float()
            loads = frame[[f"feeder_{k}" for k in range(FEEDERS)]].to_numpy()
            self.loads = torch.from_numpy(loads).float()

    def __len__(self):
        return self.starts * FEEDERS

    def __getitem__(self, item):
        start, feeder = divmod(item, FEEDERS)
        middle, end = start + CONTEXT, start + CONTEXT + HORIZON
        if "frames" not in on:
            past = self.loads[start:middle, feeder, None]
            x = torch.cat([past, self.shared[start:middle]], dim=1)
            return x, self.loads[middle:end, feeder], feeder
        name = f"feeder_{feeder}"
        past = self.frame[[name, "temperature"]].iloc[start:middle]  # fault: frames
        x = np.concatenate([past.to_numpy(), calendar(past.index)], axis=1)  # fault: frames
        y = self.frame[name].iloc[middle:end].to_numpy(copy=True)  # fault: frames
        return torch.from_numpy(x).float(), torch.from_numpy(y).float(), feeder


class PositionalEncoding(nn.Module):
    def __init__(self, length, dim):
        super().__init__()
        self.length, self.dim = length, dim
        self.register_buffer("table", self.build(), persistent=False)

    def build(self):
        table = torch.zeros(self.length, self.dim)
        for position in range(self.length):
            for i in range(0, self.dim, 2):
                angle = position / 10000 ** (i / self.dim)
                table[position, i] = math.sin(angle)  # fault: positions
                table[position, i + 1] = math.cos(angle)  # fault: positions
        return table

    def forward(self, x):
        table = self.build() if "positions" in on else self.table  # fault: positions
        return x + table.to(x.device)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(6, DIM)
        self.positions = PositionalEncoding(CONTEXT, DIM)
        layer = nn.TransformerEncoderLayer(
            DIM, 4, 4 * DIM, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(CONTEXT * DIM, HORIZON)

    def forward(self, x):
        h = self.encoder(self.positions(self.embed(x)))  # fault: anomaly
        return self.head(h.flatten(1))


def report(pred, target, feeder):
    frame = pd.DataFrame((pred - target).abs().numpy())  # fault: report
    frame["feeder"] = feeder.numpy()
    long = frame.melt(id_vars="feeder", var_name="lead", value_name="error")  # fault: report
    return long.groupby("feeder")["error"].describe()  # fault: report


torch.manual_seed(0)
loader = DataLoader(Windows(load_feeders()), batch_size=BATCH, shuffle=True, drop_last=True)
model = Forecaster()
criterion = nn.HuberLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
torch.autograd.set_detect_anomaly("anomaly" in on)

started = 0.0
for step, (x, y, feeder) in enumerate(loader):
    if step == WARMUP:
        started = time.time()
    if step == WARMUP + STEPS:
        break
    optimizer.zero_grad()
    pred = model(x)
    loss = criterion(pred, y)
    loss.backward()  # fault: anomaly
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if "report" in on or step % 25 == 24:
        errors = report(pred.detach(), y, feeder)  # fault: report
    if step % 25 == 24:
        worst = errors["mean"].idxmax()
        print(f"step {step + 1:3d} loss {loss.item():.4f} worst feeder {worst}")

seconds = time.time() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
