"""A small transformer language model, recorded with stacks, modules and memory.

It has no fault, and shows all that a trace can hold. `long_job` is one job of two spans, by
`schedule(skip_first, wait, warmup, active, repeat)`; `with_labels` is the same model with its
phases in `record_function` labels, for grouping.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

VOCABULARY = 512
CONTEXT = 64
WIDTH = 64
HEADS = 4
BATCH = 16
LONG_JOB = Plan(
    skip_first=2, wait=1, warmup=1, active=5, repeat=2, stacks=True, modules=True, memory=True
)
WITH_LABELS = Plan(active=5, stacks=True, modules=True, memory=True)

Label = Callable[[str], AbstractContextManager[object]]


class CausalAttention(nn.Module):
    """Causal self-attention: a token attends only to earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        batch, length, width = tokens.shape
        heads = self.qkv(tokens).view(batch, length, 3 * HEADS, width // HEADS).transpose(1, 2)
        query, key, value = heads.chunk(3, dim=1)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        out: Tensor = self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return out


class Block(nn.Module):
    """Attention and a two-layer network, each after a normalization and with a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.attention = CausalAttention()
        self.norm2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attention(self.norm1(tokens))
        out: Tensor = tokens + self.mlp(self.norm2(tokens))
        return out


class LanguageModel(nn.Module):
    """Two blocks between an embedding and the scores of the next token."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.zeros(CONTEXT, WIDTH))
        self.blocks = nn.Sequential(Block(), Block())
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.head(self.norm(self.blocks(self.embedding(tokens) + self.positions)))
        return scores


def record(run: Path, plan: Plan, device: torch.device, label: Label) -> None:
    """Trains to predict the next of random tokens."""
    seeded()
    model = LanguageModel().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    with recorded(run, device, plan) as profiler:
        for _ in range(plan.steps):
            with label("batch"):
                tokens = torch.randint(VOCABULARY, (BATCH, CONTEXT + 1), device=device)
            with label("forward"):
                scores = model(tokens[:, :-1])
                loss = functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
            with label("backward"):
                optimizer.zero_grad()
                loss.backward()
            with label("optimizer"):
                optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the long job and the labelled one."""
    record(where.run("long_job"), LONG_JOB, where.device, lambda _name: nullcontext())
    record(where.run("with_labels"), WITH_LABELS, where.device, record_function)


if __name__ == "__main__":
    main(target("language_model", __doc__))
