"""Concentrations from noisy spectra: a 1-d convolutional network trained with Lightning."""

import sys
import tempfile
import time
import warnings

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "transform_in_main": "a slow transform without DataLoader workers",
    "metrics_every_step": "a metric per substance computed, read and logged every step",
    "frequent_checkpoints": "a checkpoint every second step",
}
on = set(sys.argv[1:])
warnings.filterwarnings("ignore")

SUBSTANCES = 8
POINTS = 256
BATCH, WARMUP, STEPS = 16, 10, 100


class Spectra(Dataset):
    """Measured spectra: peaks on a drifting baseline, smoothed and corrected when read."""

    def __init__(self, n: int):
        rng = np.random.default_rng(0)
        grid = np.linspace(0, 1, POINTS)
        centers = rng.uniform(0.1, 0.9, SUBSTANCES)
        pure = np.exp(-(((grid - centers[:, None]) / 0.03) ** 2))
        self.amounts = rng.uniform(0, 1, (n, SUBSTANCES)).astype(np.float32)
        drift = rng.normal(size=(n, 3)) @ np.stack([grid**k for k in range(3)])
        self.raw = self.amounts @ pure + drift + 0.05 * rng.normal(size=(n, POINTS))
        self.grid = grid

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, i):
        y = np.convolve(self.raw[i], np.hanning(9) / 4, mode="same")  # fault: transform_in_main
        keep = np.ones(POINTS, dtype=bool)
        for _ in range(3):  # baseline: a parabola through the points that are below it
            fit = np.polyfit(self.grid[keep], y[keep], 2)  # fault: transform_in_main
            base = np.polyval(fit, self.grid)  # fault: transform_in_main
            keep = y <= base + 0.05
        x = ((y - base) / (y - base).std()).astype(np.float32)
        return torch.from_numpy(x)[None], torch.from_numpy(self.amounts[i])


class SpectraModule(L.LightningModule):
    def __init__(self, width: int = 32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, width, 9, stride=2, padding=4),
            nn.GELU(),
            nn.Conv1d(width, 2 * width, 7, stride=2, padding=3),
            nn.GELU(),
            nn.Conv1d(2 * width, 2 * width, 5, padding=2),
            nn.GELU(),
            nn.AdaptiveAvgPool1d(16),
            nn.Flatten(),
            nn.Linear(32 * width, 256),
            nn.GELU(),
            nn.Linear(256, SUBSTANCES),
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        pred = self.net(x)
        loss = nn.functional.mse_loss(pred, y)
        if "metrics_every_step" in on:
            for k in range(SUBSTANCES):
                error = (pred[:, k] - y[:, k]).abs()
                mean, worst = error.mean().item(), error.max().item()  # fault: metrics_every_step
                self.log(f"mae/{k}", mean, on_step=True)  # fault: metrics_every_step
                self.log(f"worst/{k}", worst, on_step=True)  # fault: metrics_every_step
            self.log("loss", loss.item(), on_step=True)  # fault: metrics_every_step
        elif batch_idx % 50 == 0:
            self.log("loss", loss.detach(), on_step=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, fused=True)


class Stopwatch(Callback):
    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if batch_idx == WARMUP:
            self.begin = time.perf_counter()

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx == WARMUP + STEPS - 1:
            self.seconds = time.perf_counter() - self.begin


def main():
    L.seed_everything(0, verbose=False)
    torch.set_num_threads(1)
    data = Spectra((WARMUP + STEPS) * BATCH)
    if "transform_in_main" in on:
        loader = DataLoader(data, BATCH, shuffle=True)  # fault: transform_in_main
    else:
        loader = DataLoader(data, BATCH, shuffle=True, num_workers=1, prefetch_factor=8)

    with tempfile.TemporaryDirectory() as folder:
        every = 2 if "frequent_checkpoints" in on else 100
        watch = Stopwatch()
        saver = ModelCheckpoint(folder, every_n_train_steps=every)  # fault: frequent_checkpoints
        trainer = L.Trainer(
            max_epochs=1,
            accelerator="cpu",
            logger=CSVLogger(folder),
            log_every_n_steps=1 if "metrics_every_step" in on else 50,  # fault: metrics_every_step
            callbacks=[watch, saver],
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(SpectraModule(), loader)
        print(f"last loss {trainer.callback_metrics['loss'].item():.5f}")
    print(f"steps={STEPS} seconds={watch.seconds:.3f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
