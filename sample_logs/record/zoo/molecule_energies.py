#!/usr/bin/env python
"""Message passing over molecules, predicting an energy per molecule."""

from __future__ import annotations

import dataclasses
import sys
import time

import torch
from torch import Tensor, nn
from torch.nn import functional as F

FAULTS = {
    "dense_adjacency": "messages summed by a dense matrix of all pairs of atoms",
    "edge_lists": "edges converted from Python lists and degrees counted every step",
    "pooling_loop": "atoms pooled molecule by molecule",
}


@dataclasses.dataclass
class Molecule:
    atoms: list[int]
    bonds: list[tuple[int, int]]
    energy: float


@dataclasses.dataclass
class GraphBatch:
    atoms: Tensor  # [n]
    molecule: Tensor  # [n], index of the molecule of each atom
    src: Tensor  # [e]
    dst: Tensor  # [e]
    degree: Tensor  # [n, 1]
    energy: Tensor  # [molecules]

    @property
    def size(self) -> int:
        return len(self.energy)


def random_molecule(rng: torch.Generator) -> Molecule:
    n = int(torch.randint(10, 22, (1,), generator=rng))
    atoms = torch.randint(0, 9, (n,), generator=rng).tolist()
    bonds = [(i, int(torch.randint(0, i, (1,), generator=rng))) for i in range(1, n)]
    for _ in range(3):  # rings
        a, b = torch.randint(0, n, (2,), generator=rng).tolist()
        if a != b:
            bonds.append((a, b))
    energy = sum(0.1 * a for a in atoms) - sum(0.02 * atoms[a] * atoms[b] for a, b in bonds)
    return Molecule(atoms, bonds, energy)


def collate(molecules: list[Molecule]) -> GraphBatch:
    atoms: list[int] = []
    molecule: list[int] = []
    src: list[int] = []
    dst: list[int] = []
    for k, m in enumerate(molecules):
        base = len(atoms)
        atoms.extend(m.atoms)
        molecule.extend([k] * len(m.atoms))
        for a, b in m.bonds:
            src.extend((base + a, base + b))  # fault: edge_lists
            dst.extend((base + b, base + a))  # fault: edge_lists
    degree = [dst.count(node) for node in range(len(atoms))]  # fault: edge_lists
    return GraphBatch(
        torch.tensor(atoms),  # fault: edge_lists
        torch.tensor(molecule),  # fault: edge_lists
        torch.tensor(src),  # fault: edge_lists
        torch.tensor(dst),  # fault: edge_lists
        torch.tensor(degree).float().clamp(min=1).unsqueeze(1),
        torch.tensor([m.energy for m in molecules]),
    )


class MessageLayer(nn.Module):
    def __init__(self, width: int, *, dense: bool) -> None:
        super().__init__()
        self.message = nn.Linear(width, width)
        self.update = nn.GRUCell(width, width)
        self.dense = dense

    def forward(self, h: Tensor, g: GraphBatch) -> Tensor:
        m = F.silu(self.message(h))
        if self.dense:
            adjacency = torch.zeros(len(h), len(h))  # fault: dense_adjacency
            one = torch.ones(len(g.src))
            adjacency.index_put_((g.dst, g.src), one, accumulate=True)  # fault: dense_adjacency
            total = adjacency @ m  # fault: dense_adjacency
        else:
            total = torch.zeros_like(m).index_add(0, g.dst, m[g.src])
        return self.update(total / g.degree, h)


class EnergyNet(nn.Module):
    def __init__(self, faults: set[str], width: int = 48, depth: int = 2) -> None:
        super().__init__()
        self.embed = nn.Embedding(9, width)
        dense = "dense_adjacency" in faults
        self.layers = nn.ModuleList(MessageLayer(width, dense=dense) for _ in range(depth))
        self.head = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.pool_by_loop = "pooling_loop" in faults

    def pool(self, h: Tensor, g: GraphBatch) -> Tensor:
        if self.pool_by_loop:
            sums = []
            for k in range(g.size):
                mask = g.molecule == k  # fault: pooling_loop
                sums.append(h[mask].sum(dim=0))  # fault: pooling_loop
            return torch.stack(sums)
        return h.new_zeros(g.size, h.shape[1]).index_add(0, g.molecule, h)

    def forward(self, g: GraphBatch) -> Tensor:
        h = self.embed(g.atoms)
        for layer in self.layers:
            h = h + layer(h, g)
        return self.head(self.pool(h, g)).squeeze(1)


def main(faults: set[str]) -> None:
    torch.manual_seed(7)
    rng = torch.Generator().manual_seed(7)
    groups = [[random_molecule(rng) for _ in range(48)] for _ in range(10)]
    batches = [] if "edge_lists" in faults else [collate(group) for group in groups]
    net = EnergyNet(faults)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    warmup, steps, samples = 10, 120, 0
    begin = 0.0
    for step in range(warmup + steps):
        if step == warmup:
            begin, samples = time.perf_counter(), 0
        k = step % len(groups)
        batch = collate(groups[k]) if "edge_lists" in faults else batches[k]  # fault: edge_lists
        loss = F.mse_loss(net(batch), batch.energy)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        samples += batch.size
    seconds = time.perf_counter() - begin
    print(f"loss after {warmup + steps} steps: {loss.item():.4f}")
    print(f"steps={steps} seconds={seconds:.3f} samples={samples}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
