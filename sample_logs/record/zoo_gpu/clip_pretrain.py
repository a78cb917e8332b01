"""Contrastive pre-training of an image and a text encoder (CLIP) with LARS on a small data set."""

import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "trust": "a LARS step that tests the norms of each parameter on the host",
    "similarity": "similarities of all pairs from broadcast embeddings",
    "padding": "captions padded to the context length of the model",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, SIZE, WIDTH, EMBED, HEADS = (1024, 112, 384, 256, 6) if GPU else (8, 32, 32, 16, 2)
SAMPLES, LAYERS = (8192, (6, 4)) if GPU else (64, (2, 2))
VOCAB, CONTEXT, PATCH = 4096, 48, 16
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30


class Block(nn.Module):
    def __init__(self, causal):
        super().__init__()
        self.causal = causal
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        qkv = self.qkv(self.ln1(x)).view(b, n, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class CLIP(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.image_pos = nn.Parameter(torch.randn((SIZE // PATCH) ** 2, WIDTH) * 0.02)
        self.image_blocks = nn.Sequential(*[Block(causal=False) for _ in range(LAYERS[0])])
        self.image_proj = nn.Linear(WIDTH, EMBED, bias=False)
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.text_pos = nn.Parameter(torch.randn(CONTEXT, WIDTH) * 0.01)
        self.text_blocks = nn.Sequential(*[Block(causal=True) for _ in range(LAYERS[1])])
        self.text_proj = nn.Linear(WIDTH, EMBED, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def encode_image(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2) + self.image_pos
        return self.image_proj(self.image_blocks(x).mean(1))

    def encode_text(self, tokens, lengths):
        x = self.tokens(tokens) + self.text_pos[: tokens.shape[1]]
        x = self.text_blocks(x)
        return self.text_proj(x[torch.arange(len(x), device=x.device), lengths - 1])


class LARS(torch.optim.Optimizer):
    def __init__(self, params, lr, momentum=0.9, weight_decay=1e-4, eta=1e-3):
        super().__init__(
            params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "eta": eta}
        )
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["buffer"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, wd, eta = group["lr"], group["weight_decay"], group["eta"]
            if "trust" in on:
                for p in group["params"]:
                    p_norm, g_norm = p.norm(), p.grad.norm()  # fault: trust
                    update = p.grad.add(p, alpha=wd)
                    if p_norm > 0 and g_norm > 0:  # fault: trust
                        update.mul_(eta * p_norm / (g_norm + wd * p_norm))  # fault: trust
                    buffer = self.state[p]["buffer"]
                    buffer.mul_(group["momentum"]).add_(update)  # fault: trust
                    p.add_(buffer, alpha=-lr)  # fault: trust
            else:
                params = group["params"]
                grads = [p.grad for p in params]
                buffers = [self.state[p]["buffer"] for p in params]
                p_norm = torch.stack(torch._foreach_norm(params))
                g_norm = torch.stack(torch._foreach_norm(grads))
                trust = eta * p_norm / (g_norm + wd * p_norm)
                trust = torch.where((p_norm > 0) & (g_norm > 0), trust, 1.0)
                update = torch._foreach_add(grads, params, alpha=wd)
                torch._foreach_mul_(update, list(trust.unbind()))
                torch._foreach_mul_(buffers, group["momentum"])
                torch._foreach_add_(buffers, update)
                torch._foreach_add_(params, buffers, alpha=-lr)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
rng = np.random.default_rng(0)
images = torch.from_numpy(rng.integers(0, 256, (SAMPLES, 3, SIZE, SIZE), dtype=np.uint8)).to(device)
lengths = torch.from_numpy(rng.integers(8, 25, SAMPLES))
captions = torch.from_numpy(rng.integers(2, VOCAB, (SAMPLES, CONTEXT)))
captions[torch.arange(CONTEXT)[None] >= lengths[:, None]] = 0
captions = captions.to(device)

model = CLIP().to(device)
optimizer = LARS(model.parameters(), lr=0.5)
losses = []


def batches():
    while True:
        for rows in torch.randperm(SAMPLES).split(BATCH):
            longest = CONTEXT if "padding" in on else int(lengths[rows].max())
            batch = torch.stack([rows, lengths[rows]])
            batch = batch.pin_memory().to(device, non_blocking=True) if GPU else batch
            index, length = batch.unbind()
            pixels = images[index]
            flip = torch.rand(len(pixels), 1, 1, 1, device=device) < 0.5
            pixels = torch.where(flip, pixels.flip(-1), pixels)
            yield pixels, captions[index, :longest], length


def train_step(pixels, tokens, length):
    with torch.autocast("cuda", torch.bfloat16, enabled=GPU):
        image_features = model.encode_image(pixels.float() / 127.5 - 1)
        text_features = model.encode_text(tokens, length)  # fault: padding
    image_features, text_features = image_features.float(), text_features.float()
    if "similarity" in on:
        similarity = F.cosine_similarity(  # fault: similarity
            image_features[:, None], text_features[None], dim=-1
        )
    else:
        similarity = F.normalize(image_features, dim=1) @ F.normalize(text_features, dim=1).T
    logits = model.logit_scale.exp() * similarity
    target = torch.arange(len(logits), device=device)
    loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # fault: similarity
    optimizer.step()
    losses.append(loss.detach())


loader = batches()
for _ in range(WARMUP):
    train_step(*next(loader))
if GPU:
    torch.cuda.synchronize()
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < SECONDS or steps < MIN_STEPS:
    train_step(*next(loader))
    steps += 1
if GPU:
    torch.cuda.synchronize()
seconds = time.perf_counter() - begin

print(f"loss {torch.stack(losses).mean().item():.4f}")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
