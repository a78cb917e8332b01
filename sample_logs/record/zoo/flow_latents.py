"""Class-conditional flow matching with a small DiT in the latent space of a frozen VAE encoder."""

import copy
import math
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "encoder": "latents of the frozen encoder computed anew for every batch",
    "average": "a state dict of the whole model for each tensor of the moving average",
    "positions": "a table of positions made by Python loops in each forward pass",
}
on = set(sys.argv[1:])

BATCH, DIM, DEPTH, HEADS, SIDE, CLASSES = 12, 96, 3, 4, 8, 10
WARMUP, STEPS, DECAY = 5, 80, 0.999


class VAEEncoder(nn.Module):
    def __init__(self, width=96, z_channels=4):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.GroupNorm(8, width),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(8, 2 * width),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * z_channels, 3, padding=1),
        )

    @torch.no_grad()
    def encode(self, x):
        mean, _ = self.net(x).chunk(2, dim=1)
        return mean * 0.18215


def sincos_positions(side, dim):
    table = []
    for y in range(side):
        for x in range(side):
            row = []
            for pos in (y, x):
                for i in range(dim // 4):
                    angle = pos / 10000 ** (4 * i / dim)  # fault: positions
                    row += [math.sin(angle), math.cos(angle)]  # fault: positions
            table.append(row)
    return torch.tensor(table)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1 = nn.LayerNorm(DIM, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(DIM, elementwise_affine=False)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
        self.ada = nn.Linear(DIM, 6 * DIM)

    def forward(self, x, c):
        b, t, _ = x.shape
        shift1, scale1, gate1, shift2, scale2, gate2 = self.ada(c)[:, None].chunk(6, dim=-1)
        h = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(h).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, DIM)
        x = x + gate1 * self.proj(h)
        return x + gate2 * self.mlp(self.norm2(x) * (1 + scale2) + shift2)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(4, DIM)
        self.label = nn.Embedding(CLASSES, DIM)
        self.time = nn.Sequential(nn.Linear(DIM, DIM), nn.SiLU(), nn.Linear(DIM, DIM))
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.out = nn.Linear(DIM, 4)
        freqs = torch.exp(-math.log(10000) * torch.arange(DIM // 2) / (DIM // 2))
        self.register_buffer("freqs", freqs, persistent=False)
        self.register_buffer("pos", sincos_positions(SIDE, DIM), persistent=False)

    def forward(self, x, t, y):
        angle = 1000 * t[:, None] * self.freqs
        c = F.silu(self.time(torch.cat([angle.sin(), angle.cos()], dim=-1)) + self.label(y))
        pos = sincos_positions(SIDE, DIM) if "positions" in on else self.pos  # fault: positions
        h = self.patch(x.flatten(2).transpose(1, 2)) + pos
        for block in self.blocks:
            h = block(h, c)
        return self.out(self.norm(h)).transpose(1, 2).view_as(x)


@torch.no_grad()
def update_ema(ema, model):
    if "average" in on:
        averaged = {
            name: DECAY * value + (1 - DECAY) * model.state_dict()[name]  # fault: average
            for name, value in ema.state_dict().items()
        }
        ema.load_state_dict(averaged)  # fault: average
    else:
        torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 1 - DECAY)


torch.manual_seed(0)
images = torch.rand(256, 3, 32, 32) * 2 - 1
labels = torch.randint(0, CLASSES, (256,))
vae = VAEEncoder().eval().requires_grad_(False)
latents = None
if "encoder" not in on:
    latents = torch.cat([vae.encode(chunk) for chunk in images.split(32)])

model = DiT()
ema = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.0)

running = torch.zeros(())
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        start = time.perf_counter()
    index = torch.randint(0, len(images), (BATCH,))
    x1 = latents[index] if latents is not None else vae.encode(images[index])  # fault: encoder
    x0 = torch.randn_like(x1)
    t = torch.rand(BATCH)
    xt = torch.lerp(x0, x1, t[:, None, None, None])
    loss = F.mse_loss(model(xt, t, labels[index]), x1 - x0)

    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    update_ema(ema, model)  # fault: average

    running += loss.detach()
    if (step + 1) % 25 == 0:
        print(f"step {step + 1:4d}  flow loss {running.item() / 25:.4f}")
        running.zero_()

seconds = time.perf_counter() - start
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
