"""Probabilistic load forecasts: an LSTM encoder-decoder with Gaussian likelihood (DeepAR)."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "decoder": "a decoder that runs one horizon step at a time although the targets are given",
    "windows": "windows cut and scaled one by one in the main process",
    "horizons": "the error of each horizon step read from the device in every step",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, CONTEXT, HORIZON, HIDDEN = (512, 168, 96, 256) if GPU else (4, 12, 6, 16)
SERIES, HOURS = (370, 8760 * 2) if GPU else (8, 400)
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
LENGTH = CONTEXT + HORIZON


def electricity():
    rng = np.random.default_rng(0)
    hour = np.arange(HOURS)
    daily = np.sin(2 * np.pi * (hour[None] / 24 + rng.random((SERIES, 1))))
    weekly = np.sin(2 * np.pi * (hour[None] / 168 + rng.random((SERIES, 1))))
    level = rng.lognormal(3, 1, (SERIES, 1))
    load = level * (2 + daily + 0.3 * weekly + 0.2 * rng.standard_normal((SERIES, HOURS)))
    angles = 2 * np.pi * np.stack([hour / 24, hour / 168], 1)
    covariates = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    return load.astype(np.float32), covariates.astype(np.float32)


class WindowDataset(Dataset):
    def __init__(self, load, covariates, index):
        self.load, self.covariates, self.index = load, covariates, index

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        series, start = self.index[i]
        values = self.load[series, start : start + LENGTH + 1]  # fault: windows
        scale = np.abs(values[:CONTEXT]).mean() + 1  # fault: windows
        values = values / scale
        hourly = self.covariates[start + 1 : start + LENGTH + 1]
        inputs = np.concatenate([values[:-1, None], hourly], axis=1)  # fault: windows
        target = values[CONTEXT + 1 :]
        return torch.from_numpy(inputs), torch.from_numpy(target), int(series)


def loader_batches(load, covariates, index):
    loader = DataLoader(
        WindowDataset(load, covariates, index), batch_size=BATCH, shuffle=True, drop_last=True
    )
    while True:
        for inputs, target, series in loader:  # fault: windows
            yield inputs.to(device), target.to(device), series.to(device)


def device_batches(load, covariates, index):
    load = torch.from_numpy(load).to(device)
    covariates = torch.from_numpy(covariates).to(device)
    index = torch.from_numpy(index).to(device)
    offsets = torch.arange(LENGTH + 1, device=device)
    while True:
        order = torch.randperm(len(index), device=device)
        for rows in order[: len(order) // BATCH * BATCH].split(BATCH):
            series, start = index[rows].unbind(1)
            hours = start[:, None] + offsets
            values = load[series[:, None], hours]
            values = values / (values[:, :CONTEXT].abs().mean(1, keepdim=True) + 1)
            inputs = torch.cat([values[:, :-1, None], covariates[hours[:, 1:]]], 2)
            yield inputs, values[:, CONTEXT + 1 :], series


class DeepAR(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(SERIES, 16)
        self.encoder = nn.LSTM(5 + 16, HIDDEN, num_layers=2, batch_first=True)
        self.decoder = nn.LSTM(5 + 16, HIDDEN, num_layers=2, batch_first=True)
        self.head = nn.Linear(HIDDEN, 2)

    def forward(self, inputs, series):
        static = self.embed(series)[:, None].expand(-1, LENGTH, -1)
        x = torch.cat([inputs, static], 2)
        past, future = x[:, :CONTEXT], x[:, CONTEXT:]
        _, state = self.encoder(past)
        if "decoder" in on:
            params = []
            for t in range(HORIZON):
                out, state = self.decoder(future[:, t : t + 1], state)  # fault: decoder
                params.append(self.head(out))  # fault: decoder
            mu, sigma = torch.cat(params, 1).float().unbind(2)
        else:
            out, _ = self.decoder(future, state)
            mu, sigma = self.head(out).float().unbind(2)
        return mu, nn.functional.softplus(sigma) + 1e-3


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
load, covariates = electricity()
starts = np.arange(0, HOURS - LENGTH - 1, 24)
index = np.stack(np.meshgrid(np.arange(SERIES), starts, indexing="ij"), -1).reshape(-1, 2)
make = loader_batches if "windows" in on else device_batches
batches = make(load, covariates, index)

model = DeepAR().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=GPU)
scaler = torch.amp.GradScaler("cuda", enabled=GPU)
mae = [0.0] * HORIZON if "horizons" in on else torch.zeros(HORIZON, device=device)


def train_step():
    inputs, target, series = next(batches)
    with torch.autocast("cuda", torch.float16, enabled=GPU):
        mu, sigma = model(inputs, series)
    loss = (torch.log(sigma) + 0.5 * ((target - mu) / sigma) ** 2).mean()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 10.0)
    scaler.step(optimizer)
    scaler.update()
    error = (mu.detach() - target).abs()
    if "horizons" in on:
        for h in range(HORIZON):
            mae[h] += error[:, h].mean().item()  # fault: horizons
    else:
        mae.add_(error.mean(0))


for _ in range(WARMUP):
    train_step()
if GPU:
    torch.cuda.synchronize()
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < SECONDS or steps < MIN_STEPS:
    train_step()
    steps += 1
if GPU:
    torch.cuda.synchronize()
seconds = time.perf_counter() - begin

curve = torch.as_tensor(mae).cpu() / (steps + WARMUP)
print(f"MAE first hour {curve[0]:.3f}, last hour {curve[-1]:.3f}")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
