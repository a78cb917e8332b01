"""Pretraining of a small decoder-only language model on fables, with gradient accumulation."""

import math
import random
import re
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "encoding": "the whole document encoded anew for every window cut from it",
    "sorting": "a full sort of the logits for the top-5 accuracy in every micro-batch",
    "attention": "attention scores written out, with a mask made in every call",
    "micro": "accumulation over micro-batches of one sequence each",
}
on = set(sys.argv[1:])

VOCAB, CONTEXT, WIDTH, HEADS, LAYERS = 600, 96, 96, 6, 2
TOKENS_PER_STEP = 12 * CONTEXT
MICRO_BATCH = 1 if "micro" in on else 6  # fault: micro
ACCUMULATE = TOKENS_PER_STEP // (MICRO_BATCH * CONTEXT)
WARMUP, STEPS, LOG_EVERY = 5, 60, 20
LR, MIN_LR = 1e-3, 1e-4

random.seed(0)
torch.manual_seed(0)


class WordTokenizer:
    pattern = re.compile(r"\w+|[^\w\s]")

    def __init__(self, texts):
        words = sorted({w for t in texts for w in self.pattern.findall(t.lower())})
        self.ids = {w: i + 1 for i, w in enumerate(words[: VOCAB - 1])}

    def encode(self, text):
        return [self.ids.get(w, 0) for w in self.pattern.findall(text.lower())]


class FableWindows(Dataset):
    def __init__(self, documents, tokenizer):
        self.documents = documents
        self.tokenizer = tokenizer
        self.encoded = [torch.tensor(tokenizer.encode(d)) for d in documents]

    def __len__(self):
        return 10_000

    def __getitem__(self, index):
        number = index % len(self.documents)
        if "encoding" in on:
            ids = torch.tensor(self.tokenizer.encode(self.documents[number]))  # fault: encoding
        else:
            ids = self.encoded[number]
        start = index * 37 % (len(ids) - CONTEXT - 1)
        return ids[start : start + CONTEXT], ids[start + 1 : start + CONTEXT + 1]


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (z.view(b, t, HEADS, -1).transpose(1, 2) for z in self.qkv(x).chunk(3, dim=-1))
        if "attention" in on:
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # fault: attention
            mask = torch.tril(torch.ones(t, t)) == 0  # fault: attention
            scores = scores.masked_fill(mask, float("-inf"))  # fault: attention
            y = F.softmax(scores, dim=-1) @ v  # fault: attention
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def cosine_lr(step):
    return MIN_LR + 0.5 * (LR - MIN_LR) * (1 + math.cos(math.pi * step / (WARMUP + STEPS)))


lexicon = ["".join(random.choices("aeioulnrstdm", k=random.randint(2, 8))) for _ in range(900)]
documents = [
    ". ".join(" ".join(random.choices(lexicon, k=12)).capitalize() for _ in range(240))
    for _ in range(40)
]
dataset = FableWindows(documents, WordTokenizer(documents))
loader = iter(DataLoader(dataset, batch_size=MICRO_BATCH, shuffle=True))
model = Decoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), fused=True)

started = 0.0
for step in range(WARMUP + STEPS):
    if step == WARMUP:
        started = time.perf_counter()
    for group in optimizer.param_groups:
        group["lr"] = cosine_lr(step)
    logging = step % LOG_EVERY == 0
    running_loss, running_top5 = torch.zeros(()), torch.zeros(())
    for _ in range(ACCUMULATE):
        x, y = next(loader)
        logits = model(x).flatten(0, 1)
        loss = F.cross_entropy(logits, y.flatten()) / ACCUMULATE
        loss.backward()  # fault: micro
        running_loss += loss.detach()
        if "sorting" in on:
            ranked = logits.detach().argsort(dim=-1, descending=True)[:, :5]  # fault: sorting
            running_top5 += (ranked == y.view(-1, 1)).any(-1).float().mean() / ACCUMULATE
        elif logging:
            ranked = logits.detach().topk(5, dim=-1).indices
            running_top5 += (ranked == y.view(-1, 1)).any(-1).float().mean() / ACCUMULATE
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if logging:
        print(f"step {step}: loss {running_loss.item():.3f}, top-5 {running_top5.item():.3f}")

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * TOKENS_PER_STEP // CONTEXT}")
