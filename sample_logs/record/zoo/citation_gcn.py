# GCN on a citation-like graph (stochastic block model), full batch.
# Run top to bottom, as in the notebook it comes from.
import math
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn import Linear, Module

FAULTS = {
    "dense_adjacency": "a dense adjacency matrix of which few elements are not zero",
    "renormalize": "the same adjacency normalized again by every layer of every forward",
    "double": "features and parameters in float64",
}
on = set(sys.argv[1:])

NODES, CLASSES, DEGREE, FEATURES, HIDDEN = 1600, 7, 10, 512, 64
STEPS, WARMUP = 70, 5

# %% graph
rng = np.random.default_rng(3)
y = rng.integers(0, CLASSES, NODES)
src = rng.integers(0, NODES, NODES * DEGREE)
same = [np.flatnonzero(y == c) for c in range(CLASSES)]
dst = np.array([rng.choice(same[y[s]]) if rng.random() < 0.6 else rng.integers(NODES) for s in src])
pairs = np.unique(np.stack([np.r_[src, dst], np.r_[dst, src]]), axis=1)
edge_index = torch.from_numpy(pairs)

# bag of words: each class prefers some of the words
words = rng.random((NODES, FEATURES)) < 0.05 + 0.05 * (np.arange(FEATURES) % CLASSES == y[:, None])
feats = words / np.maximum(words.sum(1, keepdims=True), 1)  # numpy: float64
labels = torch.from_numpy(y)
train_mask = torch.from_numpy(rng.random(NODES) < 0.3)

dtype = torch.float64 if "double" in on else torch.float32
x = torch.from_numpy(feats).to(dtype)


# %% propagation
def normalize_dense(edges):
    a = torch.eye(NODES, dtype=dtype)
    a[edges[0], edges[1]] = 1
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


def normalize_sparse(edges):
    loops = torch.arange(NODES).repeat(2, 1)
    row, col = torch.cat([edges, loops], dim=1)
    order = torch.argsort(row * NODES + col)
    row, col = row[order], col[order]
    degree = torch.zeros(NODES, dtype=dtype).index_add_(0, row, torch.ones_like(row, dtype=dtype))
    d = degree.rsqrt()
    values = d[row] * d[col]
    return torch.sparse_coo_tensor(torch.stack([row, col]), values, (NODES, NODES)).coalesce()


normalize = normalize_dense if "dense_adjacency" in on else normalize_sparse
cached = normalize(edge_index)


class GCNConv(Module):
    def __init__(self, fan_in, fan_out):
        super().__init__()
        self.lin = Linear(fan_in, fan_out, dtype=dtype)

    def forward(self, h, edges):
        if "renormalize" in on:
            a = normalize(edges)  # fault: renormalize
        else:
            a = cached
        h = self.lin(h)  # fault: double
        if "dense_adjacency" in on:
            return a @ h  # fault: dense_adjacency
        return torch.sparse.mm(a, h)


class GCN(Module):
    def __init__(self):
        super().__init__()
        self.conv1 = GCNConv(FEATURES, HIDDEN)
        self.conv2 = GCNConv(HIDDEN, HIDDEN)
        self.conv3 = GCNConv(HIDDEN, CLASSES)

    def forward(self, h, edges):
        h = F.dropout(F.relu(self.conv1(h, edges)), 0.3, self.training)
        h = F.dropout(F.relu(self.conv2(h, edges)), 0.3, self.training)
        return self.conv3(h, edges)


# %% training
torch.manual_seed(0)
model = GCN()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=5e-4)
best = math.inf
for epoch in range(WARMUP + STEPS):
    if epoch == WARMUP:
        t0 = time.perf_counter()
    model.train()
    out = model(x, edge_index)
    loss = F.cross_entropy(out[train_mask], labels[train_mask])
    optimizer.zero_grad()
    loss.backward()  # fault: double
    optimizer.step()
    best = min(best, loss.item())
seconds = time.perf_counter() - t0

# %% test
model.eval()
with torch.no_grad():
    accuracy = (model(x, edge_index).argmax(1) == labels)[~train_mask].float().mean().item()
print(f"best loss {best:.3f}, test accuracy {accuracy:.3f}")
print(f"steps={STEPS} seconds={seconds:.3f} samples={STEPS * NODES}")
