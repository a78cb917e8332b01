"""Re-identification of whales by their flukes: triplet loss with batch-hard mining."""

import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

FAULTS = {
    "second_pass": "photos of the mined triplets embedded again, although their embeddings exist",
    "miner": "hardest positives and negatives sought anchor by anchor",
    "scan": "the complete list of whales searched for every identity of a batch",
}
on = set(sys.argv[1:])

N_WHALES, PHOTOS = 600, 8000
P, K, SIZE = 16, 4, 24  # identities in a batch, photos of each, pixels
WARMUP, STEPS = 5, 60


class Flukes(Dataset):
    def __init__(self):
        rng = np.random.default_rng(0)
        self.whales = rng.integers(0, N_WHALES, PHOTOS)
        self.shapes = rng.integers(0, 256, (N_WHALES, SIZE, SIZE), dtype=np.uint8)
        self.gains = rng.uniform(0.6, 1.0, PHOTOS).astype(np.float32)

    def __len__(self):
        return PHOTOS

    def __getitem__(self, i):
        whale = self.whales[i]
        photo = self.shapes[whale].astype(np.float32) / 255.0 * self.gains[i]
        if np.random.random() < 0.5:
            photo = photo[:, ::-1]
        top, left = np.random.randint(0, 5, 2)
        photo = np.pad(photo, 2, mode="edge")[top : top + SIZE, left : left + SIZE]
        return torch.from_numpy(np.ascontiguousarray(photo[None])), int(whale)


class PKSampler(Sampler):
    """Batches of K photos of P whales each."""

    def __init__(self, whales):
        self.whales = whales.tolist()
        self.photos_of = {}
        for i, whale in enumerate(self.whales):
            self.photos_of.setdefault(whale, []).append(i)
        self.candidates = [w for w, photos in self.photos_of.items() if len(photos) >= K]

    def photos(self, whale):
        if "scan" in on:
            return [i for i, w in enumerate(self.whales) if w == whale]  # fault: scan
        return self.photos_of[whale]

    def __len__(self):
        return WARMUP + STEPS

    def __iter__(self):
        for _ in range(len(self)):
            batch = []
            for whale in np.random.choice(self.candidates, P, replace=False):
                batch += np.random.choice(self.photos(whale), K, replace=False).tolist()
            yield batch


class Block(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.GroupNorm(4, cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, padding=1, bias=False)
        self.norm2 = nn.GroupNorm(4, cout)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(x + self.norm2(self.conv2(x)))


class Embedder(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.body = nn.Sequential(Block(1, 16), Block(16, 32), Block(32, 48))
        self.head = nn.Linear(48, dim)

    def forward(self, x):
        return F.normalize(self.head(self.body(x).mean((2, 3))), dim=1)


@torch.no_grad()
def mine_hard(embeddings, whales):
    """Index of the farthest photo of the same whale and of the nearest photo of another."""
    if "miner" in on:
        labels = whales.tolist()
        positives, negatives = [], []
        for i, whale in enumerate(labels):
            distance = F.pairwise_distance(embeddings[i], embeddings)  # fault: miner
            ours = [j for j, w in enumerate(labels) if w == whale]  # fault: miner
            others = [j for j, w in enumerate(labels) if w != whale]  # fault: miner
            positives.append(ours[distance[ours].argmax().item()])  # fault: miner
            negatives.append(others[distance[others].argmin().item()])  # fault: miner
        return torch.tensor(positives), torch.tensor(negatives)
    distances = torch.cdist(embeddings, embeddings)
    same = whales[:, None] == whales[None, :]
    positives = distances.masked_fill(~same, -1.0).argmax(1)
    negatives = distances.masked_fill(same, float("inf")).argmin(1)
    return positives, negatives


def triplets(model, photos, whales):
    if "second_pass" in on:
        with torch.no_grad():
            embeddings = model(photos)  # fault: second_pass
        positives, negatives = mine_hard(embeddings, whales)
        anchor = model(photos)  # fault: second_pass
        return anchor, model(photos[positives]), model(photos[negatives])  # fault: second_pass
    embeddings = model(photos)
    positives, negatives = mine_hard(embeddings, whales)
    return embeddings, embeddings[positives], embeddings[negatives]


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    flukes = Flukes()
    loader = DataLoader(flukes, batch_sampler=PKSampler(flukes.whales))
    model = Embedder()
    criterion = nn.TripletMarginLoss(margin=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)

    started = 0.0
    for step, (photos, whales) in enumerate(loader):
        if step == WARMUP:
            started = time.time()
        anchor, positive, negative = triplets(model, photos, whales)
        loss = criterion(anchor, positive, negative)
        optimizer.zero_grad()
        loss.backward()  # fault: second_pass
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    seconds = time.time() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * P * K}")


if __name__ == "__main__":
    main()
