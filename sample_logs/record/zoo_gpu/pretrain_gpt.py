"""A small GPT from scratch, after nanoGPT: one file, random windows of a token array."""

import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "accumulate": "gradient accumulation over micro-batches of one sequence, although the whole "
    "batch fits in memory",
    "attention": "causal attention with explicit score matrices in place of the fused kernel",
    "onehot": "the cross-entropy by a product with one-hot targets over the vocabulary",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
BATCH, BLOCK, LAYERS, HEADS, WIDTH, VOCAB = (
    (24, 512, 4, 12, 1536, 16384) if GPU else (4, 32, 2, 2, 32, 256)
)
WARMUP, SECONDS = 10, 1.0
MICRO_BATCH = 1 if "accumulate" in on else BATCH
ACCUMULATION_STEPS = BATCH // MICRO_BATCH

torch.manual_seed(1337)
torch.set_float32_matmul_precision("high")
tokens = np.random.default_rng(1337).integers(0, VOCAB, 2_000_000, dtype=np.uint16)


def get_batch(count):
    starts = np.random.randint(0, len(tokens) - BLOCK - 1, count)
    windows = torch.from_numpy(
        np.stack([tokens[i : i + BLOCK + 1] for i in starts]).astype(np.int64)
    )
    if GPU:
        windows = windows.pin_memory().to(DEVICE, non_blocking=True)
    return windows[:, :-1], windows[:, 1:]


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.c_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        mask = torch.tril(torch.ones(BLOCK, BLOCK)).view(1, 1, BLOCK, BLOCK)
        self.register_buffer("bias", mask, persistent=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(WIDTH, dim=2)
        q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        if "attention" in on:
            att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))  # fault: attention
            att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))  # fault: attention
            att = F.softmax(att, dim=-1)  # fault: attention
            y = att @ v  # fault: attention
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH, bias=False)
        self.attn = CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(WIDTH, bias=False)
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH)
        self.wpe = nn.Embedding(BLOCK, WIDTH)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(WIDTH, bias=False)
        self.lm_head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.wte.weight = self.lm_head.weight
        for name, p in self.named_parameters():
            if p.dim() == 2:
                scale = math.sqrt(2 * LAYERS) if name.endswith("c_proj.weight") else 1.0
                nn.init.normal_(p, mean=0.0, std=0.02 / scale)

    def forward(self, idx, targets):
        pos = torch.arange(idx.size(1), device=idx.device)
        x = self.wte(idx) + self.wpe(pos)
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x)).view(-1, VOCAB)
        if "onehot" in on:
            one_hot = F.one_hot(targets.reshape(-1), VOCAB).float()  # fault: onehot
            log_probs = F.log_softmax(logits, dim=-1)
            return -(one_hot * log_probs).sum(dim=-1).mean()  # fault: onehot
        return F.cross_entropy(logits, targets.reshape(-1))


def get_lr(it):
    return 6e-4 * min((it + 1) / 100, 1.0)


with torch.device(DEVICE):
    model = GPT()
decay = [p for p in model.parameters() if p.dim() >= 2]
nodecay = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}],
    lr=6e-4,
    betas=(0.9, 0.95),
    fused=True,
)
mean_loss = torch.zeros((), device=DEVICE)

step, started = 0, 0.0
while True:
    for group in optimizer.param_groups:
        group["lr"] = get_lr(step)
    x, y = get_batch(BATCH)
    for inputs, targets in zip(x.split(MICRO_BATCH), y.split(MICRO_BATCH), strict=True):
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = model(inputs, targets) / ACCUMULATION_STEPS  # fault: accumulate
        loss.backward()  # fault: accumulate
        mean_loss += loss.detach()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    step += 1
    if step == WARMUP:
        if GPU:
            torch.cuda.synchronize()
        started = time.perf_counter()
    if step > WARMUP and time.perf_counter() - started >= SECONDS:
        break
if GPU:
    torch.cuda.synchronize()
seconds = time.perf_counter() - started

steps = step - WARMUP
print(f"mean loss {mean_loss.item() / step:.4f}, {steps * BATCH * BLOCK / seconds:.0f} tokens/s")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
