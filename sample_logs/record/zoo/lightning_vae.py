"""Variational autoencoder of game sprites with Lightning; the sprites are PNG files of a folder."""

import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "decode": "each file opened and decoded again in every epoch, though all fit into memory",
    "anomaly": "anomaly detection of autograd left on after debugging",
    "preview": "a PNG file of reconstructions written in every step",
}
on = set(sys.argv[1:])

BATCH, SIDE, LATENT = 32, 48, 32
WARMUP, STEPS = 6, 70

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def draw_sprites(folder, n=256):
    rng = np.random.default_rng(0)
    for i in range(n):
        small = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        sprite = Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        sprite.save(folder / f"{i:04d}.png")


class Sprites(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.png"))
        self.cache = None
        if "decode" not in on:
            self.cache = [self.load(path) for path in self.paths]

    def load(self, path):
        image = Image.open(path).convert("RGB")  # fault: decode
        pixels = np.asarray(image, dtype=np.float32) / 255  # fault: decode
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()  # fault: decode

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return self.load(self.paths[i]) if self.cache is None else self.cache[i]  # fault: decode


class VAE(L.LightningModule):
    def __init__(self, preview_folder):
        super().__init__()
        self.preview_folder = preview_folder
        self.preview_every = 1 if "preview" in on else STEPS
        self.encoder = nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 12 * 12, 2 * LATENT),
        )
        self.decoder = nn.Sequential(
            nn.Linear(LATENT, 32 * 12 * 12),
            nn.Unflatten(1, (32, 12, 12)),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 4, 2, 1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 3, 4, 2, 1),
        )

    def training_step(self, x, batch_idx):
        mu, logvar = self.encoder(x).chunk(2, dim=1)  # fault: anomaly
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()  # fault: anomaly
        logits = self.decoder(z)  # fault: anomaly
        rec = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
        kl = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum(1).mean()  # fault: anomaly
        if (self.global_step + 1) % self.preview_every == 0:
            self.save_preview(x, logits)  # fault: preview
        return rec + kl

    @torch.no_grad()
    def save_preview(self, x, logits):
        pairs = torch.cat([x, logits.sigmoid()], dim=3)[:16]  # fault: preview
        rows = pairs.view(4, 4, 3, SIDE, 2 * SIDE).permute(0, 3, 1, 4, 2)  # fault: preview
        grid = rows.reshape(4 * SIDE, 8 * SIDE, 3).mul(255).byte().numpy()  # fault: preview
        name = f"{self.global_step:05d}.png"
        Image.fromarray(grid).save(self.preview_folder / name)  # fault: preview

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3, fused=True)


class Clock(L.Callback):
    started = ended = 0.0

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == WARMUP:
            self.started = time.perf_counter()
        self.ended = time.perf_counter()


def main():
    L.seed_everything(0)
    with tempfile.TemporaryDirectory() as tmp:
        sprites, previews = Path(tmp, "sprites"), Path(tmp, "previews")
        sprites.mkdir()
        previews.mkdir()
        draw_sprites(sprites)
        loader = DataLoader(Sprites(sprites), BATCH, shuffle=True, drop_last=True)
        clock = Clock()
        trainer = L.Trainer(
            accelerator="cpu",
            max_steps=WARMUP + STEPS,
            detect_anomaly="anomaly" in on,  # fault: anomaly
            callbacks=[clock],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(VAE(previews), loader)  # fault: anomaly
    seconds = clock.ended - clock.started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


main()
