"""Embedding tables and a perceptron predict clicks from the lines of a log."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import random
from collections.abc import Sequence, Set
from itertools import pairwise
from zlib import crc32

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "no_workers": Fault("dataloader-no-workers"),
    "dense_gradients": Fault(kind="dense gradients of embeddings"),
    "double": Fault("float64-compute"),
    "counted_in_loop": Fault("python-loop-indexing"),
}
PAIRS = (
    ("no_workers",),
    ("dense_gradients",),
    ("double",),
    ("counted_in_loop",),
    ("no_workers", "counted_in_loop"),
    ("dense_gradients", "double", "counted_in_loop"),
)
SEED = 20_302
BATCH, LINES = 256, 512_000
TABLE_ROWS = (150_000, 80_000, 20_000, 2_000, 400, 100, 24, 7)
"""Of users, items (table 1), sellers, categories, cities, devices, hours and weekdays."""
ITEMS, HISTORY, NUMBERS = 1, 12, 6
WIDTH, HIDDEN = 16, (192, 96, 48)
BINS = 10
Row = tuple[list[int], list[int], list[float], float]
Batch = tuple[Tensor, Tensor, Tensor, Tensor]


def log_line(source: random.Random) -> str:
    """Returns a line: the click, numbers, names of the categories and of the items seen before."""
    numbers = [f"{source.expovariate(0.1):.3f}" for _ in range(NUMBERS)]
    names = [f"{source.randrange(4 * rows):x}" for rows in TABLE_ROWS]
    history = ",".join(f"{source.randrange(4 * TABLE_ROWS[ITEMS]):x}" for _ in range(HISTORY))
    return "\t".join((str(int(source.random() < 0.2)), *numbers, *names, history))


def table_row(table: int, name: str) -> int:
    """Returns the row to which a name is hashed."""
    return crc32(f"{table}:{name}".encode()) % TABLE_ROWS[table]


class ClickLog(Dataset[Row]):
    """Lines of a log, of which each access parses one and hashes its names to rows of tables."""

    def __init__(self) -> None:
        source = random.Random(SEED)  # noqa: S311 (no secrets)
        self._lines = [log_line(source) for _ in range(20_000)]

    def __len__(self) -> int:
        return LINES

    @override
    def __getitem__(self, index: int) -> Row:
        click, *fields = self._lines[index % len(self._lines)].split("\t")
        rows = [table_row(table, name) for table, name in enumerate(fields[NUMBERS:-1])]
        history = [table_row(ITEMS, name) for name in fields[-1].split(",")]
        return rows, history, [float(field) for field in fields[:NUMBERS]], float(click)


def collate(lines: Sequence[Row]) -> Batch:
    """Returns the rows of tables, the items seen before, the numbers and the clicks of a batch."""
    rows, history, numbers, clicks = zip(*lines, strict=True)
    scaled = np.log1p(np.array(numbers, np.float64))
    return torch.tensor(rows), torch.tensor(history), torch.from_numpy(scaled), torch.tensor(clicks)


class Recommender(nn.Module):
    """Rows of the tables and products of their pairs, with the numbers, in a perceptron."""

    def __init__(self, *, sparse: bool) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, WIDTH, sparse=sparse) for rows in TABLE_ROWS)
        field_count = len(TABLE_ROWS) + 1
        pair_count = field_count * (field_count - 1) // 2
        widths = (field_count * WIDTH + pair_count + NUMBERS, *HIDDEN)
        layers = [
            layer
            for before, after in pairwise(widths)
            for layer in (nn.Linear(before, after), nn.ReLU())
        ]
        self.perceptron = nn.Sequential(*layers, nn.Linear(HIDDEN[-1], 1))
        self.register_buffer("pairs", torch.triu_indices(field_count, field_count, offset=1))

    @override
    def forward(self, rows: Tensor, history: Tensor, numbers: Tensor) -> Tensor:
        columns = zip(self.tables, rows.unbind(dim=1), strict=True)
        seen = self.tables[ITEMS](history).mean(dim=1)
        vectors = torch.stack([*(table(column) for table, column in columns), seen], dim=1)
        first, second = self.get_buffer("pairs")
        products = (vectors @ vectors.transpose(1, 2))[:, first, second]
        features = torch.cat((vectors.flatten(1), products, numbers), dim=1)
        logits: Tensor = self.perceptron(features).squeeze(1)
        return logits


class Calibration:
    """Clicks and predictions by the bin of the predicted probability."""

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self.clicks = [0.0] * BINS

    def count_in_loop(self, probabilities: Tensor, clicks: Tensor) -> None:
        """Adds a batch, row by row."""
        for row in range(len(clicks)):
            bin_number = min(int(probabilities[row].item() * BINS), BINS - 1)
            self.counts[bin_number] += 1
            self.clicks[bin_number] += clicks[row].item()

    def count(self, probabilities: Tensor, clicks: Tensor) -> None:
        """Adds a batch."""
        bins = (probabilities * BINS).long().clamp(max=BINS - 1)
        counts = torch.bincount(bins, minlength=BINS).tolist()
        sums = torch.bincount(bins, clicks, minlength=BINS).tolist()
        for bin_number in range(BINS):
            self.counts[bin_number] += counts[bin_number]
            self.clicks[bin_number] += sums[bin_number]


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    dtype = torch.float64 if "double" in faults else torch.float32
    workers = 0 if "no_workers" in faults else 1
    loader = DataLoader(
        ClickLog(),
        batch_size=BATCH,
        shuffle=True,
        collate_fn=collate,
        num_workers=workers,
        worker_init_fn=one_thread if workers else None,
        persistent_workers=workers > 0,
    )
    sparse = "dense_gradients" not in faults
    model = Recommender(sparse=sparse).to(dtype)
    tables = list(model.tables.parameters())
    optimizers = (
        torch.optim.SparseAdam(tables) if sparse else torch.optim.Adam(tables, fused=True),
        torch.optim.AdamW(model.perceptron.parameters(), fused=True),
    )
    calibration = Calibration()
    count = calibration.count_in_loop if "counted_in_loop" in faults else calibration.count
    batches = endless(loader)
    while steps.remain:
        rows, history, numbers, clicks = next(batches)
        clicks = clicks.to(dtype)
        for optimizer in optimizers:
            optimizer.zero_grad()
        logits = model(rows, history, numbers.to(dtype))
        functional.binary_cross_entropy_with_logits(logits, clicks).backward()
        for optimizer in optimizers:
            optimizer.step()
        count(logits.detach().sigmoid().float(), clicks.float())
        steps.step()
