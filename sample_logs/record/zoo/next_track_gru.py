"""Next track of a playlist: a GRU over item ids, popularity-sampled negatives, Adagrad."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "dense": "a gradient of the complete item table, of which a batch touches a few rows",
    "choice": "negatives drawn by a weighted choice that sums up the popularities in each call",
    "ranks": "a ranking of all candidates in every step for a metric that is printed now and then",
}
on = set(sys.argv[1:])

N_TRACKS, N_PLAYLISTS = 30000, 2000
BATCH, MAX_LEN, N_NEG = 32, 30, 64
DIM, HIDDEN = 64, 96
LOG_EVERY = 20
WARMUP, STEPS = 5, 60


def make_playlists(rng):
    popularity = 1.0 / np.arange(1, N_TRACKS + 1) ** 0.75
    rng.shuffle(popularity)
    popularity /= popularity.sum()
    tracks = rng.choice(N_TRACKS, (N_PLAYLISTS, MAX_LEN + 1), p=popularity)
    lengths = rng.integers(MAX_LEN - 1, MAX_LEN + 2, N_PLAYLISTS)
    return [row[:n] + 1 for row, n in zip(tracks, lengths, strict=True)]


class NegativeSampler:
    def __init__(self, counts):
        self.p = counts / counts.sum()
        self.cdf = self.p.cumsum()
        self.cdf /= self.cdf[-1]

    def __call__(self, n):
        if "choice" in on:
            return np.random.choice(len(self.p), n, p=self.p) + 1  # fault: choice
        return self.cdf.searchsorted(np.random.random(n), side="right") + 1


class Playlists(Dataset):
    def __init__(self, playlists):
        self.playlists = playlists
        counts = np.bincount(np.concatenate(playlists) - 1, minlength=N_TRACKS)
        self.sampler = NegativeSampler((counts + 1.0) ** 0.75)

    def __len__(self):
        return len(self.playlists)

    def __getitem__(self, i):
        tracks = self.playlists[i]
        inputs = np.zeros(MAX_LEN, dtype=np.int64)
        targets = np.zeros(MAX_LEN, dtype=np.int64)
        inputs[: len(tracks) - 1] = tracks[:-1]
        targets[: len(tracks) - 1] = tracks[1:]
        return inputs, targets, self.sampler(N_NEG)


def collate(batch):
    return tuple(torch.from_numpy(np.stack(part)) for part in zip(*batch, strict=True))


class GRU4Rec(nn.Module):
    def __init__(self):
        super().__init__()
        sparse = "dense" not in on
        self.tracks = nn.Embedding(N_TRACKS + 1, DIM, padding_idx=0, sparse=sparse)
        self.gru = nn.GRU(DIM, HIDDEN, batch_first=True)
        self.out = nn.Linear(HIDDEN, DIM)
        nn.init.normal_(self.tracks.weight, std=0.05)

    def forward(self, inputs, targets, negatives):
        x, wanted, wrong = self.tracks(inputs), self.tracks(targets), self.tracks(negatives)
        h = self.out(self.gru(x)[0])
        positive = (h * wanted).sum(-1, keepdim=True)
        scores = torch.cat([positive, h @ wrong.transpose(1, 2)], -1)
        return scores[targets > 0]


def reciprocal_rank(scores):
    """Mean of 1 / rank of the track that came next (column 0)."""
    order = scores.argsort(dim=1, descending=True)  # fault: ranks
    rank = (order == 0).int().argmax(1) + 1  # fault: ranks
    return (1.0 / rank).mean().item()


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    dataset = Playlists(make_playlists(np.random.default_rng(0)))
    loader = DataLoader(dataset, BATCH, shuffle=True, collate_fn=collate, drop_last=True)
    model = GRU4Rec()
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)

    step, started, running = 0, 0.0, 0.0
    while step < WARMUP + STEPS:
        for inputs, targets, negatives in loader:
            if step == WARMUP:
                started = time.time()
            scores = model(inputs, targets, negatives)
            loss = F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()  # fault: dense
            optimizer.step()  # fault: dense
            running += loss.item()
            step += 1
            if "ranks" in on or step % LOG_EVERY == 0:
                mrr = reciprocal_rank(scores.detach())  # fault: ranks
            if step % LOG_EVERY == 0:
                print(f"step {step}: loss {running / LOG_EVERY:.4f} mrr {mrr:.3f}")
                running = 0.0
            if step == WARMUP + STEPS:
                break
    seconds = time.time() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
