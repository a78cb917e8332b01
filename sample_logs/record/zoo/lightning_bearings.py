"""LightningModule that classifies faults of bearings from vibration signals."""

import logging
import math
import sys
import tempfile
import time
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "frequent_validation": "validation on the whole set after every few steps",
    "parameter_norms": "the norm of every parameter and gradient logged in each step",
    "inline_transform": "heavy transforms of the training set in the process that trains",
}
on = set(sys.argv[1:])

warnings.filterwarnings("ignore", module="lightning")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

LENGTH = 512
CLASSES = 5
BATCH_SIZE = 32
STEPS = 100
WARMUP = 10


def envelope(signal, width=8):
    """Moving maximum of the rectified signal."""
    rectified = np.abs(signal)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(rectified, width), 2 * width + 1)
    return windows.max(axis=1)[: len(signal)]


def detrend(signal, order=3):
    t = np.linspace(-1, 1, len(signal))
    return signal - np.polyval(np.polyfit(t, signal, order), t)


class Vibrations(Dataset):
    def __init__(self, size, seed, transformed=False):
        self.rng = np.random.default_rng(seed)
        self.labels = self.rng.integers(CLASSES, size=size)
        t = np.arange(LENGTH) / LENGTH
        self.signals = []
        for label in self.labels:
            carrier = np.sin(2 * math.pi * (40 + 9 * label) * t)
            impacts = (np.modf(t * (3 + 2 * label))[0] < 0.05) * self.rng.normal(2, 0.5)
            self.signals.append(carrier + impacts + self.rng.normal(0, 0.6, LENGTH))
        self.cache = [self.transform(s) for s in self.signals] if transformed else None

    def transform(self, signal):
        clean = detrend(signal)  # fault: inline_transform
        shape = envelope(clean)  # fault: inline_transform
        both = np.stack([clean, shape])
        return (both - both.mean(1, keepdims=True)) / both.std(1, keepdims=True)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        x = self.transform(self.signals[i]) if self.cache is None else self.cache[i]
        return torch.as_tensor(x, dtype=torch.float32), int(self.labels[i])


class BearingNet(L.LightningModule):
    def __init__(self, width=24, depth=4):
        super().__init__()
        layers = [nn.Conv1d(2, width, 7, stride=2, padding=3)]
        for _ in range(depth):
            layers += [nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 5, padding=2)]
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten())
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch, _):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train/loss", loss)
        return loss

    def on_before_optimizer_step(self, _):
        if "parameter_norms" in on:
            for name, p in self.named_parameters():
                weight, grad = p.norm().item(), p.grad.norm().item()  # fault: parameter_norms
                self.log(f"norm/{name}", weight, sync_dist=True)  # fault: parameter_norms
                self.log(f"grad/{name}", grad, sync_dist=True)  # fault: parameter_norms

    def validation_step(self, batch, _):
        x, y = batch
        logits = self(x)  # fault: frequent_validation
        self.log("val/loss", F.cross_entropy(logits, y))
        self.log("val/accuracy", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


class Clock(L.Callback):
    def on_train_batch_start(self, trainer, module, batch, index):
        if trainer.global_step == WARMUP:
            self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def main():
    L.seed_everything(7)
    torch.set_num_threads(1)  # the other core is for the worker
    train_set = Vibrations(BATCH_SIZE * (STEPS + WARMUP), seed=1)
    val_set = Vibrations(192, seed=2, transformed=True)
    workers = 0 if "inline_transform" in on else 1
    train_loader = DataLoader(
        train_set, BATCH_SIZE, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    clock = Clock()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        val_check_interval=5 if "frequent_validation" in on else 1.0,
        num_sanity_val_steps=0,
        callbacks=[clock],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tempfile.mkdtemp(),
    )
    trainer.fit(BearingNet(), train_loader, DataLoader(val_set, 64))  # fault: frequent_validation
    print(f"val accuracy {trainer.callback_metrics['val/accuracy'].item():.3f}")
    print(f"steps={STEPS} seconds={clock.seconds:.3f} samples={STEPS * BATCH_SIZE}")


if __name__ == "__main__":
    main()
