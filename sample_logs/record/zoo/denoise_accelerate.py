"""Denoising autoencoder trained with accelerate; previews are PNG files in a temporary folder."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

FAULTS = {
    "preview_every_step": "a grid of images written as PNG by the training loop every step",
    "validation_every_step": "the validation set evaluated every step",
    "backward_per_loss": "a backward pass per loss term through the same graph",
}

CONFIG = {
    "size": 32,
    "width": 16,
    "batch_size": 16,
    "lr": 2e-3,
    "steps": 90,
    "warmup": 6,
    "report_every": 45,
}


def make_images(count: int, size: int, seed: int) -> torch.Tensor:
    """Smooth gray images: sums of a few plane waves."""
    g = torch.Generator().manual_seed(seed)
    yx = torch.stack(torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")).float()
    k = torch.randn(count, 3, 2, generator=g) * 0.3
    phase = torch.rand(count, 3, 1, 1, generator=g) * 6.28
    waves = torch.sin(torch.einsum("nkc,chw->nkhw", k, yx) + phase)
    return (0.5 + waves.mean(1, keepdim=True) / 2).contiguous()


def build_model(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.GELU(),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(2 * width, 2 * width, 3, padding=1),
        nn.GELU(),
        nn.ConvTranspose2d(2 * width, width, 2, stride=2),
        nn.GELU(),
        nn.Conv2d(width, 1, 3, padding=1),
    )


def edge_loss(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    dx = (output.diff(dim=3) - target.diff(dim=3)).abs().mean()
    dy = (output.diff(dim=2) - target.diff(dim=2)).abs().mean()
    return dx + dy


@torch.no_grad()
def validate(model: nn.Module, noisy: torch.Tensor, clean: torch.Tensor) -> float:
    model.eval()
    total = 0.0
    for x, y in zip(noisy.split(16), clean.split(16)):
        restored = model(x)  # fault: validation_every_step
        total += (restored - y).square().sum().item()  # fault: validation_every_step
    model.train()
    return -10 * np.log10(total / clean.numel())


def save_preview(path: Path, *columns: torch.Tensor) -> None:
    """Write rows of noisy, restored and clean images, four times enlarged."""
    rows = torch.cat([c.detach().squeeze(1).flatten(0, 1) for c in columns], dim=1)
    pixels = rows.clamp(0, 1).mul(255).byte().numpy()
    image = Image.fromarray(pixels)
    size = (image.width * 4, image.height * 4)
    image = image.resize(size, Image.Resampling.BICUBIC)  # fault: preview_every_step
    image.save(path)  # fault: preview_every_step


def main(active: set[str], cfg: dict) -> None:
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(3)
    clean = make_images(512, cfg["size"], seed=3)
    valid = make_images(32, cfg["size"], seed=4)
    valid_noisy = valid + 0.2 * torch.randn(valid.shape)
    noisy = clean + 0.2 * torch.randn(clean.shape)
    loader = DataLoader(TensorDataset(noisy, clean), cfg["batch_size"], shuffle=True)
    model = build_model(cfg["width"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], fused=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    def forever():
        while True:
            yield from loader

    batches = forever()
    start = 0.0
    psnr = 0.0
    with tempfile.TemporaryDirectory() as previews:
        for step in range(cfg["warmup"] + cfg["steps"]):
            if step == cfg["warmup"]:
                start = time.perf_counter()
            x, y = next(batches)
            output = model(x)
            pixel, edges = nn.functional.mse_loss(output, y), 0.1 * edge_loss(output, y)
            if "backward_per_loss" in active:
                accelerator.backward(pixel, retain_graph=True)  # fault: backward_per_loss
                accelerator.backward(edges)  # fault: backward_per_loss
            else:
                accelerator.backward(pixel + edges)
            optimizer.step()
            optimizer.zero_grad()
            report = step % cfg["report_every"] == 0
            if report or "preview_every_step" in active:
                path = Path(previews) / f"{step:05d}.png"
                save_preview(path, x[:6], output[:6], y[:6])  # fault: preview_every_step
            if report or "validation_every_step" in active:
                psnr = validate(model, valid_noisy, valid)  # fault: validation_every_step
                accelerator.print(f"step {step} psnr {psnr:.2f} dB")
        seconds = time.perf_counter() - start
    accelerator.print(f"final loss {(pixel + edges).item():.5f}")
    print(f"steps={cfg['steps']} seconds={seconds:.3f} samples={cfg['steps'] * cfg['batch_size']}")


if __name__ == "__main__":
    main(set(sys.argv[1:]), CONFIG)
