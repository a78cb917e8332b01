"""Instruction finetuning of a small Llama-like model, with packing of examples written by hand."""

import random
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "unpacked": "one row per example, padded to the longest of the batch",
    "prompts": "logits of prompts and padding, which the loss ignores",
    "tokenizer": "texts tokenized again for each batch",
}
on = set(sys.argv[1:])

DIM, LAYERS, HEADS, VOCAB, ROW, BATCH = 128, 2, 4, 1500, 128, 12
WARMUP, STEPS = 5, 60
PAD, BOS, EOS = 0, 1, 2


class Tokenizer:
    """Greedy longest match over a vocabulary of word pieces."""

    def __init__(self):
        letters = "abcdefghijklmnopqrstuvwxyz .,:?#\n"
        rng = random.Random(0)
        pieces = ["".join(rng.choices(letters[:26], k=rng.randint(2, 3))) for _ in range(6000)]
        self.ids = {p: i + 3 for i, p in enumerate([*letters, *dict.fromkeys(pieces)][: VOCAB - 3])}

    def encode(self, text):
        ids, i = [], 0
        while i < len(text):
            for width in range(20, 0, -1):
                piece = text[i : i + width].lower()  # fault: tokenizer
                if piece in self.ids:  # fault: tokenizer
                    ids.append(self.ids[piece])
                    break
            i += width
        return ids


def make_examples(count=400):
    rng = random.Random(1)
    words = ["".join(rng.choices("aeioubcdlmnrst", k=rng.randint(2, 6))) for _ in range(500)]
    for _ in range(count):
        n = min(2 + int(rng.expovariate(1 / 9)), 34)
        question, response = rng.choices(words, k=n), rng.choices(words, k=max(2, n // 3))
        yield f"### user: {' '.join(question)}?\n### bot: ", " ".join(response) + "."


def to_ids(tokenizer, example):
    prompt, response = (tokenizer.encode(part) for part in example)  # fault: tokenizer
    ids = [BOS, *prompt, *response, EOS][:ROW]
    labels = ([-100] * (1 + len(prompt)) + response + [EOS])[:ROW]
    return ids, labels


def collate(examples):
    """Pack examples into rows; tokens see only their own example."""
    rows = []
    for ids, labels in sorted(examples, key=lambda e: -len(e[0])):
        for row in rows:
            if "unpacked" not in on and sum(len(e[0]) for e in row) + len(ids) <= ROW:
                row.append((ids, labels))
                break
        else:
            rows.append([(ids, labels)])  # fault: unpacked
    width = max(sum(len(e[0]) for e in row) for row in rows)
    batch = torch.zeros(4, len(rows), width, dtype=torch.long)
    batch[1].fill_(-100)
    for r, row in enumerate(rows):
        end = 0
        for number, (ids, labels) in enumerate(row, 1):
            at = slice(end, end + len(ids))
            end = at.stop
            batch[0, r, at] = torch.tensor(ids)
            batch[1, r, at] = torch.tensor(labels)
            batch[2, r, at] = torch.arange(len(ids))
            batch[3, r, at] = number
    ids, labels, positions, owner = batch
    mask = (owner[:, :, None] == owner[:, None, :]).tril()
    return ids, labels, positions, mask[:, None]


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class LlamaLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.gate_up = nn.Linear(DIM, 6 * DIM, bias=False)
        self.down = nn.Linear(3 * DIM, DIM, bias=False)

    def forward(self, x, cos, sin, mask):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.o(h.transpose(1, 2).reshape(b, t, DIM))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)  # fault: unpacked
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(LlamaLayer() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)
        half = DIM // HEADS // 2
        self.register_buffer("freqs", 10000.0 ** (-torch.arange(half) / half))

    def forward(self, ids, labels, positions, mask):
        angles = positions[:, None, :, None] * self.freqs
        cos, sin = angles.cos(), angles.sin()
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cos, sin, mask)
        x, labels = self.norm(x)[:, :-1].flatten(0, 1), labels[:, 1:].flatten()
        if "prompts" not in on:
            keep = (labels != -100).nonzero().squeeze(1)
            x, labels = x[keep], labels[keep]
        return F.cross_entropy(self.head(x), labels, ignore_index=-100)  # fault: prompts


torch.manual_seed(0)
tokenizer = Tokenizer()
examples = list(make_examples())
if "tokenizer" not in on:
    examples = [to_ids(tokenizer, example) for example in examples]
model = Llama()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4, weight_decay=0.0)
order = random.Random(2)

for step in range(WARMUP + STEPS):
    if step == WARMUP:
        t0 = time.perf_counter()
    batch = order.sample(examples, BATCH)
    if "tokenizer" in on:
        batch = [to_ids(tokenizer, example) for example in batch]  # fault: tokenizer
    loss = model(*collate(batch))  # fault: unpacked
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

seconds = time.perf_counter() - t0
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
