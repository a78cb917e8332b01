"""MLP-mixer for land cover on ten-band satellite tiles, trained with torch.compile."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "bypass": "an eager model, because a method of the compiled wrapper calls the module inside it",
    "stretch": "a percentile stretch of every tile at each access instead of once",
    "recount": "a second forward pass over the batch for the training accuracy",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 16, 6, 160
BANDS, SIZE, PATCH, DIM, DEPTH, CLASSES = 10, 32, 4, 64, 3, 10


class Tiles(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(7)
        scale = rng.uniform(400, 3000, (n, BANDS, 1, 1))
        self.raw = rng.gamma(2.0, scale, (n, BANDS, SIZE, SIZE)).clip(0, 65535).astype(np.uint16)
        self.cover = rng.integers(0, CLASSES, n)
        self.ready = None
        if "stretch" not in on:
            self.ready = torch.stack([self.stretch(tile) for tile in self.raw])

    @staticmethod
    def stretch(tile):
        out = np.empty(tile.shape, dtype=np.float32)
        for k, band in enumerate(tile):
            low, high = np.percentile(band, (2, 98))  # fault: stretch
            out[k] = np.clip((band - low) / (high - low), 0, 1) - 0.5  # fault: stretch
        return torch.from_numpy(out)

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        if self.ready is not None:
            return self.ready[index], self.cover[index]
        return self.stretch(self.raw[index]), self.cover[index]  # fault: stretch


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.tokens = nn.Sequential(nn.Linear(tokens, 96), nn.GELU(), nn.Linear(96, tokens))
        self.norm2 = nn.LayerNorm(dim)
        self.channels = nn.Sequential(nn.Linear(dim, 192), nn.GELU(), nn.Linear(192, dim))
        self.scale1 = nn.Parameter(torch.full((dim,), 0.1))
        self.scale2 = nn.Parameter(torch.full((dim,), 0.1))

    def forward(self, x):
        mixed = self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)  # fault: bypass
        x = x + self.scale1 * mixed  # fault: bypass
        return x + self.scale2 * self.channels(self.norm2(x))  # fault: bypass


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(BANDS * PATCH * PATCH, DIM)
        self.blocks = nn.ModuleList(MixerBlock((SIZE // PATCH) ** 2, DIM) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, CLASSES)

    def forward(self, x):
        n, side = x.shape[0], SIZE // PATCH
        x = x.reshape(n, BANDS, side, PATCH, side, PATCH).permute(0, 2, 4, 1, 3, 5)
        x = self.stem(x.reshape(n, side * side, BANDS * PATCH * PATCH))
        for block in self.blocks:
            x = block(x)  # fault: bypass
        return self.head(self.norm(x).mean(1))

    def training_step(self, tiles, cover):
        logits = self(tiles)  # fault: bypass
        loss = F.cross_entropy(logits, cover, label_smoothing=0.1)
        return loss, logits


@torch.no_grad()
def hits(tiles, cover):
    model.eval()
    prediction = model(tiles).argmax(1)  # fault: recount
    model.train()
    return (prediction == cover).sum()


torch.manual_seed(0)
loader = DataLoader(Tiles(512), batch_size=BATCH, shuffle=True, drop_last=True)
model = Mixer()
if "bypass" in on:
    model = torch.compile(model)
else:
    model.compile()
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4, fused=True
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, WARMUP + STEPS)

step, started = 0, 0.0
running, correct = torch.zeros(()), torch.zeros((), dtype=torch.long)
while step < WARMUP + STEPS:
    for tiles, cover in loader:
        if step == WARMUP:
            started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss, logits = model.training_step(tiles, cover)  # fault: bypass
        loss.backward()  # fault: bypass
        optimizer.step()
        scheduler.step()
        running += loss.detach()
        if "recount" in on:
            correct += hits(tiles, cover)  # fault: recount
        else:
            correct += (logits.argmax(1) == cover).sum()
        step += 1
        if step % 30 == 0:
            print(f"{step:4d} loss {running / 30:.3f} accuracy {correct / 30 / BATCH:.1%}")
            running.zero_()
            correct.zero_()
        if step == WARMUP + STEPS:
            break

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
