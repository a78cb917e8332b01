"""Click-through-rate model (DCN-v2) with one large embedding table, on made-up rows."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

FAULTS = {
    "dense_grad": "dense gradients of the embedding table, so each update goes over all its rows",
    "history": "predictions copied to the host and appended to a Python list in every step",
    "norms": "the norm of the whole embedding table computed in every step for the log",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30
BATCH, ROWS, DIM, WIDTH, RANK = (32768, 12_000_000, 64, 1024, 512) if GPU else (64, 3000, 8, 32, 16)
SAMPLES = 600_000 if GPU else 2000
N_DENSE, N_FIELDS = 13, 26
LOG_EVERY = 1 if "norms" in on else 500

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")


def field_sizes(total):
    weights = np.geomspace(1, 1e5, N_FIELDS)
    return np.maximum(4, (weights / weights.sum() * total).astype(np.int64))


class ClickLog(Dataset):
    """Rows in memory; an item is a whole batch, given by its row numbers."""

    def __init__(self, sizes, samples):
        rng = np.random.default_rng(0)
        u = rng.random((samples, N_FIELDS), dtype=np.float32) ** 3
        self.cats = np.minimum(u * sizes, sizes - 1).astype(np.int32)
        counts = rng.standard_exponential((samples, N_DENSE), dtype=np.float32)
        self.dense = np.log1p(8 * counts)
        self.clicks = (rng.random(samples) < 0.25).astype(np.float32)

    def __len__(self):
        return len(self.clicks)

    def __getitem__(self, rows):
        return (
            torch.from_numpy(self.dense[rows]),
            torch.from_numpy(self.cats[rows]),
            torch.from_numpy(self.clicks[rows]),
        )


class ShuffledBatches(Sampler):
    """Row numbers of one batch after another, reshuffled when all rows are used, without end."""

    def __init__(self, n_rows, batch):
        self.n_rows, self.batch = n_rows, batch

    def __iter__(self):
        rng = np.random.default_rng(1)
        while True:
            order = rng.permutation(self.n_rows)
            for i in range(0, self.n_rows - self.batch + 1, self.batch):
                yield order[i : i + self.batch]


class CrossLayer(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width)

    def forward(self, x0, x):
        return torch.addcmul(x, x0, self.up(self.down(x)))


class DCN(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        width = (N_FIELDS + 1) * DIM
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.register_buffer("starts", torch.from_numpy(starts))
        sparse = "dense_grad" not in on
        self.table = nn.Embedding(int(sizes.sum()), DIM, sparse=sparse)  # fault: dense_grad
        nn.init.normal_(self.table.weight, std=0.02)
        self.bottom = nn.Sequential(nn.Linear(N_DENSE, 256), nn.ReLU(), nn.Linear(256, DIM))
        self.cross = nn.ModuleList(CrossLayer(width, RANK) for _ in range(3))
        self.deep = nn.Sequential(
            nn.Linear(width, WIDTH),
            nn.ReLU(inplace=True),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(inplace=True),
            nn.Linear(WIDTH, WIDTH // 2),
            nn.ReLU(inplace=True),
            nn.Linear(WIDTH // 2, 1),
        )

    def forward(self, dense, cats):
        looked_up = self.table(cats + self.starts).flatten(1)
        bottom = self.bottom(dense)
        x0 = x = torch.cat([bottom, looked_up.to(bottom.dtype)], dim=1)
        for layer in self.cross:
            x = layer(x0, x)
        return self.deep(x).squeeze(1)


def auc(scores, clicks):
    order = clicks[scores.argsort()]
    n_pos = order.sum()
    ranks = torch.arange(1, len(order) + 1, device=order.device, dtype=torch.float64)
    return ((ranks * order).sum() - n_pos * (n_pos + 1) / 2) / (n_pos * (len(order) - n_pos))


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def main():
    sizes = field_sizes(ROWS)
    dataset = ClickLog(sizes, SAMPLES)
    loader = DataLoader(
        dataset,
        sampler=ShuffledBatches(len(dataset), BATCH),
        batch_size=None,
        num_workers=8 if GPU else 1,
        pin_memory=GPU,
        persistent_workers=True,
        prefetch_factor=4,
    )
    with device:
        model = DCN(sizes)
    model = model.to(device)
    network = [p for name, p in model.named_parameters() if not name.startswith("table")]
    table_opt = torch.optim.SGD(model.table.parameters(), lr=0.05)
    network_opt = torch.optim.AdamW(network, lr=1e-3, fused=True)

    scores, seen, table_norms = [], [], []
    step, started = 0, 0.0
    for dense, cats, clicks in loader:
        if step == WARMUP:
            synchronize()
            started = time.perf_counter()
        dense = dense.to(device, non_blocking=True)
        cats = cats.to(device, non_blocking=True)
        clicks = clicks.to(device, non_blocking=True)

        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=GPU):
            logits = model(dense, cats)
        logits = logits.float()
        loss = F.binary_cross_entropy_with_logits(logits, clicks)
        table_opt.zero_grad()
        network_opt.zero_grad()
        loss.backward()  # fault: dense_grad
        table_opt.step()  # fault: dense_grad
        network_opt.step()

        if "history" in on:
            scores.extend(logits.detach().sigmoid().cpu().numpy())  # fault: history
            seen.extend(clicks.cpu().numpy())  # fault: history
        else:
            scores.append(logits.detach().sigmoid())
            seen.append(clicks)
        if step % LOG_EVERY == 0:
            table_norms.append(model.table.weight.detach().norm())  # fault: norms
        step += 1
        enough = step >= WARMUP + MIN_STEPS
        if enough and time.perf_counter() - started >= SECONDS:
            break

    synchronize()
    seconds = time.perf_counter() - started
    steps = step - WARMUP
    if "history" in on:
        scores, seen = torch.tensor(np.array(scores)), torch.tensor(np.array(seen))
    else:
        scores, seen = torch.cat(scores), torch.cat(seen)
    print(f"loss {loss.item():.4f}  train AUC {auc(scores, seen).item():.4f}")
    print(f"table norm {table_norms[-1].item():.3f}")
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
