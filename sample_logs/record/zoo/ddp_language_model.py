"""Causal language model on sentences of different lengths, two processes with gloo."""

import os
import socket
import sys
import time
from contextlib import nullcontext

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

FAULTS = {
    "single": "an all-reduce for each parameter after the backward pass",
    "skewed": "short sentences for one process and long ones for the other",
    "onehot": "a one-hot matrix over the vocabulary in the loss",
}

WORLD, MICRO, PARTS = 2, 4, 2  # each process takes PARTS micro-batches per step
VOCAB, DIM, LAYERS, HEADS, LONGEST = 1500, 96, 3, 4, 96
WARMUP, STEPS = 4, 60


def make_corpus(count=1500):
    rng = np.random.default_rng(0)
    lengths = rng.integers(12, LONGEST + 1, count)
    return [torch.from_numpy(rng.integers(1, VOCAB, int(n))) for n in lengths]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(h.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, DIM)
        self.positions = nn.Embedding(LONGEST, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.tokens.weight.T


def parts_of_rank(sentences, rank, on):
    """Return the micro-batches of a process, of sentences of similar length each."""
    ordered = sorted(sentences, key=len)
    chunks = [ordered[i : i + MICRO] for i in range(0, len(ordered), MICRO)]
    if "skewed" in on:
        return chunks[rank * PARTS : (rank + 1) * PARTS]  # fault: skewed
    return [chunks[0], chunks[3]] if rank == 0 else [chunks[1], chunks[2]]


def token_loss(logits, targets, on):
    if "onehot" in on:
        onehot = F.one_hot(targets, VOCAB).float()  # fault: onehot
        nll = -(onehot * F.log_softmax(logits, dim=-1)).sum(-1)  # fault: onehot
        return (nll * (targets != 0)).sum()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0, reduction="sum")


def average_gradients(model):
    for param in model.parameters():
        dist.all_reduce(param.grad, op=dist.ReduceOp.SUM)  # fault: single
        param.grad /= WORLD


def worker(rank, port, on):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    model = LanguageModel()
    ddp = None if "single" in on else DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    corpus = make_corpus()
    shuffle = np.random.default_rng(7)

    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            dist.barrier()
            started = time.perf_counter()
        picked = [corpus[i] for i in shuffle.choice(len(corpus), WORLD * PARTS * MICRO, False)]
        tokens = sum(len(s) - 1 for s in picked)
        total = 0.0
        parts = parts_of_rank(picked, rank, on)  # fault: skewed
        for i, part in enumerate(parts):
            ids = nn.utils.rnn.pad_sequence(part, batch_first=True)
            last = i == PARTS - 1
            with ddp.no_sync() if ddp and not last else nullcontext():
                logits = (ddp or model)(ids[:, :-1])
                loss = token_loss(logits, ids[:, 1:], on) * (WORLD / tokens)  # fault: onehot
                loss.backward()
            total += loss.detach()
        if ddp is None:
            average_gradients(model)  # fault: single
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}: loss on rank 0 {total.item():.3f}", flush=True)

    seconds = time.perf_counter() - started
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * WORLD * PARTS * MICRO}")


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(worker, args=(port, set(sys.argv[1:])), nprocs=WORLD)
