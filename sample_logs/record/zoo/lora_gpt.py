"""
Finetunes a small GPT with LoRA, written by hand. Everything in one file, no dependencies.
Prompts and completions are synthetic: a sequence, a separator, and the sequence sorted.
"""

import math
import sys
import time

import torch
import torch.nn as nn
from torch.nn import functional as F

FAULTS = {
    "base_grads": "gradients of the base weights computed though only the adapters are trained",
    "explicit_attention": "attention by an explicit softmax, with a new causal mask per layer",
    "padded_max": "all sequences padded to the block size rather than the longest of the batch",
}
on = set(sys.argv[1:])

# -----------------------------------------------------------------------------
# config
batch_size = 6
block_size = 160
vocab_size = 512
n_layer, n_head, n_embd = 3, 4, 128
lora_rank, lora_alpha = 8, 16
learning_rate = 1e-3
warmup_iters, max_iters = 5, 70
pad, sep = 0, 1
torch.manual_seed(1337)
# -----------------------------------------------------------------------------


class LoRALinear(nn.Module):
    """A linear layer of the pretrained model plus a low-rank update."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.base = nn.Linear(n_in, n_out)
        self.lora_a = nn.Parameter(torch.randn(lora_rank, n_in) / math.sqrt(n_in))
        self.lora_b = nn.Parameter(torch.zeros(n_out, lora_rank))

    def forward(self, x):
        update = F.linear(F.linear(x, self.lora_a), self.lora_b)
        return self.base(x) + update * (lora_alpha / lora_rank)  # fault: base_grads


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = LoRALinear(n_embd, 3 * n_embd)
        self.c_proj = LoRALinear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            y.view(B, T, n_head, C // n_head).transpose(1, 2)
            for y in self.c_attn(x).split(n_embd, dim=2)
        )
        if "explicit_attention" in on:
            mask = torch.tril(torch.ones(T, T)).view(1, 1, T, T)  # fault: explicit_attention
            att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))  # fault: explicit_attention
            att = att.masked_fill(mask == 0, float("-inf"))  # fault: explicit_attention
            y = F.softmax(att, dim=-1) @ v  # fault: explicit_attention
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.c_fc = LoRALinear(n_embd, 4 * n_embd)
        self.c_proj = LoRALinear(4 * n_embd, n_embd)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.Sequential(*[Block() for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        logits = self.lm_head(self.ln_f(self.h(x)))
        return F.cross_entropy(logits.view(-1, vocab_size), targets.reshape(-1), ignore_index=pad)


def make_example():
    n = int(torch.randint(10, 60, ()))
    prompt = torch.randint(2, vocab_size, (n,))
    return torch.cat([prompt, torch.tensor([sep]), prompt.sort().values])


examples = [make_example() for _ in range(512)]


def get_batch(it):
    rows = [examples[(it * batch_size + i) % len(examples)] for i in range(batch_size)]
    if "padded_max" in on:
        T = block_size + 1
    else:
        T = max(len(r) for r in rows)
    data = torch.full((batch_size, T), pad)  # fault: padded_max
    for i, r in enumerate(rows):
        data[i, : len(r)] = r
    return data[:, :-1], data[:, 1:]


model = GPT()
adapters = [p for name, p in model.named_parameters() if "lora_" in name]
if "base_grads" not in on:
    model.requires_grad_(False)
    for p in adapters:
        p.requires_grad_(True)
optimizer = torch.optim.AdamW(adapters, lr=learning_rate, weight_decay=0.0, fused=True)

losses = []
for it in range(warmup_iters + max_iters):
    if it == warmup_iters:
        t0 = time.time()
    X, Y = get_batch(it)
    loss = model(X, Y)  # fault: padded_max
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # fault: base_grads
    nn.utils.clip_grad_norm_(adapters, 1.0)
    optimizer.step()
    losses.append(loss.detach())

dt = time.time() - t0
print(f"first loss {losses[0].item():.5f}, last loss {losses[-1].item():.5f}")
print(f"steps={max_iters} seconds={dt:.3f} samples={max_iters * batch_size}")
