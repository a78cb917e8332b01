"""An LSTM autoencoder on streams of pump sensors, in Lightning: large errors are anomalies."""

import sys
import time
import warnings

import lightning as L
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "anomaly": "autograd's anomaly detection left on in the trainer",
    "windows": "windows cut out of a pandas frame and scaled whenever one is read",
    "quantile": "the alarm thresholds computed from all errors so far in every step",
}
on = set(sys.argv[1:])

SENSORS = ["flow", "inlet", "outlet", "current", "speed", "temp", "oil", "vib_x", "vib_y", "vib_z"]
WINDOW, STRIDE = 40, 8
BATCH = 32
WARMUP, STEPS = 4, 60


def read_streams(rows=30_000):
    rng = np.random.default_rng(2)
    t = np.arange(rows)
    columns = {}
    for i, name in enumerate(SENSORS):
        wave = np.sin(2 * np.pi * t / (30 + 11 * i)) * (1 + i) + rng.normal(0, 0.3, rows)
        columns[name] = 10 * i + wave
    index = pd.date_range("2024-03-01", periods=rows, freq="s")
    return pd.DataFrame(columns, index=index)


class Windows(Dataset):
    def __init__(self, frame):
        self.frame = frame
        self.mean, self.std = frame.mean().values, frame.std().values
        if "windows" not in on:
            scaled = ((frame - self.mean) / self.std).to_numpy("float32").copy()
            self.scaled = torch.from_numpy(scaled)

    def __len__(self):
        return (len(self.frame) - WINDOW) // STRIDE + 1

    def __getitem__(self, i):
        start = i * STRIDE
        if "windows" not in on:
            return self.scaled[start : start + WINDOW]
        window = self.frame.iloc[start : start + WINDOW].values  # fault: windows
        window = (window - self.mean) / self.std  # fault: windows
        return torch.tensor(window, dtype=torch.float32)  # fault: windows


class Autoencoder(nn.Module):
    def __init__(self, hidden=64, latent=16):
        super().__init__()
        self.encoder = nn.LSTM(len(SENSORS), hidden, batch_first=True)
        self.squeeze, self.start = nn.Linear(hidden, latent), nn.Linear(latent, hidden)
        self.decoder = nn.LSTM(latent, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(SENSORS))

    def forward(self, x):
        _, (h, _) = self.encoder(x)  # fault: anomaly
        z = self.squeeze(h[-1])
        h0 = self.start(z)[None].tanh()
        repeated = z[:, None].expand(-1, x.shape[1], -1)
        y, _ = self.decoder(repeated, (h0, torch.zeros_like(h0)))  # fault: anomaly
        return self.out(y)


class PumpModule(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = Autoencoder()
        self.errors = []
        self.threshold = None

    def training_step(self, batch, batch_idx):
        error = (self.model(batch) - batch).square()
        loss = error.mean()
        self.log("train/loss", loss)
        self.errors.append(error.detach().flatten(0, 1))
        if "quantile" in on:
            self.threshold = self.alarm_thresholds()  # fault: quantile
            self.log("train/threshold", self.threshold.mean())
        return loss

    def alarm_thresholds(self):
        """Return the error of each sensor that one of 200 exceeds."""
        errors = torch.cat(self.errors).numpy()  # fault: quantile
        return np.quantile(errors, 0.995, axis=0)  # fault: quantile

    def on_train_end(self):
        self.threshold = self.alarm_thresholds()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


class Stopwatch(L.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if trainer.global_step == WARMUP:
            self.started = time.perf_counter()
        elif trainer.global_step == WARMUP + STEPS:
            self.seconds = time.perf_counter() - self.started


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    L.seed_everything(0, verbose=False)
    loader = DataLoader(Windows(read_streams()), BATCH, shuffle=True, drop_last=True)
    stopwatch = Stopwatch()
    module = PumpModule()
    trainer = L.Trainer(
        accelerator="cpu",
        max_steps=WARMUP + STEPS,
        detect_anomaly="anomaly" in on,  # fault: anomaly
        callbacks=[stopwatch],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader)
    print("alarm above", dict(zip(SENSORS, module.threshold.round(2).tolist())))
    print(f"steps={STEPS} seconds={stopwatch.seconds:.4f} samples={STEPS * BATCH}")
