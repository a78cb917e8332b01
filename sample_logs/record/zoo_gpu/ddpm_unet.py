"""Training of a small class-conditional diffusion model (DDPM) on made-up 32x32 images."""

import copy
import math
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

FAULTS = {
    "guidance": "the network run with and without labels on the whole batch, one result thrown away",
    "ema": "the moving average of the weights kept on the CPU and updated there in every step",
    "einsum": "attention with materialised scores instead of the fused kernel",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
BATCH, SIZE, CHANNELS, HEADS = (256, 32, 64, 4) if GPU else (2, 8, 8, 2)
CLASSES, TIMESTEPS, DROP_LABEL, DECAY = 10, 1000, 0.1, 0.999

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
torch.backends.cudnn.allow_tf32 = True
torch.backends.cudnn.benchmark = True


class Images(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.images = torch.randint(0, 256, (n, 3, SIZE, SIZE), dtype=torch.uint8, generator=g)
        self.labels = torch.randint(0, CLASSES, (n,), generator=g)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


def timestep_embedding(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    args = t[:, None].float() * freqs[None]
    return torch.cat([args.cos(), args.sin()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, c_in, c_out, emb):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, c_in), nn.GroupNorm(8, c_out)
        self.conv1 = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, padding=1)
        self.emb = nn.Linear(emb, c_out)
        self.skip = nn.Conv2d(c_in, c_out, 1) if c_in != c_out else nn.Identity()

    def forward(self, x, emb):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.emb(emb)[:, :, None, None]
        h = self.conv2(F.silu(self.norm2(h)))
        return self.skip(x) + h


class Attention(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x):
        b, c, h, w = x.shape
        tokens = self.norm(x).flatten(2).transpose(1, 2)
        qkv = self.qkv(tokens).view(b, h * w, 3, HEADS, c // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if "einsum" in on:
            scale = (c // HEADS) ** -0.5
            sim = torch.einsum("bhid,bhjd->bhij", q * scale, k)  # fault: einsum
            attn = sim.softmax(dim=-1)  # fault: einsum
            y = torch.einsum("bhij,bhjd->bhid", attn, v)  # fault: einsum
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        y = self.out(y.transpose(1, 2).reshape(b, h * w, c))
        return x + y.transpose(1, 2).reshape(b, c, h, w)


class UNet(nn.Module):
    def __init__(self, ch):
        super().__init__()
        emb = 4 * ch
        self.ch = ch
        self.time = nn.Sequential(nn.Linear(ch, emb), nn.SiLU(), nn.Linear(emb, emb))
        self.label = nn.Embedding(CLASSES + 1, emb)
        self.stem = nn.Conv2d(3, ch, 3, padding=1)
        self.down1 = nn.ModuleList([ResBlock(ch, ch, emb), ResBlock(ch, ch, emb)])
        self.pool1 = nn.Conv2d(ch, 2 * ch, 3, stride=2, padding=1)
        self.down2 = nn.ModuleList([ResBlock(2 * ch, 2 * ch, emb), ResBlock(2 * ch, 2 * ch, emb)])
        self.attn2 = nn.ModuleList([Attention(2 * ch), Attention(2 * ch)])
        self.pool2 = nn.Conv2d(2 * ch, 4 * ch, 3, stride=2, padding=1)
        self.mid = nn.ModuleList([ResBlock(4 * ch, 4 * ch, emb), ResBlock(4 * ch, 4 * ch, emb)])
        self.mid_attn = Attention(4 * ch)
        self.up2 = nn.ModuleList([ResBlock(6 * ch, 2 * ch, emb), ResBlock(2 * ch, 2 * ch, emb)])
        self.up_attn2 = nn.ModuleList([Attention(2 * ch), Attention(2 * ch)])
        self.up1 = nn.ModuleList([ResBlock(3 * ch, ch, emb), ResBlock(ch, ch, emb)])
        self.norm = nn.GroupNorm(8, ch)
        self.head = nn.Conv2d(ch, 3, 3, padding=1)

    def forward(self, x, t, labels):
        emb = F.silu(self.time(timestep_embedding(t, self.ch)) + self.label(labels))
        x = self.stem(x)
        for block in self.down1:
            x = block(x, emb)
        skip1, x = x, self.pool1(x)
        for block, attn in zip(self.down2, self.attn2, strict=True):
            x = attn(block(x, emb))
        skip2, x = x, self.pool2(x)
        x = self.mid[1](self.mid_attn(self.mid[0](x, emb)), emb)
        x = torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), skip2], dim=1)
        for block, attn in zip(self.up2, self.up_attn2, strict=True):
            x = attn(block(x, emb))
        x = torch.cat([F.interpolate(x, scale_factor=2.0, mode="nearest"), skip1], dim=1)
        for block in self.up1:
            x = block(x, emb)
        return self.head(F.silu(self.norm(x)))


def predict(model, noisy, t, labels):
    """Noise prediction with labels dropped at random, for classifier-free guidance."""
    drop = torch.rand(len(labels), device=labels.device) < DROP_LABEL
    null = torch.full_like(labels, CLASSES)
    if "guidance" in on:
        cond = model(noisy, t, labels)
        uncond = model(noisy, t, null)  # fault: guidance
        return torch.where(drop[:, None, None, None], uncond, cond)  # fault: guidance
    return model(noisy, t, torch.where(drop, null, labels))


@torch.no_grad()
def update_average(average, model):
    if "ema" in on:
        for a, p in zip(average.parameters(), model.parameters(), strict=True):
            a.mul_(DECAY).add_(p.detach().cpu(), alpha=1 - DECAY)  # fault: ema
    else:
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 1 - DECAY)


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def main():
    data = Images(16384 if GPU else 256)
    draws = RandomSampler(data, replacement=True, num_samples=BATCH * 5000)
    loader = DataLoader(
        data, BATCH, sampler=draws, num_workers=4 if GPU else 1, pin_memory=GPU, prefetch_factor=4
    )
    model = UNet(CHANNELS).to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    if "ema" in on:
        average = average.cpu()  # fault: ema
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=True)
    betas = torch.linspace(1e-4, 0.02, TIMESTEPS, device=device)
    alphas_bar = torch.cumprod(1 - betas, dim=0)
    signal, sigma = alphas_bar.sqrt(), (1 - alphas_bar).sqrt()

    started, losses = 0.0, []
    for step, (images, labels) in enumerate(loader):
        if step == WARMUP:
            synchronize()
            started = time.perf_counter()
        images = images.to(device, non_blocking=True).float() / 127.5 - 1
        labels = labels.to(device, non_blocking=True)
        t = torch.randint(0, TIMESTEPS, (len(labels),), device=device)
        noise = torch.randn_like(images)
        noisy = signal[t][:, None, None, None] * images + sigma[t][:, None, None, None] * noise
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=GPU):
            loss = F.mse_loss(predict(model, noisy, t, labels).float(), noise)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # fault: guidance
        optimizer.step()
        update_average(average, model)
        losses.append(loss.detach())
        steps = step + 1 - WARMUP
        if steps >= MIN_STEPS and time.perf_counter() - started >= SECONDS:
            break

    synchronize()
    seconds = time.perf_counter() - started
    print(f"first loss {losses[0].item():.5f}  mean loss {torch.stack(losses).mean().item():.5f}")
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
