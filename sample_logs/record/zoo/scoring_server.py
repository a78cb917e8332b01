#!/usr/bin/env python3
"""Scores texts with a small encoder: clients put requests in a queue, a worker serves them."""

import math
import queue
import sys
import threading
import time
from concurrent.futures import Future

import torch
from torch import nn
from torch.nn import functional

FAULTS = {
    "dequantize": "int8 weights turned to float32 again in each request",
    "autograd": "no inference mode: graphs recorded for weights that require gradients",
    "single": "requests served one by one, though the queue holds more",
}
on = set(sys.argv[1:])

DIM, HEADS, LAYERS, VOCAB, LENGTH = 256, 4, 2, 2000, 16
MAX_BATCH = 8
WARMUP, ROUNDS = 5, 90


class Int8Linear(nn.Module):
    """Linear layer of a checkpoint with int8 weights and one scale per output row."""

    def __init__(self, n_in, n_out):
        super().__init__()
        weight = torch.randn(n_out, n_in) / math.sqrt(n_in)
        scale = weight.abs().amax(1, keepdim=True) / 127
        self.register_buffer("quantized", (weight / scale).round().to(torch.int8))
        self.scale = nn.Parameter(scale)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.weight = None

    def unpack(self):
        self.weight = nn.Parameter(self.quantized.float() * self.scale.detach())

    def forward(self, x):
        if self.weight is not None:
            return functional.linear(x, self.weight, self.bias)  # fault: autograd # fault: single
        weight = self.quantized.to(x.dtype) * self.scale  # fault: dequantize
        return functional.linear(x, weight, self.bias)  # fault: autograd # fault: single


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.proj = Int8Linear(DIM, 3 * DIM), Int8Linear(DIM, DIM)
        self.up, self.down = Int8Linear(DIM, 4 * DIM), Int8Linear(4 * DIM, DIM)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, DIM))
        return x + self.down(functional.gelu(self.up(self.ln2(x))))  # fault: autograd


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = Int8Linear(DIM, 1)

    def forward(self, tokens):
        return self.head(self.blocks(self.embed(tokens)).mean(1)).squeeze(-1)


class Server(threading.Thread):
    def __init__(self, model):
        super().__init__(daemon=True)
        self.model = model
        self.requests = queue.Queue()

    def submit(self, tokens):
        future = Future()
        self.requests.put((tokens, future))
        return future

    def next_batch(self):
        batch = [self.requests.get()]
        while "single" not in on and len(batch) < MAX_BATCH and batch[-1] is not None:
            try:
                batch.append(self.requests.get(timeout=0.002))
            except queue.Empty:
                break
        return batch

    def predict(self, tokens):
        if "autograd" in on:
            return self.model(tokens)  # fault: autograd # fault: single
        with torch.inference_mode():
            return self.model(tokens)  # fault: single

    def run(self):
        while None not in (batch := self.next_batch()):
            scores = self.predict(torch.stack([tokens for tokens, _ in batch]))  # fault: single
            for (_, future), score in zip(batch, scores):
                future.set_result(score.item())


def main():
    torch.manual_seed(3)
    model = Scorer().eval()
    if "dequantize" not in on:
        for module in model.modules():
            if isinstance(module, Int8Linear):
                module.unpack()
    server = Server(model)
    server.start()
    start = 0.0
    for round_number in range(WARMUP + ROUNDS):
        if round_number == WARMUP:
            start = time.monotonic()
        tokens = torch.randint(0, VOCAB, (MAX_BATCH, LENGTH))
        for future in [server.submit(row) for row in tokens]:
            future.result()
    seconds = time.monotonic() - start
    server.requests.put(None)
    server.join()
    print(f"steps={ROUNDS} seconds={seconds:.4f} samples={ROUNDS * MAX_BATCH}")


if __name__ == "__main__":
    main()
