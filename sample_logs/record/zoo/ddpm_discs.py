"""DDPM on 16x16 discs: cosine schedule, epsilon prediction, min-SNR weighting, EMA."""

import copy
import math
import sys
import time
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

FAULTS = {
    "schedule_lists": "the cosine noise schedule computed on Python lists in each step",
    "state_dict_ema": "the moving average of the weights taken parameter by parameter by state_dict",
    "loss_weight_loop": "the loss summed over a Python loop of samples, each with a new weight tensor",
}


@dataclass
class Config:
    size: int = 16
    width: int = 12
    batch_size: int = 16
    timesteps: int = 4000
    snr_gamma: float = 5.0
    ema_decay: float = 0.995
    warmup: int = 5
    steps: int = 160


def discs(cfg: Config, length: int):
    """Random discs in [-1, 1]."""
    ys, xs = torch.meshgrid(torch.arange(cfg.size), torch.arange(cfg.size), indexing="ij")
    cx, cy = (torch.randint(4, cfg.size - 4, (length, 1, 1)) for _ in range(2))
    r = torch.randint(2, 5, (length, 1, 1))
    return ((xs - cx) ** 2 + (ys - cy) ** 2 <= r**2).float().mul(2).sub(1).unsqueeze(1)


class ResBlock(nn.Module):
    def __init__(self, dim_in, dim_out, dim_time):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, dim_in), nn.Conv2d(dim_in, dim_out, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, dim_out), nn.Conv2d(dim_out, dim_out, 3, padding=1)
        self.time = nn.Linear(dim_time, dim_out)
        self.skip = nn.Conv2d(dim_in, dim_out, 1) if dim_in != dim_out else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return self.conv2(F.silu(self.norm2(h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.freqs = nn.Buffer(torch.exp(-math.log(10_000) * torch.arange(w) / w))
        self.time = nn.Sequential(nn.Linear(2 * w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
        self.stem = nn.Conv2d(1, w, 3, padding=1)
        self.down = nn.ModuleList([ResBlock(w, w, 4 * w), ResBlock(w, 2 * w, 4 * w)])
        self.mid = nn.ModuleList([ResBlock(2 * w, 2 * w, 4 * w) for _ in range(4)])
        self.up = nn.ModuleList([ResBlock(4 * w, w, 4 * w), ResBlock(2 * w, w, 4 * w)])
        self.head = nn.Conv2d(w, 1, 3, padding=1)

    def forward(self, x, t):
        angles = t[:, None].float() * self.freqs
        t = self.time(torch.cat([angles.sin(), angles.cos()], dim=1))
        x, skips = self.stem(x), []
        for block in self.down:
            x = block(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        for block in self.mid:
            x = block(x, t)
        for block in self.up:
            x = block(torch.cat([F.interpolate(x, scale_factor=2), skips.pop()], dim=1), t)
        return self.head(x)


class Diffusion:
    def __init__(self, cfg: Config, faults: set[str]):
        self.cfg, self.faults = cfg, faults
        self.alphas_bar = torch.tensor(self.cosine_schedule())

    @staticmethod
    def curve(t, s=0.008):
        return math.cos((t + s) / (1 + s) * math.pi / 2) ** 2  # fault: schedule_lists

    def cosine_schedule(self):
        times = (i / self.cfg.timesteps for i in range(self.cfg.timesteps + 1))
        f = [self.curve(t) for t in times]  # fault: schedule_lists
        bar, product = [], 1.0
        for now, after in zip(f, f[1:]):
            product *= 1 - min(1 - after / now, 0.999)  # fault: schedule_lists
            bar.append(product)
        return bar

    def loss(self, model, x):
        if "schedule_lists" in self.faults:
            self.alphas_bar = torch.tensor(self.cosine_schedule())  # fault: schedule_lists
        t = torch.randint(0, self.cfg.timesteps, (len(x),))
        noise = torch.randn_like(x)
        a = self.alphas_bar[t][:, None, None, None]
        predicted = model(a.sqrt() * x + (1 - a).sqrt() * noise, t)
        snr = self.alphas_bar / (1 - self.alphas_bar)
        if "loss_weight_loop" in self.faults:
            total = 0.0
            for i, ratio in enumerate(snr[t].tolist()):
                w = torch.tensor(min(ratio, self.cfg.snr_gamma) / ratio)  # fault: loss_weight_loop
                mse = F.mse_loss(predicted[i], noise[i])  # fault: loss_weight_loop
                total = total + w * mse  # fault: loss_weight_loop
            return total / len(x)
        weight = snr[t].clamp(max=self.cfg.snr_gamma) / snr[t]
        return (weight * F.mse_loss(predicted, noise, reduction="none").mean(dim=(1, 2, 3))).mean()


@torch.no_grad()
def update_ema(ema, model, decay, faults):
    if "state_dict_ema" in faults:
        average = ema.state_dict()  # fault: state_dict_ema
        for name, value in model.state_dict().items():  # fault: state_dict_ema
            average[name] = decay * average[name] + (1 - decay) * value  # fault: state_dict_ema
        ema.load_state_dict(average)  # fault: state_dict_ema
    else:
        torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 1 - decay)


def main(faults: set[str]):
    torch.manual_seed(0)
    cfg = Config()
    images = discs(cfg, 4096)
    model = UNet(cfg.width)
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    diffusion = Diffusion(cfg, faults)

    for step in range(cfg.warmup + cfg.steps):
        if step == cfg.warmup:
            start = time.perf_counter()
        loss = diffusion.loss(model, images[torch.randint(0, len(images), (cfg.batch_size,))])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        update_ema(ema, model, cfg.ema_decay, faults)
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.5f}, averaged head {ema.head.weight.norm().item():.5f}")
    print(f"steps={cfg.steps} seconds={seconds:.3f} samples={cfg.steps * cfg.batch_size}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
