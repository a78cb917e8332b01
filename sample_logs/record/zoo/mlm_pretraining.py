"""Masked language modelling from scratch on log lines of a build farm."""

import math
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

FAULTS = {
    "all_positions": "vocabulary scores of every position though only masked ones count",
    "masking": "a Python loop over single tokens that picks those to mask",
    "head_loop": "attention heads computed one after the other with their own small projections",
}
on = set(sys.argv[1:])

VOCAB, DIM, HEADS, LAYERS, SEQ = 3000, 128, 8, 2, 48
PAD, CLS, SEP, MASK = 0, 1, 2, 3
BATCH, WARMUP, STEPS = 8, 5, 60

random.seed(1)
torch.manual_seed(1)


class HeadLoop(nn.Module):
    def __init__(self):
        super().__init__()
        size = DIM // HEADS
        self.query = nn.ModuleList(nn.Linear(DIM, size) for _ in range(HEADS))
        self.key = nn.ModuleList(nn.Linear(DIM, size) for _ in range(HEADS))
        self.value = nn.ModuleList(nn.Linear(DIM, size) for _ in range(HEADS))
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        heads = []
        for query, key, value in zip(self.query, self.key, self.value, strict=True):
            q, k, v = query(x), key(x), value(x)  # fault: head_loop
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))  # fault: head_loop
            heads.append(scores.softmax(-1) @ v)  # fault: head_loop
        return self.proj(torch.cat(heads, -1))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(b, t, DIM))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = HeadLoop() if "head_loop" in on else Attention()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))  # fault: head_loop
        return x + self.mlp(self.norm2(x))


class MaskedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.positions = nn.Parameter(torch.randn(SEQ, DIM) * 0.02)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(DIM)
        self.decoder = nn.Linear(DIM, VOCAB)

    def forward(self, ids, labels):
        x = self.norm(self.blocks(self.words(ids) + self.positions))
        if "all_positions" in on:
            logits = self.decoder(x)  # fault: all_positions
            return F.cross_entropy(  # fault: all_positions
                logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100
            )
        chosen = labels != -100
        return F.cross_entropy(self.decoder(x[chosen]), labels[chosen])


def mask_tokens_loop(ids):
    ids, labels = ids.clone(), torch.full_like(ids, -100)
    for row in range(ids.size(0)):
        for i in range(ids.size(1)):
            token = ids[row, i]  # fault: masking
            if token in (PAD, CLS, SEP) or random.random() > 0.15:  # fault: masking
                continue
            labels[row, i] = token  # fault: masking
            draw = random.random()
            if draw < 0.8:
                ids[row, i] = MASK  # fault: masking
            elif draw < 0.9:
                ids[row, i] = random.randrange(4, VOCAB)  # fault: masking
    return ids, labels


def mask_tokens(ids):
    chosen = (torch.rand(ids.shape) < 0.15) & (ids > SEP)
    labels = torch.where(chosen, ids, -100)
    draw = torch.rand(ids.shape)
    ids = torch.where(chosen & (draw < 0.8), MASK, ids)
    other = torch.randint(4, VOCAB, ids.shape)
    return torch.where(chosen & (draw >= 0.8) & (draw < 0.9), other, ids), labels


lines = torch.randint(4, VOCAB, (2048, SEQ))
lines[:, 0], lines[:, -1] = CLS, SEP

model = MaskedLM()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)

begin = 0.0
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        begin = time.perf_counter()
    batch = lines[torch.randint(len(lines), (BATCH,))]
    if "masking" in on:
        ids, labels = mask_tokens_loop(batch)  # fault: masking
    else:
        ids, labels = mask_tokens(batch)
    loss = model(ids, labels)  # fault: all_positions
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # fault: all_positions  # fault: head_loop
    optimizer.step()
    if step % 25 == 0:
        print(f"iter {step}: masked loss {loss.item():.3f}")

print(f"steps={STEPS} seconds={time.perf_counter() - begin:.4f} samples={STEPS * BATCH}")
