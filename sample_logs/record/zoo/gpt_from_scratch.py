# A GPT with rotary positions and sliding-window attention, from scratch, on text that repeats itself.
import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

FAULTS = {
    "manual_attention": "attention by matmul, masked_fill and softmax",
    "mask_each_forward": "the mask built from lists in every layer of every forward pass",
    "float64": "queries and keys turned into float64 by rotary tables of NumPy",
}
on = set(sys.argv[1:])

# -----------------------------------------------------------------------------
block_size = 128
window = 96
batch_size = 4
n_layer, n_head, n_embd = 3, 4, 96
learning_rate = 1e-3
warmup_iters, max_iters = 5, 70
# -----------------------------------------------------------------------------
torch.manual_seed(1337)

text = "".join(
    f"{i} times {i % 7} is {i * (i % 7)}, and {i} less {i % 5} is {i - i % 5}. "
    for i in range(3000)
)
chars = sorted(set(text))
stoi = {c: i for i, c in enumerate(chars)}
data = torch.tensor([stoi[c] for c in text])


def get_batch():
    ix = torch.randint(len(data) - block_size - 1, (batch_size, 1)) + torch.arange(block_size + 1)
    chunk = data[ix]
    return chunk[:, :-1], chunk[:, 1:]


def build_mask(T):
    rows = [[i - window < j <= i for j in range(T)] for i in range(T)]  # fault: mask_each_forward
    return torch.tensor(rows)  # fault: mask_each_forward


def rotary_tables(T, dim):
    freqs = 1.0 / 10000 ** (np.arange(0, dim, 2) / dim)
    angles = np.outer(np.arange(T), freqs)
    angles = np.concatenate([angles, angles], axis=1)
    cos, sin = torch.from_numpy(np.cos(angles)), torch.from_numpy(np.sin(angles))
    return (cos, sin) if "float64" in on else (cos.float(), sin.float())


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin  # fault: float64


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=False)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=False)
        cos, sin = rotary_tables(block_size, n_embd // n_head)
        self.register_buffer("cos", cos)
        self.register_buffer("sin", sin)
        self.register_buffer("mask", build_mask(block_size))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            t.view(B, T, n_head, C // n_head).transpose(1, 2)
            for t in self.c_attn(x).split(n_embd, dim=2)
        )
        q = rotate(q, self.cos[:T], self.sin[:T])  # fault: float64
        k = rotate(k, self.cos[:T], self.sin[:T])  # fault: float64
        v = v.to(q.dtype)
        if "mask_each_forward" in on:
            mask = build_mask(T)  # fault: mask_each_forward
        else:
            mask = self.mask[:T, :T]
        if "manual_attention" in on:
            scale = 1.0 / math.sqrt(k.size(-1))
            att = q @ k.transpose(-2, -1) * scale  # fault: manual_attention  # fault: float64
            att = att.masked_fill(~mask, -torch.inf)  # fault: manual_attention  # fault: float64
            att = F.softmax(att, dim=-1)  # fault: manual_attention  # fault: float64
            y = att @ v  # fault: manual_attention  # fault: float64
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # fault: float64
        y = y.transpose(1, 2).reshape(B, T, C).to(x.dtype)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = Attention()
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(chars), n_embd)
        self.h = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(chars), bias=False)

    def forward(self, idx, targets):
        logits = self.lm_head(self.ln_f(self.h(self.wte(idx))))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


model = GPT()
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters")
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, betas=(0.9, 0.95), fused=True)

for it in range(warmup_iters + max_iters):
    if it == warmup_iters:
        t0 = time.perf_counter()
    X, Y = get_batch()
    loss = model(X, Y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
dt = time.perf_counter() - t0
print(f"final loss {loss.item():.4f}, {batch_size * block_size * max_iters / dt:.0f} tokens/s")
print(f"steps={max_iters} seconds={dt:.3f} samples={max_iters * batch_size}")
