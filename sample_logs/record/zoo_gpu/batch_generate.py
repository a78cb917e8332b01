"""Offline generation: a large batch of prompts, a small Llama of our own, a KV cache."""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

FAULTS = {
    "concat": "a key-value cache that grows by concatenation for every token",
    "tolist": "a read of the new token of each sequence on its own",
    "sort": "a sort of the whole vocabulary for top-k sampling",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
dtype = torch.bfloat16 if GPU else torch.float32
BATCH, PROMPT, LENGTH = (256, 768, 1280) if GPU else (4, 16, 48)
LAYERS, HEADS, WIDTH, HIDDEN, VOCAB = (12, 8, 1024, 2816, 32000) if GPU else (2, 2, 64, 128, 512)
HEAD = WIDTH // HEADS
TOP_K, TEMPERATURE = 50, 0.8
WARMUP, SECONDS = 10, 1.0


def rope_table():
    freqs = 1.0 / 10000 ** (torch.arange(0, HEAD, 2).float() / HEAD)
    angles = torch.outer(torch.arange(LENGTH).float(), freqs).repeat(1, 2)
    return angles.cos().to(device, dtype), angles.sin().to(device, dtype)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class KVCache:
    def __init__(self):
        self.k = self.v = None
        if "concat" not in on:
            self.k = torch.empty(BATCH, HEADS, LENGTH, HEAD, device=device, dtype=dtype)
            self.v = torch.empty_like(self.k)

    def reset(self):
        if "concat" in on:
            self.k = self.v = None

    def append(self, k, v, start):
        if "concat" in on:
            if self.k is None:
                self.k, self.v = k, v
            else:
                self.k = torch.cat((self.k, k), dim=2)  # fault: concat
                self.v = torch.cat((self.v, v), dim=2)  # fault: concat
            return self.k, self.v
        end = start + k.size(2)
        self.k[:, :, start:end] = k
        self.v[:, :, start:end] = v
        return self.k[:, :, :end], self.v[:, :, :end]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.cache = KVCache()

    def forward(self, x, cos, sin, start):
        B, T, _ = x.shape
        qkv = self.qkv(x).view(B, T, 3 * HEADS, HEAD).transpose(1, 2)
        qk, v = qkv.split((2 * HEADS, HEADS), dim=1)
        q, k = rotate(qk, cos, sin).chunk(2, dim=1)
        k, v = self.cache.append(k, v, start)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        return self.out(y.transpose(1, 2).reshape(B, T, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.attention = Attention()
        self.mlp_norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.gate_up = nn.Linear(WIDTH, 2 * HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x, cos, sin, start):
        x = x + self.attention(self.attention_norm(x), cos, sin, start)
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.RMSNorm(WIDTH, eps=1e-5)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, tokens, start):
        end = start + tokens.size(1)
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, cos[start:end], sin[start:end], start)
        return self.head(self.norm(x[:, -1]))


def sample(logits):
    logits = logits.float() / TEMPERATURE
    if "sort" in on:
        values, order = torch.sort(logits, dim=-1, descending=True)  # fault: sort
        values, order = values[:, :TOP_K], order[:, :TOP_K]
    else:
        values, order = torch.topk(logits, TOP_K, dim=-1)
    probs = values.softmax(-1)
    choice = (probs / torch.empty_like(probs).exponential_(1)).argmax(-1, keepdim=True)
    return order.gather(1, choice)


torch.manual_seed(0)
cos, sin = rope_table()
with device:
    model = Llama().to(dtype).eval()
prompts = torch.randint(0, VOCAB, (BATCH, PROMPT), device=device)
generated = torch.zeros(BATCH, LENGTH, dtype=torch.long, device=device)
texts = [[] for _ in range(BATCH)]


def prefill():
    for layer in model.layers:
        layer.attention.cache.reset()
    return sample(model(prompts, 0))


BACKENDS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
with torch.inference_mode(), sdpa_kernel(BACKENDS):
    step, started = 0, 0.0
    token, position = prefill(), PROMPT
    while True:
        token = sample(model(token, position))
        if "tolist" in on:
            for text, new in zip(texts, token, strict=True):
                text.append(new.item())  # fault: tolist
        else:
            generated[:, position] = token[:, 0]
        position += 1
        step += 1
        if position == LENGTH:
            token, position = prefill(), PROMPT
        if step == WARMUP:
            if GPU:
                torch.cuda.synchronize()
            started = time.perf_counter()
        if step > WARMUP and time.perf_counter() - started >= SECONDS:
            break
    if "tolist" not in on:
        texts = generated[:, PROMPT:position].tolist()
    if GPU:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started

steps = step - WARMUP
print(f"{steps * BATCH / seconds:.0f} tokens/s, first text: {texts[0][:8]}")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
