"""Anomalies of valve sensors: a VAE learns normal windows, its error flags the others."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import MultivariateNormal, kl_divergence

FAULTS = {
    "lists": "each batch made from a list of NumPy windows, number by number",
    "covariance": "a posterior with a full covariance matrix, of which the diagonal alone is used",
    "rescaled": "the whole series standardised anew for every batch",
}
on = set(sys.argv[1:])

CHANNELS, WINDOW, LATENT = 6, 64, 32
BATCH = 256
WARMUP, STEPS = 5, 80
DECAY = 1e-4


def sensor_series(length=40000):
    rng = np.random.default_rng(5)
    t = np.arange(length)[:, None] / np.array([25, 40, 60, 90, 130, 200])
    series = np.sin(t) + 0.1 * rng.standard_normal((length, CHANNELS))
    return series.astype(np.float32)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        size = CHANNELS * WINDOW
        self.encoder = nn.Sequential(
            nn.Linear(size, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU()
        )
        self.mu = nn.Linear(256, LATENT)
        self.logvar = nn.Linear(256, LATENT)
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 256), nn.ReLU(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, size)
        )

    def forward(self, x):
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        std = torch.exp(0.5 * logvar)
        if "covariance" in on:
            posterior = MultivariateNormal(mu, torch.diag_embed(std**2))  # fault: covariance
            prior = MultivariateNormal(torch.zeros(LATENT), torch.eye(LATENT))
            kl = kl_divergence(posterior, prior)  # fault: covariance
            z = posterior.rsample()  # fault: covariance
        else:
            kl = 0.5 * (mu**2 + std**2 - 1 - logvar).sum(1)
            z = mu + std * torch.randn_like(std)
        return self.decoder(z), kl


def standardised_windows(series):
    scaled = (series - series.mean(0)) / series.std(0)  # fault: rescaled
    return np.lib.stride_tricks.sliding_window_view(scaled, WINDOW, axis=0)


def batches(series, rng):
    windows = standardised_windows(series)
    starts = len(windows)
    while True:
        order = rng.permutation(starts)
        for i in range(0, starts - BATCH + 1, BATCH):
            chosen = order[i : i + BATCH]
            if "rescaled" in on:
                windows = standardised_windows(series)  # fault: rescaled
            if "lists" in on:
                batch = torch.tensor([windows[j] for j in chosen])  # fault: lists
            else:
                batch = torch.from_numpy(windows[chosen])
            yield batch.flatten(1)


def train(model, series):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=DECAY, fused=True)
    source = batches(series, np.random.default_rng(1))
    started = 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            started = time.perf_counter()
        x = next(source)
        reconstruction, kl = model(x)  # fault: covariance
        error = ((reconstruction - x) ** 2).sum(1)
        loss = (error + 0.1 * kl).mean()
        optimizer.zero_grad()
        loss.backward()  # fault: covariance
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.2f} error {error.mean().item():.2f}")
    return time.perf_counter() - started


@torch.no_grad()
def flag(model, series, quantile=0.99):
    model.eval()
    source = batches(series, np.random.default_rng(2))
    normal = next(source)
    broken = next(source) + 0.8
    errors = [((model(x)[0] - x) ** 2).sum(1) for x in (normal, broken)]
    threshold = torch.quantile(errors[0], quantile)
    return (errors[1] > threshold).float().mean().item()


def main():
    torch.manual_seed(0)
    series = sensor_series()
    model = VAE()
    seconds = train(model, series)
    print(f"flagged {flag(model, series):.0%} of the broken windows")
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
