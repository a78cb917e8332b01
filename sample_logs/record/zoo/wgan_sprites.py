"""WGAN-GP on game sprites: critic and generator in one script, sprites read from PNG files."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "attached": "gradients of the generator in updates of the critic, which throw them away",
    "decode": "sprites decoded from PNG and resized again in each epoch",
    "histograms": "histograms of all weights in each step",
}
on = set(sys.argv[1:])

LATENT, BATCH, N_CRITIC, LAMBDA_GP = 64, 16, 4, 10.0
WARMUP, STEPS = 8, 120
LOG_EVERY = 60


def draw_sprites(folder, count=128):
    rng = np.random.default_rng(0)
    for i in range(count):
        image = Image.new("RGB", (160, 160), tuple(int(c) for c in rng.integers(0, 60, 3)))
        draw = ImageDraw.Draw(image)
        for _ in range(6):
            x, y, r = (int(v) for v in rng.integers(20, 130, 3))
            color = tuple(int(c) for c in rng.integers(60, 255, 3))
            draw.ellipse((x - r // 3, y - r // 3, x + r // 3, y + r // 3), fill=color)
        image.save(folder / f"sprite_{i:03d}.png")


class Sprites(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.png"))
        self.cache = None
        if "decode" not in on:
            self.cache = [self.load(path) for path in self.paths]

    def load(self, path):
        with Image.open(path) as image:
            image = image.convert("RGB").resize((32, 32), Image.BICUBIC)  # fault: decode
        pixels = np.asarray(image, dtype=np.float32) / 127.5 - 1.0
        return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        if self.cache is not None:
            return self.cache[i]
        return self.load(self.paths[i])  # fault: decode


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(LATENT, 64 * 4 * 4)
        self.net = nn.Sequential(
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.ConvTranspose2d(64, 48, 4, 2, 1, bias=False),
            nn.BatchNorm2d(48),
            nn.ReLU(),
            nn.ConvTranspose2d(48, 24, 4, 2, 1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.ConvTranspose2d(24, 3, 4, 2, 1),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.net(self.project(z).view(-1, 64, 4, 4))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(16, 32, 4, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(32, 64, 4, 2, 1),
            nn.LeakyReLU(0.2),
        )
        self.head = nn.Linear(64 * 4 * 4, 1)

    def forward(self, x):
        return self.head(self.net(x).flatten(1))


def gradient_penalty(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1)
    mixed = (alpha * real + (1 - alpha) * fake).detach().requires_grad_(True)
    (grads,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    return ((grads.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


torch.manual_seed(0)
folder = tempfile.TemporaryDirectory()
draw_sprites(Path(folder.name))
loader = DataLoader(Sprites(Path(folder.name)), batch_size=BATCH, shuffle=True, drop_last=True)
generator, critic = Generator(), Critic()
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.5, 0.9))
history = {}


def log_weights(step):
    for prefix, net in (("generator", generator), ("critic", critic)):
        for name, p in net.named_parameters():
            counts, edges = np.histogram(p.detach().numpy(), bins=64)  # fault: histograms
            history[f"{prefix}/{name}"] = (step, counts, edges)


step, started = 0, 0.0
while step < WARMUP + STEPS:
    for real in loader:
        if step == WARMUP:
            started = time.perf_counter()
        z = torch.randn(BATCH, LATENT)
        with torch.set_grad_enabled("attached" in on):
            fake = generator(z)  # fault: attached
        opt_c.zero_grad()
        gap = critic(fake).mean() - critic(real).mean()
        loss_c = gap + LAMBDA_GP * gradient_penalty(critic, real, fake)
        loss_c.backward()  # fault: attached
        opt_c.step()

        if step % N_CRITIC == 0:
            critic.requires_grad_(False)
            opt_g.zero_grad()
            loss_g = -critic(generator(torch.randn(BATCH, LATENT))).mean()
            loss_g.backward()
            opt_g.step()
            critic.requires_grad_(True)
        if step % LOG_EVERY == 0:
            print(f"[{step}] critic {loss_c.item():.3f} generator {loss_g.item():.3f}")
        if "histograms" in on or step % LOG_EVERY == 0:
            log_weights(step)  # fault: histograms
        step += 1
        if step == WARMUP + STEPS:
            break

seconds = time.perf_counter() - started
folder.cleanup()
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
