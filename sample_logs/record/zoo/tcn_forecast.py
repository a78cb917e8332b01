# Day-ahead load forecasting with a temporal convolutional network.
# numpy for the data, torch for the network.
import os
import sys
import tempfile
import time

import numpy as np
import torch
from torch import nn

FAULTS = {
    "window_loop": "windows sliced and stacked one at a time in each step",
    "numpy_scaling": "windows standardised one at a time in numpy and converted back",
    "frequent_checkpoints": "a checkpoint saved after every second step",
}
on = set(sys.argv[1:])

HISTORY, HORIZON = 96, 24
REGIONS = 6
BATCH = 192
HIDDEN = 16
N_WARM, N_STEPS = 5, 150


def synthetic_load(hours=10_000, seed=3):
    """Hourly load of a few regions: daily and weekly cycles, a trend and AR(1) noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(hours)[:, None]
    phase = rng.uniform(0, 2 * np.pi, REGIONS)
    daily = np.sin(2 * np.pi * t / 24 + phase)
    weekly = 0.5 * np.sin(2 * np.pi * t / 168 + phase)
    noise = rng.normal(size=(hours, REGIONS)) * 0.2
    for i in range(1, hours):
        noise[i] += 0.7 * noise[i - 1]
    level = rng.uniform(20, 60, REGIONS)
    return (level * (1 + 0.2 * (daily + weekly + noise)) + 1e-4 * t).astype(np.float32).T.copy()


def causal_conv(c_in, c_out, dilation):
    pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
    return nn.Sequential(pad, nn.Conv1d(c_in, c_out, 3, dilation=dilation), nn.ReLU())


class TCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = causal_conv(1, HIDDEN, 1)
        self.rest = nn.ModuleList([causal_conv(HIDDEN, HIDDEN, d) for d in (2, 4, 8, 16)])
        self.out = nn.Linear(HIDDEN, HORIZON)

    def forward(self, x):  # (batch, time)
        h = self.first(x.unsqueeze(1))
        for layer in self.rest:
            h = h + layer(h)
        return self.out(h[:, :, -1])


load = synthetic_load()  # (regions, hours)
windows = torch.from_numpy(load).unfold(1, HISTORY + HORIZON, 1)  # a view, nothing is copied


def sample(regions, starts):
    if "window_loop" in on:
        xs, ys = [], []
        for r, s in zip(regions, starts):
            window = torch.tensor(load[r, s : s + HISTORY + HORIZON])  # fault: window_loop
            xs.append(window[:HISTORY])  # fault: window_loop
            ys.append(window[HISTORY:])  # fault: window_loop
        return torch.stack(xs), torch.stack(ys)  # fault: window_loop
    w = windows[regions, starts]
    return w[:, :HISTORY], w[:, HISTORY:]


def standardise(x, y):
    """Scale each window by the mean and deviation of its history."""
    if "numpy_scaling" in on:
        scaled_x, scaled_y = [], []
        for history, future in zip(x.numpy(), y.numpy()):
            mean = history.mean()  # fault: numpy_scaling
            std = history.std() + 1e-5  # fault: numpy_scaling
            scaled_x.append((history - mean) / std)  # fault: numpy_scaling
            scaled_y.append((future - mean) / std)  # fault: numpy_scaling
        return torch.from_numpy(np.array(scaled_x)), torch.from_numpy(np.array(scaled_y))
    std, mean = torch.std_mean(x, dim=1, keepdim=True, correction=0)
    std = std + 1e-5
    return (x - mean) / std, (y - mean) / std


def save_checkpoint(folder, net, optimizer, step):
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state, os.path.join(folder, "last.pt"))  # fault: frequent_checkpoints


def train(folder):
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    net = TCN()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    save_every = 2 if "frequent_checkpoints" in on else 50
    history = torch.zeros(N_WARM + N_STEPS)
    for step in range(N_WARM + N_STEPS):
        if step == N_WARM:
            begin = time.perf_counter()
        regions = rng.integers(0, REGIONS, BATCH)
        starts = rng.integers(0, windows.shape[1], BATCH)
        x, y = standardise(*sample(regions, starts))
        loss = nn.functional.l1_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history[step] = loss.detach()
        if (step + 1) % save_every == 0:
            save_checkpoint(folder, net, optimizer, step)
    return time.perf_counter() - begin, history


with tempfile.TemporaryDirectory() as folder:
    seconds, history = train(folder)
print("loss %.5f -> %.5f" % (history[:10].mean(), history[-10:].mean()))
print("steps=%d seconds=%.3f samples=%d" % (N_STEPS, seconds, N_STEPS * BATCH))
