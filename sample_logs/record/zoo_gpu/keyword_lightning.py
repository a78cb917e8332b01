"""Keyword spotting with Lightning: log-mel frames, SpecAugment and a transformer encoder."""

import random
import sys
import time

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torchmetrics.classification as tm
from torch.utils.data import DataLoader, Dataset, RandomSampler

FAULTS = {
    "features": "log-mel features of one clip at a time in the loader workers",
    "masking": "SpecAugment in a loop over the clips, with a read of each random start",
    "metrics": "four separate metrics computed and logged in every training step",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
BATCH, RATE, CLIPS, WORKERS = (256, 16000, 4096, 2) if GPU else (4, 4000, 64, 2)
WIDTH, LAYERS, HEADS, MELS = (512, 6, 8, 64) if GPU else (32, 1, 2, 16)
N_FFT, HOP, CLASSES, MASK = 400, 160, 35, 12
WARMUP, SECONDS = 12, 1.0


def mel_filters():
    top = 2595 * np.log10(1 + RATE / 2 / 700)
    hertz = 700 * (10 ** (np.linspace(0, top, MELS + 2) / 2595) - 1)
    bins = np.linspace(0, RATE / 2, N_FFT // 2 + 1)[:, None]
    low, mid, high = hertz[:-2], hertz[1:-1], hertz[2:]
    filters = np.minimum((bins - low) / (mid - low), (high - bins) / (high - mid))
    return torch.from_numpy(np.maximum(filters, 0).astype(np.float32))


def log_mel(wave, window, filters):
    """Log-mel frames, `(..., frames, MELS)`, of 16-bit waves."""
    wave = wave.float() / 32768
    spectrum = torch.stft(wave, N_FFT, HOP, window=window, return_complex=True)
    power = torch.view_as_real(spectrum).square().sum(-1)
    return (power.transpose(-1, -2) @ filters).clamp(min=1e-6).log()


class Clips(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.waves = rng.integers(-8000, 8000, (CLIPS, RATE), dtype=np.int16)
        self.labels = rng.integers(0, CLASSES, CLIPS)
        self.window, self.filters = torch.hann_window(N_FFT), mel_filters()

    def __len__(self):
        return CLIPS

    def __getitem__(self, index):
        wave = torch.from_numpy(np.roll(self.waves[index], random.randint(-RATE // 10, RATE // 10)))
        if "features" in on:
            wave = log_mel(wave, self.window, self.filters)  # fault: features
        return wave, int(self.labels[index])


class KeywordModule(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(N_FFT))
        self.register_buffer("filters", mel_filters())
        self.project = nn.Linear(MELS, WIDTH)
        self.position = nn.Parameter(torch.zeros(1, RATE // HOP + 1, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)
        args = {"num_classes": CLASSES}
        self.metrics = nn.ModuleDict(
            {
                "accuracy": tm.MulticlassAccuracy(**args),
                "precision": tm.MulticlassPrecision(**args),
                "recall": tm.MulticlassRecall(**args),
                "f1": tm.MulticlassF1Score(**args),
            }
        )
        self.register_buffer("correct", torch.zeros((), dtype=torch.long), persistent=False)

    def features(self, batch):
        if "features" in on:
            return batch
        with torch.autocast(self.device.type, enabled=False):
            return log_mel(batch, self.window, self.filters)

    def mask(self, mel):
        if "masking" in on:
            for clip in mel:
                start = torch.randint(0, MELS - MASK, (1,), device=self.device)
                start = int(start)  # fault: masking
                clip[:, start : start + MASK] = 0.0  # fault: masking
            return mel
        start = torch.randint(0, MELS - MASK, (len(mel), 1, 1), device=self.device)
        channel = torch.arange(MELS, device=self.device)
        return mel.masked_fill((channel >= start) & (channel < start + MASK), 0.0)

    def forward(self, mel):
        x = self.encoder(self.project(mel) + self.position)
        return self.head(self.norm(x.mean(1)))

    def training_step(self, batch, batch_idx):
        waves, labels = batch
        logits = self(self.mask(self.features(waves)))
        loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
        if "metrics" in on:
            for name, metric in self.metrics.items():
                self.log(f"train_{name}", metric(logits, labels))  # fault: metrics
        else:
            self.correct += (logits.argmax(1) == labels).sum()
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4, weight_decay=0.05, fused=GPU)


class Clock(L.Callback):
    steps, started, seconds = 0, 0.0, 0.0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        done = batch_idx + 1
        if done == WARMUP:
            if GPU:
                torch.cuda.synchronize()
            self.started = time.perf_counter()
        elif done > WARMUP and time.perf_counter() - self.started >= SECONDS:
            if GPU:
                torch.cuda.synchronize()
            self.seconds = time.perf_counter() - self.started
            self.steps = done - WARMUP
            trainer.should_stop = True


def main():
    L.seed_everything(0, verbose=False)
    torch.set_float32_matmul_precision("high")
    dataset = Clips()
    loader = DataLoader(
        dataset,
        batch_size=BATCH,
        sampler=RandomSampler(dataset, replacement=True, num_samples=BATCH * 2000),
        num_workers=WORKERS,
        pin_memory=GPU,
        drop_last=True,
    )
    clock = Clock()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="gpu" if GPU else "cpu",
        devices=1,
        precision="bf16-mixed" if GPU else "32-true",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(KeywordModule(), loader)
    print(f"steps={clock.steps} seconds={clock.seconds:.4f} samples={clock.steps * BATCH}")


if __name__ == "__main__":
    main()
