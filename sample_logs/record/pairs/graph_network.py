"""Message passing predicts the energies of molecules: nodes and edges of a batch in one graph."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "dense_adjacency": Fault(kind="dense adjacency matrix"),
    "double": Fault("float64-compute"),
    "graph_by_graph": Fault("model-called-per-sample", kind="loop over samples"),
    "pooled_in_loop": Fault(kind="loop over graphs"),
}
PAIRS = (
    ("dense_adjacency",),
    ("double",),
    ("graph_by_graph",),
    ("pooled_in_loop",),
    ("double", "pooled_in_loop"),
    ("dense_adjacency", "double"),
)
SEED = 20_304
BATCH = 16
FEWEST_ATOMS, MOST_ATOMS = 14, 28
BOX_SIDE = 6.0
CUTOFF = 3.0
KINDS = 9
WIDTH = 64
DEPTH = 3
DISTANCES = 16


@dataclass(frozen=True, kw_only=True)
class Graphs:
    """Atoms, bonds as pairs of atoms, their distances, and the graph of each atom."""

    kinds: Tensor
    bonds: Tensor
    distances: Tensor
    graphs: Tensor
    energies: Tensor


def molecule(source: np.random.Generator) -> Graphs:
    """Returns a made-up molecule: atoms in a box, and bonds between near ones."""
    count = int(source.integers(FEWEST_ATOMS, MOST_ATOMS + 1))
    positions = source.uniform(0.0, BOX_SIDE, (count, 3))
    distances = np.linalg.norm(positions[:, None] - positions[None], axis=2)
    bonds = np.argwhere((distances < CUTOFF) & (distances > 0)).T
    return Graphs(
        kinds=torch.from_numpy(source.integers(KINDS, size=count)),
        bonds=torch.from_numpy(np.ascontiguousarray(bonds)),
        distances=torch.from_numpy(distances[tuple(bonds)]),
        graphs=torch.zeros(count, dtype=torch.int64),
        energies=torch.from_numpy(source.normal(size=1)),
    )


def batched(molecules: Sequence[Graphs]) -> Graphs:
    """Returns molecules as one graph."""
    counts = torch.tensor([len(each.kinds) for each in molecules])
    offsets = (counts.cumsum(0) - counts).tolist()
    shifted = [each.bonds + offset for each, offset in zip(molecules, offsets, strict=True)]
    return Graphs(
        kinds=torch.cat([each.kinds for each in molecules]),
        bonds=torch.cat(shifted, dim=1),
        distances=torch.cat([each.distances for each in molecules]),
        graphs=torch.repeat_interleave(torch.arange(len(molecules)), counts),
        energies=torch.cat([each.energies for each in molecules]),
    )


class Layer(nn.Module):
    """Messages along bonds, summed for each atom by index or by a dense matrix of bonds."""

    def __init__(self, *, dense: bool) -> None:
        super().__init__()
        self.dense = dense
        self.filters = nn.Sequential(
            nn.Linear(DISTANCES, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH)
        )
        self.source = nn.Linear(WIDTH, WIDTH, bias=False)
        self.update = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))

    @override
    def forward(self, atoms: Tensor, bonds: Tensor, bases: Tensor) -> Tensor:
        sender, receiver = bonds
        messages = self.source(atoms)[sender] * self.filters(bases)
        if self.dense:
            incidence = functional.one_hot(receiver, len(atoms)).to(messages.dtype)
            summed = incidence.T @ messages
        else:
            summed = torch.zeros_like(atoms).index_add(0, receiver, messages)
        result: Tensor = atoms + self.update(summed)
        return result


class EnergyModel(nn.Module):
    """Embedded atoms, layers of messages, and the mean of the atoms' energies by graph."""

    def __init__(self, *, dense: bool, pooled_in_loop: bool) -> None:
        super().__init__()
        self.pooled_in_loop = pooled_in_loop
        self.atoms = nn.Embedding(KINDS, WIDTH)
        self.layers = nn.ModuleList(Layer(dense=dense) for _ in range(DEPTH))
        self.energy = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))
        self.register_buffer("centers", torch.linspace(0.0, CUTOFF, DISTANCES))

    def pooled(self, atoms: Tensor, graphs: Tensor, count: int) -> Tensor:
        """Returns the mean of the atoms of each graph."""
        if self.pooled_in_loop:
            return torch.stack([atoms[graphs == graph].mean(dim=0) for graph in range(count)])
        sums = atoms.new_zeros(count, WIDTH).index_add(0, graphs, atoms)
        return sums / torch.bincount(graphs, minlength=count)[:, None]

    @override
    def forward(self, graphs: Graphs) -> Tensor:
        distances = graphs.distances.to(self.atoms.weight.dtype)
        bases = torch.exp(-4.0 * (distances[:, None] - self.get_buffer("centers")).square())
        atoms = self.atoms(graphs.kinds)
        for layer in self.layers:
            atoms = layer(atoms, graphs.bonds, bases)
        energies: Tensor = self.energy(self.pooled(atoms, graphs.graphs, len(graphs.energies)))
        return energies.squeeze(1)


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    source = np.random.default_rng(SEED)
    batches = [[molecule(source) for _ in range(BATCH)] for _ in range(24)]
    dtype = torch.float64 if "double" in faults else torch.float32
    model = EnergyModel(
        dense="dense_adjacency" in faults, pooled_in_loop="pooled_in_loop" in faults
    ).to(dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    number = 0
    while steps.remain:
        molecules = batches[number % len(batches)]
        optimizer.zero_grad()
        graphs = batched(molecules)
        if "graph_by_graph" in faults:
            energies = torch.cat([model(single) for single in molecules])
        else:
            energies = model(graphs)
        functional.l1_loss(energies, graphs.energies.to(dtype)).backward()
        optimizer.step()
        number += 1
        steps.step()
