"""Two-tower recommender with sampled negatives.

Interactions follow a power law; the towers share nothing but the dimension of their vectors.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn

FAULTS = {
    "dense_grads": "dense gradients of embedding tables of which a batch reads few rows",
    "negatives_loop": "negatives drawn one at a time by a Python loop",
    "single_tensor": "Adam updating each of many small parameters on its own",
}
on = set(sys.argv[1:])


@dataclass(frozen=True)
class Config:
    users: int = 200_000
    items: int = 100_000
    genres: int = 24
    dim: int = 32
    batch: int = 128
    negatives: int = 8
    user_experts: int = 12
    item_experts: int = 2
    steps: int = 100
    warmup: int = 8
    history: dict[int, set[int]] = field(default_factory=dict)


def popular(high: int, count: int, generator: torch.Generator) -> Tensor:
    """Row numbers of which small ones are frequent."""
    return (torch.rand(count, generator=generator) ** 3 * high).long()


def batches(cfg: Config, g: torch.Generator) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    while True:
        users, items = popular(cfg.users, cfg.batch, g), popular(cfg.items, cfg.batch, g)
        for u, i in zip(users.tolist(), items.tolist()):
            cfg.history.setdefault(u, set()).add(i)
        yield users, items, torch.randint(2, (cfg.batch, cfg.genres), generator=g).float()


def draw_negatives(cfg: Config, users: Tensor, g: torch.Generator) -> Tensor:
    if "negatives_loop" in on:
        rows = []
        for user in users.tolist():
            row: list[int] = []
            while len(row) < cfg.negatives:
                item = np.random.randint(cfg.items)  # fault: negatives_loop
                if item not in cfg.history[user]:
                    row.append(item)
            rows.append(row)
        return torch.tensor(rows)
    # Of 100,000 items, the few that a user has seen come up so seldom that they do not matter.
    return torch.randint(cfg.items, (len(users), cfg.negatives), generator=g)


class Tower(nn.Module):
    """Embedding of an id, mixed by experts that a gate weighs."""

    def __init__(self, rows: int, extra: int, experts: int, cfg: Config) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, cfg.dim, sparse="dense_grads" not in on)
        width = cfg.dim + extra
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, cfg.dim))
            for _ in range(experts)
        )
        self.gate = nn.Linear(width, experts)

    def forward(self, ids: Tensor, extra: Tensor | None = None) -> Tensor:
        x = self.table(ids)  # fault: dense_grads
        if extra is not None:
            x = torch.cat([x, extra], dim=-1)
        weights = self.gate(x).softmax(-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=-1)
        return (outputs * weights.unsqueeze(-2)).sum(-1)


def score(
    user_tower: Tower, item_tower: Tower, users: Tensor, items: Tensor, genres: Tensor
) -> Tensor:
    u = nn.functional.normalize(user_tower(users, genres), dim=-1)
    i = nn.functional.normalize(item_tower(items), dim=-1)
    return torch.einsum("bd,bnd->bn", u, i) / 0.1


def train(cfg: Config) -> tuple[float, float]:
    g = torch.Generator().manual_seed(1)
    user_tower = Tower(cfg.users, cfg.genres, cfg.user_experts, cfg)
    item_tower = Tower(cfg.items, 0, cfg.item_experts, cfg)
    tables = [user_tower.table.weight, item_tower.table.weight]
    table_ids = {id(t) for t in tables}
    rest = [
        p
        for tower in (user_tower, item_tower)
        for p in tower.parameters()
        if id(p) not in table_ids
    ]
    table_optimizer = torch.optim.SGD(tables, lr=0.5)
    if "single_tensor" in on:
        dense_optimizer = torch.optim.Adam(rest, lr=1e-3, foreach=False)
    else:
        dense_optimizer = torch.optim.Adam(rest, lr=1e-3, fused=True)
    loss = torch.zeros(())
    stream = batches(cfg, g)
    for step in range(cfg.warmup + cfg.steps):
        if step == cfg.warmup:
            begin = perf_counter()
        users, items, genres = next(stream)
        candidates = torch.cat([items.unsqueeze(1), draw_negatives(cfg, users, g)], dim=1)
        logits = score(user_tower, item_tower, users, candidates, genres)
        loss = nn.functional.cross_entropy(logits, torch.zeros(len(users), dtype=torch.long))
        table_optimizer.zero_grad()
        dense_optimizer.zero_grad()
        loss.backward()  # fault: dense_grads
        table_optimizer.step()  # fault: dense_grads
        dense_optimizer.step()  # fault: single_tensor
    return perf_counter() - begin, loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    config = Config()
    seconds, last_loss = train(config)
    print(f"last loss {last_loss:.3f}")
    print(f"steps={config.steps} seconds={seconds:.3f} samples={config.steps * config.batch}")
