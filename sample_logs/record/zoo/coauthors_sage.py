"""GraphSAGE: the field of an author, by mini-batches of sampled coauthors."""

import random
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "sampler": "neighbors drawn node by node in Python from lists of neighbors",
    "mask": "the mean over neighbors as a product with a dense matrix of nodes by nodes",
    "normalize": "features of the whole graph normalized in every step",
}
on = set(sys.argv[1:])

NODES, FEATURES, CLASSES = 6000, 256, 12
HIDDEN, FANOUT = 256, (10, 5)
BATCH = 96
WARMUP, STEPS = 4, 70


class Graph:
    def __init__(self, seed=3):
        rng = np.random.default_rng(seed)
        self.y = torch.from_numpy(rng.integers(0, CLASSES, NODES))
        source = np.repeat(np.arange(NODES), rng.geometric(0.08, NODES) + 1)
        target = rng.integers(0, NODES, len(source))
        same = np.concatenate(
            [rng.permutation(np.flatnonzero(self.y == c)) for c in range(CLASSES)]
        )
        source, target = np.concatenate([source, same]), np.concatenate([target, np.roll(same, 1)])
        order = np.argsort(source, kind="stable")
        self.neighbors = torch.from_numpy(target[order])
        self.degree = torch.from_numpy(np.bincount(source, minlength=NODES))
        self.start = self.degree.cumsum(0) - self.degree
        self.x = torch.from_numpy(rng.random((NODES, FEATURES), dtype=np.float32))
        self.x[torch.arange(NODES), self.y] += 2.0
        if "normalize" not in on:
            self.x = self.x / self.x.sum(1, keepdim=True)
        self.lists = [part.tolist() for part in self.neighbors.split(self.degree.tolist())]

    def features(self, nodes):
        x = self.x
        if "normalize" in on:
            x = x / x.sum(1, keepdim=True)  # fault: normalize
        return x[nodes]

    def sample(self, nodes, k):
        """Return k neighbors of each node, drawn with replacement."""
        if "sampler" in on:
            drawn = []
            for node in nodes:
                neighbors = self.lists[int(node)]  # fault: sampler
                drawn.append(random.choices(neighbors, k=k))  # fault: sampler
            return torch.tensor(drawn)  # fault: sampler
        position = torch.rand(len(nodes), k) * self.degree[nodes, None]
        return self.neighbors[self.start[nodes, None] + position.long()]


class SAGELayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.center, self.rest = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, neighbors, ids):
        """Combine nodes (n, d) and their neighbors (n, k, d), whose numbers are ids (n, k)."""
        n, k, d = neighbors.shape
        if "mask" in on:
            unique, column = ids.unique(return_inverse=True)
            first = torch.zeros(len(unique), dtype=torch.long)
            first[column.flatten()] = torch.arange(n * k)
            mask = torch.zeros(n, len(unique))  # fault: mask
            row = torch.arange(n)[:, None].expand(n, k)
            mask.index_put_((row, column), torch.ones(()), accumulate=True)  # fault: mask
            mask = mask / mask.sum(1, keepdim=True)  # fault: mask
            mean = mask @ neighbors.reshape(n * k, d)[first]  # fault: mask
        else:
            mean = neighbors.mean(1)
        return self.center(x) + self.rest(mean)


class GraphSAGE(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = SAGELayer(FEATURES, HIDDEN)
        self.layer2 = SAGELayer(HIDDEN, CLASSES)

    def forward(self, graph, seeds):
        hop1 = graph.sample(seeds, FANOUT[0])
        nodes = torch.cat([seeds, hop1.flatten()])
        nodes, position = nodes.unique(return_inverse=True)
        hop2 = graph.sample(nodes, FANOUT[1])
        x = graph.features(torch.cat([nodes, hop2.flatten()]))
        center, rest = x[: len(nodes)], x[len(nodes) :].view(*hop2.shape, FEATURES)
        h = F.normalize(F.relu(self.layer1(center, rest, hop2)))[position]
        center, rest = h[: len(seeds)], h[len(seeds) :].view(*hop1.shape, HIDDEN)
        return self.layer2(center, rest, hop1)


def main():
    random.seed(0)
    torch.manual_seed(0)
    graph = Graph()
    model = GraphSAGE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4, fused=True)
    step, started, correct = 0, 0.0, 0
    while step < WARMUP + STEPS:
        for seeds in torch.randperm(NODES).split(BATCH)[:-1]:
            if step == WARMUP:
                started = time.perf_counter()
            model.train()
            optimizer.zero_grad()
            logits = model(graph, seeds)
            loss = F.cross_entropy(logits, graph.y[seeds])
            loss.backward()
            optimizer.step()
            step += 1
            correct += int((logits.argmax(1) == graph.y[seeds]).sum())
            if step % 25 == 0:
                print(f"step {step} loss {loss.item():.3f} acc {correct / (25 * BATCH):.3f}")
                correct = 0
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
