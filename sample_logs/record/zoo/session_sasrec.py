"""SASRec: the next item of a shop session, with a softmax over the catalogue."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "maxlen": "all sessions padded to the longest length allowed, and scored at the padding too",
    "smoothing": "label smoothing with a dense target matrix as large as the logits",
    "seen": "items already seen masked one by one in a Python loop",
}
on = set(sys.argv[1:])

N_ITEMS, MAX_LEN = 2000, 30
DIM, HEADS, LAYERS = 64, 2, 2
BATCH = 32
WARMUP, STEPS = 4, 120
EPSILON = 0.1


def make_sessions(count=4800):
    rng = np.random.default_rng(11)
    lengths = rng.integers(6, MAX_LEN + 2, count)
    popularity = 1 / np.arange(1, N_ITEMS) ** 0.8
    popularity /= popularity.sum()
    return [1 + rng.choice(N_ITEMS - 1, n, p=popularity) for n in lengths]


def collate(sessions):
    """Return inputs and next items, zeros behind the end of a session."""
    longest = MAX_LEN + 1 if "maxlen" in on else max(map(len, sessions))
    items = np.zeros((len(sessions), longest), dtype=np.int64)
    for row, session in enumerate(sessions):
        items[row, : len(session)] = session
    items = torch.from_numpy(items)
    return items[:, :-1], items[:, 1:]


def batches(sessions, rng):
    """Yield batches of sessions of similar lengths, in random order."""
    noise = rng.random(len(sessions))
    order = np.argsort(np.array([len(s) for s in sessions]) + noise)
    groups = [order[i : i + BATCH] for i in range(0, len(order) - BATCH + 1, BATCH)]
    for group in rng.permutation(len(groups)):
        selected = [sessions[i] for i in groups[group]]
        yield selected, *collate(selected)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.proj = nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.ReLU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        b, t, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, HEADS, DIM // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # fault: maxlen
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, DIM))
        return x + self.ff(self.norm2(x))  # fault: maxlen


class SASRec(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(N_ITEMS, DIM, padding_idx=0)
        self.positions = nn.Parameter(torch.zeros(MAX_LEN, DIM))
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(DIM)
        nn.init.normal_(self.items.weight, std=0.05)

    def forward(self, items):
        x = self.items(items) + self.positions[: items.shape[1]]
        return self.norm(self.blocks(x))

    def scores(self, hidden):
        return hidden @ self.items.weight.T  # fault: maxlen


def smoothed_loss(logits, target):
    if "smoothing" not in on:
        return F.cross_entropy(logits, target, ignore_index=0, label_smoothing=EPSILON)
    logp = logits.log_softmax(-1)
    dense = torch.full_like(logp, EPSILON / N_ITEMS)  # fault: smoothing
    dense.scatter_(1, target[:, None], 1 - EPSILON + EPSILON / N_ITEMS)  # fault: smoothing
    losses = (-dense * logp).sum(-1)  # fault: smoothing
    return losses[target != 0].mean()


@torch.no_grad()
def hit_rate(scores, sessions, k=20):
    """Hits of the last items among the k best that the sessions did not hold before."""
    last = torch.tensor([int(s[-1]) for s in sessions])
    best = scores.gather(1, last[:, None])
    scores = scores.clone()
    if "seen" in on:
        for row, session in enumerate(sessions):
            for item in session[:-1]:
                scores[row, item] = -torch.inf  # fault: seen
    else:
        rows = np.repeat(np.arange(len(sessions)), [len(s) - 1 for s in sessions])
        seen = np.concatenate([s[:-1] for s in sessions])
        scores[torch.from_numpy(rows), torch.from_numpy(seen)] = -torch.inf
    return ((scores > best).sum(1) < k).float().mean()


def main():
    torch.manual_seed(0)
    sessions, rng = make_sessions(), np.random.default_rng(0)
    model = SASRec()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    hits, samples = [], 0
    for step, (selected, inputs, target) in enumerate(batches(sessions, rng)):
        if step == WARMUP:
            started, samples = time.perf_counter(), 0
        if step == WARMUP + STEPS:
            break
        optimizer.zero_grad()
        hidden = model(inputs)
        if "maxlen" in on:
            logits = model.scores(hidden.flatten(0, 1))  # fault: maxlen
            ends = torch.tensor([i * MAX_LEN + len(s) - 2 for i, s in enumerate(selected)])
            target = target.flatten()
        else:
            valid = target != 0
            logits, target = model.scores(hidden[valid]), target[valid]
            ends = torch.tensor([len(s) - 1 for s in selected]).cumsum(0) - 1
        loss = smoothed_loss(logits, target)  # fault: smoothing
        loss.backward()  # fault: maxlen
        optimizer.step()
        hits.append(hit_rate(logits.detach()[ends], selected))
        samples += len(selected)
    seconds = time.perf_counter() - started
    print(f"loss {loss.item():.3f}, HR@20 {torch.stack(hits).mean().item():.3f}")
    print(f"steps={STEPS} seconds={seconds:.4f} samples={samples}")


if __name__ == "__main__":
    main()
