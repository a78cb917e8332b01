"""Vision transformer on histology tiles, written after a blog post, with statistics of weights in the log."""

import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

FAULTS = {
    "patchify": "patches cut out one by one in a Python loop",
    "recompute": "activation checkpointing of a model that fits into memory many times over",
    "histograms": "histograms of all weights and gradients in every step",
}
on = set(sys.argv[1:])

BATCH, SIDE, PATCH, DIM, DEPTH, HEADS, CLASSES = 16, 32, 4, 64, 4, 4, 9
N_PATCHES = (SIDE // PATCH) ** 2
WARMUP, STEPS = 5, 70
LOG_EVERY = 1 if "histograms" in on else 35


def patchify(images):
    if "patchify" in on:
        n, c, h, w = images.shape
        patches = torch.zeros(n, N_PATCHES, c * PATCH * PATCH)
        for idx, image in enumerate(images):
            for i in range(h // PATCH):
                for j in range(w // PATCH):
                    rows = slice(i * PATCH, (i + 1) * PATCH)
                    cols = slice(j * PATCH, (j + 1) * PATCH)
                    patch = image[:, rows, cols]  # fault: patchify
                    patches[idx, i * (w // PATCH) + j] = patch.flatten()  # fault: patchify
        return patches
    return F.unfold(images, PATCH, stride=PATCH).transpose(1, 2)


def sinusoids(length, dim):
    position = torch.arange(length)[:, None]
    rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    table = torch.zeros(length, dim)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        n, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        out = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(out.transpose(1, 2).reshape(n, t, d))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3 * PATCH * PATCH, DIM)
        self.cls = nn.Parameter(torch.randn(1, 1, DIM) * 0.02)
        self.register_buffer("positions", sinusoids(N_PATCHES + 1, DIM))
        self.blocks = nn.ModuleList(Block(DIM, HEADS) for _ in range(DEPTH))
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES))

    def forward(self, images):
        tokens = self.embed(patchify(images))
        x = torch.cat([self.cls.expand(len(tokens), -1, -1), tokens], dim=1) + self.positions
        for block in self.blocks:
            if "recompute" in on:
                x = checkpoint(block, x, use_reentrant=False)  # fault: recompute
            else:
                x = block(x)
        return self.head(x[:, 0])


def log_histograms(model, book, step):
    for name, p in model.named_parameters():
        w = p.detach().numpy().ravel()
        g = p.grad.numpy().ravel()
        book[step, name] = np.histogram(w, bins=64)  # fault: histograms
        book[step, name + ".grad"] = np.histogram(g, bins=64)  # fault: histograms


def main():
    torch.manual_seed(0)
    tiles = torch.rand(512, 3, SIDE, SIDE)
    tissue = torch.randint(0, CLASSES, (512,))
    loader = DataLoader(TensorDataset(tiles, tissue), batch_size=BATCH, shuffle=True)
    model = ViT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    book = {}
    step, started = 0, 0.0
    while step < WARMUP + STEPS:
        for x, y in loader:
            if step == WARMUP:
                started = time.perf_counter()
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()  # fault: recompute
            optimizer.step()
            step += 1
            if step % LOG_EVERY == 0:
                log_histograms(model, book, step)  # fault: histograms
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


main()
