"""A multilayer perceptron on rows of a table, parsed and normalized in NumPy."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
}
PAIRS = (("no_workers",), ("one_by_one",), ("no_workers", "one_by_one"))
SEED = 20_261
BATCH = 128
COLUMNS = 128
BINS = 32
WIDTH = 256
DEPTH = 6
CLASSES = 8
ROWS = 64_000
EDGES = np.linspace(-2.0, 2.0, BINS)


class TableRows(Dataset[tuple[Tensor, int]]):
    """Rows as text, of which each access parses one, clips it and adds ranks of its values."""

    def __init__(self) -> None:
        values = np.random.default_rng(SEED).normal(size=(512, COLUMNS))
        self._lines = [" ".join(f"{value:.4f}" for value in row) for row in values]

    def __len__(self) -> int:
        return ROWS

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        line = self._lines[index % len(self._lines)]
        values = np.clip(np.array(line.split(), np.float32), -3.0, 3.0)
        ranks = np.searchsorted(EDGES, values).astype(np.float32) / BINS
        row = np.concatenate((values - values.mean(), ranks))
        return torch.from_numpy(row), index % CLASSES


def network() -> nn.Sequential:
    """Returns the perceptron."""
    widths = (2 * COLUMNS, *(WIDTH,) * DEPTH)
    layers = [
        layer
        for before, after in pairwise(widths)
        for layer in (nn.Linear(before, after), nn.LayerNorm(after), nn.ReLU())
    ]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    workers = 0 if "no_workers" in faults else 1
    loader = DataLoader(
        TableRows(),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    model = network()
    fused = "one_by_one" not in faults
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=fused)
    batches = endless(loader)
    while steps.remain:
        rows, labels = next(batches)
        optimizer.zero_grad()
        functional.cross_entropy(model(rows), labels).backward()
        optimizer.step()
        steps.step()
