"""Beats of a Holter ECG sorted into the five AAMI classes: a convolutional stem and an LSTM."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "symbols": "weights of the classes counted from all annotations in every step",
    "cells": "an LSTM stepped through time cell by cell in Python",
    "detrend": "the baseline of each beat fitted anew whenever the beat is drawn",
}
on = set(sys.argv[1:])

SYMBOLS = np.array(["F", "N", "Q", "S", "V"])
LENGTH, BATCH = 180, 48
WARMUP, STEPS, EPOCH = 5, 80, 20


def make_beats(count=40000):
    rng = np.random.default_rng(7)
    labels = rng.choice(5, count, p=[0.03, 0.75, 0.02, 0.08, 0.12])
    t = np.linspace(-1, 1, LENGTH)
    shapes = [np.exp(-((t - 0.1 * k) ** 2) / (0.002 * (k + 1))) for k in range(5)]
    drift = rng.standard_normal((count, 3)) @ np.stack([t, t**2, t**3])
    noise = 0.05 * rng.standard_normal((count, LENGTH), dtype=np.float32)
    return np.stack(shapes)[labels] + drift + noise, SYMBOLS[labels].tolist()


def remove_baseline(beats):
    """`beats`: samples of one beat, or of many, one column each."""
    t = np.linspace(-1, 1, LENGTH)
    coefficients = np.polyfit(t, beats, 3)  # fault: detrend
    return beats - np.vander(t, 4) @ coefficients  # fault: detrend


def class_weights(symbols):
    names, counts = np.unique(symbols, return_counts=True)  # fault: symbols
    weights = len(symbols) / (len(names) * counts)
    return torch.as_tensor(weights, dtype=torch.float32)


class Beats(Dataset):
    def __init__(self, beats, symbols):
        if "detrend" not in on:
            beats = remove_baseline(beats.T).T
        self.beats = np.ascontiguousarray(beats, dtype=np.float32)
        self.labels = np.searchsorted(SYMBOLS, symbols)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        beat = self.beats[index]
        if "detrend" in on:
            beat = remove_baseline(beat).astype(np.float32)  # fault: detrend
        return beat, self.labels[index]


class CellLSTM(nn.Module):
    def __init__(self, inputs, hidden):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(inputs, hidden)

    def forward(self, x):
        h = x.new_zeros(x.size(0), self.hidden)
        c = x.new_zeros(x.size(0), self.hidden)
        outputs = []
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t], (h, c))  # fault: cells
            outputs.append(h)
        return torch.stack(outputs, 1), (h, c)


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 48, 7, stride=2, padding=3)
        self.conv2 = nn.Conv1d(48, 64, 5, stride=2, padding=2)
        if "cells" in on:
            self.lstm = CellLSTM(64, 80)
        else:
            self.lstm = nn.LSTM(64, 80, batch_first=True)
        self.out = nn.Linear(80, 5)

    def forward(self, x):
        x = F.relu(self.conv1(x.unsqueeze(1)))
        x = F.relu(self.conv2(x))
        outputs, _ = self.lstm(x.transpose(1, 2))  # fault: cells
        return self.out(outputs.mean(1))


beats, symbols = make_beats()
loader = DataLoader(Beats(beats, symbols), batch_size=BATCH, shuffle=True, drop_last=True)
torch.manual_seed(0)
model = BeatNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)
weights = class_weights(symbols)

confusion = torch.zeros(25, dtype=torch.long)
started = 0.0
for step, (signal, target) in enumerate(loader):
    if step == WARMUP:
        started = time.perf_counter()
    if "symbols" in on:
        weights = class_weights(symbols)  # fault: symbols
    optimizer.zero_grad()
    logits = model(signal)  # fault: cells
    loss = F.cross_entropy(logits, target, weight=weights)
    loss.backward()  # fault: cells
    optimizer.step()

    confusion += torch.bincount(target * 5 + logits.argmax(1), minlength=25)
    if (step + 1) % EPOCH == 0:
        table = confusion.view(5, 5)
        recall = table.diag() / table.sum(1).clamp(min=1)
        print(f"{step + 1:4d} loss {loss.item():.3f} mean recall {recall.mean():.3f}")
        confusion.zero_()
    if step + 1 == WARMUP + STEPS:
        break

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
