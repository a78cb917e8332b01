"""Message passing network for a property of molecules, in plain PyTorch with gather and scatter."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

FAULTS = {
    "workers": "graphs collated in the main process, between the steps",
    "edges": "the first linear layer of the messages applied per edge instead of per atom",
    "indexing": "rows gathered with x[index], whose gradient sorts the indices",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
BATCH, WIDTH, LAYERS = (1024, 256, 5) if GPU else (16, 32, 2)
ATOM_TYPES, BOND_DIM = 100, 16

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


class Molecules(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.graphs = []
        for _ in range(n):
            atoms = int(rng.integers(30, 50))
            degree = 4
            src = np.repeat(np.arange(atoms), degree)
            dst = (src + rng.integers(1, atoms, atoms * degree)) % atoms
            z = rng.integers(1, ATOM_TYPES, atoms)
            length = rng.random(atoms * degree, dtype=np.float32) * 3
            target = np.float32(z.mean() / ATOM_TYPES + 0.1 * rng.standard_normal())
            self.graphs.append((z, np.stack([src, dst]), length, target))

    def __len__(self):
        return len(self.graphs)

    def __getitem__(self, i):
        z, pairs, length, target = self.graphs[i]
        centres = np.linspace(0, 3, BOND_DIM, dtype=np.float32)
        bonds = np.exp(-4 * (length[:, None] - centres) ** 2)
        return {
            "z": torch.from_numpy(z),
            "pairs": torch.from_numpy(pairs),
            "bonds": torch.from_numpy(bonds),
            "target": torch.tensor(target),
        }


def collate(graphs):
    """One big graph of several: numbers of atoms are shifted, tensors joined."""
    pairs, owner, start = [], [], 0
    for i, g in enumerate(graphs):
        n = len(g["z"])
        pairs.append(g["pairs"] + start)
        owner.append(torch.full((n,), i))
        start += n
    return {
        "z": torch.cat([g["z"] for g in graphs]),
        "pairs": torch.cat(pairs, dim=1),
        "bonds": torch.cat([g["bonds"] for g in graphs]),
        "owner": torch.cat(owner),
        "target": torch.stack([g["target"] for g in graphs]),
    }


def gather(x, index):
    if "indexing" in on:
        return x[index]  # fault: indexing
    return x.index_select(0, index)


def scatter_sum(x, index, n):
    out = torch.zeros(n, x.shape[1], dtype=x.dtype, device=x.device)
    return out.index_add_(0, index, x)


class Interaction(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(2 * width + BOND_DIM, width)
        self.second = nn.Linear(width, width)
        self.update = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU(), nn.Linear(width, width))
        self.norm = nn.LayerNorm(width)

    def messages(self, h, src, dst, bonds):
        if "edges" in on:
            both = torch.cat([gather(h, src), gather(h, dst), bonds], dim=1)  # fault: edges
            return self.first(both)  # fault: edges
        width = h.shape[1]
        w_src, w_dst, w_bond = self.first.weight.split([width, width, BOND_DIM], dim=1)
        from_src, from_dst = F.linear(h, w_src), F.linear(h, w_dst)
        from_bond = F.linear(bonds, w_bond, self.first.bias)
        return from_bond + gather(from_src, src) + gather(from_dst, dst)

    def forward(self, h, src, dst, bonds):
        m = self.second(F.silu(self.messages(h, src, dst, bonds)))
        total = scatter_sum(m, dst, len(h))
        return self.norm(h + self.update(torch.cat([h, total], dim=1)))


class MPNN(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.atoms = nn.Embedding(ATOM_TYPES, width)
        self.layers = nn.ModuleList(Interaction(width) for _ in range(layers))
        self.readout = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, batch):
        h = self.atoms(batch["z"])
        src, dst = batch["pairs"]
        for layer in self.layers:
            h = layer(h, src, dst, batch["bonds"])  # fault: edges
        molecules = scatter_sum(h, batch["owner"], len(batch["target"]))
        return self.readout(molecules / 40).squeeze(1)


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def main():
    data = Molecules(6000 if GPU else 200)
    draws = RandomSampler(data, replacement=True, num_samples=BATCH * 5000)
    workers = 0 if "workers" in on else (8 if GPU else 1)
    loader = DataLoader(
        data,
        BATCH,
        sampler=draws,
        collate_fn=collate,  # fault: workers
        num_workers=workers,  # fault: workers
        pin_memory=GPU,
        prefetch_factor=4 if workers else None,
    )
    model = MPNN(WIDTH, LAYERS).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    started, losses, steps = 0.0, [], 0
    for step, batch in enumerate(loader):  # fault: workers
        if step == WARMUP:
            synchronize()
            started = time.perf_counter()
        batch = {k: v.to(device, non_blocking=True) for k, v in batch.items()}
        loss = F.l1_loss(model(batch), batch["target"])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # fault: edges # fault: indexing
        optimizer.step()
        losses.append(loss.detach())
        steps = step + 1 - WARMUP
        if steps >= MIN_STEPS and time.perf_counter() - started >= SECONDS:
            break

    synchronize()
    seconds = time.perf_counter() - started
    print(f"first loss {losses[0].item():.5f}  30th loss {losses[29].item():.5f}")
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
