"""Fine-tune a ViT-S/16 with mixup, stochastic depth, label smoothing and weight averaging."""

import copy
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

FAULTS = {
    "average": "a moving average of the weights that is kept on the CPU",
    "images": "images normalised in the dataset and copied as float32 from pageable memory",
    "attention": "attention that writes its scores and probabilities to memory",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, SIZE, WIDTH, DEPTH, HEADS = (128, 224, 384, 12, 6) if GPU else (4, 32, 32, 2, 2)
IMAGES, WORKERS = (2048, 8) if GPU else (64, 1)
CLASSES, PATCH = 100, 16
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


class Birds(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (IMAGES, 3, SIZE, SIZE), dtype=np.uint8)
        self.labels = rng.integers(0, CLASSES, IMAGES)

    def __len__(self):
        return IMAGES

    def __getitem__(self, i):
        image = torch.from_numpy(self.images[i])
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        if "images" in on:
            image = (image.float() / 255 - MEAN) / STD  # fault: images
        return image, int(self.labels[i])


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.keep = 1 - p

    def forward(self, x):
        if not self.training or self.keep == 1:
            return x
        mask = x.new_empty(x.shape[0], 1, 1).bernoulli_(self.keep).div_(self.keep)
        return x * mask


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if "attention" in on:
            scores = (q @ k.transpose(-2, -1)) * (WIDTH // HEADS) ** -0.5  # fault: attention
            x = scores.softmax(-1) @ v  # fault: attention
        else:
            x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, WIDTH))


class Block(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )
        self.drop = DropPath(p)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        tokens = (SIZE // PATCH) ** 2 + 1
        self.patch = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.pos = nn.Parameter(torch.randn(1, tokens, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*[Block(0.1 * i / DEPTH) for i in range(DEPTH)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        return self.head(self.norm(self.blocks(x))[:, 0])


class ModelEma:
    """Average of the weights, for evaluation."""

    def __init__(self, model, decay=0.9998):
        self.decay = decay
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        if "average" in on:
            self.module.cpu()

    @torch.no_grad()
    def update(self, model):
        if "average" in on:
            for e, p in zip(self.module.parameters(), model.parameters(), strict=True):
                e.mul_(self.decay).add_(
                    p.detach().to(e.device), alpha=1 - self.decay
                )  # fault: average
        else:
            torch._foreach_lerp_(
                list(self.module.parameters()), list(model.parameters()), 1 - self.decay
            )


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    dataset = Birds()
    loader = DataLoader(
        dataset,
        batch_size=BATCH,
        sampler=RandomSampler(dataset, replacement=True, num_samples=BATCH * 5000),
        num_workers=WORKERS,
        pin_memory=GPU and "images" not in on,
    )
    model = ViT().to(device)
    ema = ModelEma(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.05, fused=GPU)
    mean, std = MEAN.to(device) * 255, STD.to(device) * 255
    mix = np.random.default_rng(1)

    steps, begin = -WARMUP, time.perf_counter()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)  # fault: images
        labels = labels.to(device, non_blocking=True)
        if "images" not in on:
            images = (images.float() - mean) / std
        lam = float(mix.beta(0.8, 0.8))
        images = images.lerp(images.flip(0), 1 - lam)
        with torch.autocast("cuda", torch.bfloat16, enabled=GPU):
            logits = model(images)
        logits = logits.float()
        loss = lam * F.cross_entropy(logits, labels, label_smoothing=0.1)
        loss = loss + (1 - lam) * F.cross_entropy(logits, labels.flip(0), label_smoothing=0.1)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        ema.update(model)

        steps += 1
        if steps == 0:
            if GPU:
                torch.cuda.synchronize()
            begin = time.perf_counter()
        if steps >= MIN_STEPS and time.perf_counter() - begin >= SECONDS:
            break
    if GPU:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
