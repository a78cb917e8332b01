"""Encode a corpus with a BERT-base sentence encoder and write the embeddings as a NumPy file."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "pooling": "token states copied to the host and averaged with NumPy",
    "order": "batches in the order of the corpus, padded to their longest sentence",
    "stack": "an array of results that is copied for every batch",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, WIDTH, LAYERS, HEADS = (512, 768, 12, 12) if GPU else (4, 32, 2, 2)
SENTENCES = 131072 if GPU else 256
VOCAB, MAX_LENGTH = 30522, 128
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, mask):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norm1(x + self.out(y.transpose(1, 2).reshape(b, n, WIDTH)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Embedding(MAX_LENGTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])

    def forward(self, ids, mask):
        x = self.norm(self.tokens(ids) + self.positions.weight[: ids.shape[1]])
        mask = mask[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)  # fault: order
        return x


def read_corpus():
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3.5, 0.6, SENTENCES), 4, MAX_LENGTH).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return rng.integers(1000, VOCAB, offsets[-1], dtype=np.int32), offsets, lengths


def make_batches(lengths):
    if "order" in on:
        return np.arange(SENTENCES).reshape(-1, BATCH)  # fault: order
    batches = np.argsort(lengths, kind="stable").reshape(-1, BATCH)
    # Long and short batches in turn, so that the remaining time shown is about right.
    return batches[[i * 101 % len(batches) for i in range(len(batches))]]


def collate(rows):
    longest = -(-int(lengths[rows].max()) // 8) * 8
    ids = np.zeros((len(rows), longest), np.int32)
    for line, row in zip(ids, rows, strict=True):
        line[: lengths[row]] = tokens[offsets[row] : offsets[row + 1]]
    ids = torch.from_numpy(ids)
    return ids.pin_memory().to(device, non_blocking=True) if GPU else ids


def mean_pooling(hidden, mask):
    if "pooling" in on:
        hidden = hidden.float().cpu().numpy()  # fault: pooling
        weights = mask.cpu().numpy()[:, :, None].astype(np.float32)
        mean = (hidden * weights).sum(1) / weights.sum(1)  # fault: pooling
        return torch.from_numpy(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    mean = (hidden * mask[:, :, None]).sum(1, dtype=torch.float32) / mask.sum(1, keepdim=True)
    return F.normalize(mean, dim=1)


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
tokens, offsets, lengths = read_corpus()
batches = make_batches(lengths)
model = Encoder().to(device).eval()
if GPU:
    model.to(torch.bfloat16)
if "stack" in on:
    results = np.empty((0, WIDTH), np.float32)
else:
    results = torch.empty(SENTENCES, WIDTH, pin_memory=GPU)


@torch.inference_mode()
def encode(i):
    global results
    if "stack" in on and i % len(batches) == 0:
        results = results[:0]
    ids = collate(batches[i % len(batches)])
    mask = ids != 0
    embeddings = mean_pooling(model(ids, mask), mask)
    if "stack" in on:
        results = np.vstack([results, embeddings.cpu().numpy()])  # fault: stack
    else:
        start = i % len(batches) * BATCH
        results[start : start + BATCH].copy_(embeddings, non_blocking=True)


for i in range(WARMUP):
    encode(i)
if GPU:
    torch.cuda.synchronize()
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < SECONDS or steps < MIN_STEPS:
    encode(WARMUP + steps)
    steps += 1
if GPU:
    torch.cuda.synchronize()
seconds = time.perf_counter() - begin

done = min(WARMUP + steps, len(batches))
rows = batches[:done].reshape(-1)
with tempfile.TemporaryDirectory() as folder:
    array = np.asarray(results)[: len(rows)]
    np.savez(Path(folder) / "embeddings.npz", rows=rows[: len(array)], embeddings=array)
print(f"{len(array)} embeddings of mean norm {np.linalg.norm(array, axis=1).mean():.3f}")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
