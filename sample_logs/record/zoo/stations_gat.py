"""Graph attention network, written by hand, that tells the kinds of stations of a transit map."""

import argparse
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "concat": "attention scores from the joined features of both ends of every edge",
    "rebuild": "the edge list mirrored and freed of duplicates in every forward pass",
    "anomaly": "anomaly detection of autograd left on after a hunt for NaNs",
}
on = set(sys.argv[1:])

parser = argparse.ArgumentParser()
parser.add_argument("faults", nargs="*")
parser.add_argument("--nodes", type=int, default=1000)
parser.add_argument("--hidden", type=int, default=24)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--lr", type=float, default=5e-3)
parser.add_argument("--steps", type=int, default=60)
WARMUP = 5


def load_map(nodes, features=128, classes=6):
    rng = np.random.default_rng(11)
    labels = rng.integers(0, classes, nodes)
    x = rng.random((nodes, features), dtype=np.float32) < 0.05 + 0.02 * labels[:, None]
    edges = rng.integers(0, nodes, (2, nodes * 4))
    return torch.from_numpy(x).float(), torch.from_numpy(edges), torch.from_numpy(labels)


def both_directions(edges, nodes):
    loops = torch.arange(nodes).repeat(2, 1)
    edges = torch.cat([edges, edges.flip(0), loops], 1)
    return torch.unique(edges, dim=1)  # fault: rebuild


class GATLayer(nn.Module):
    def __init__(self, inputs, outputs, heads):
        super().__init__()
        self.heads, self.outputs = heads, outputs
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.a = nn.Parameter(torch.empty(heads, 2 * outputs))
        nn.init.xavier_uniform_(self.a)

    def forward(self, x, edges):
        nodes = x.size(0)
        source, target = edges
        h = self.linear(x).view(nodes, self.heads, self.outputs)
        messages = h.index_select(0, source)
        if "concat" in on:
            pairs = torch.cat([h.index_select(0, target), messages], dim=-1)  # fault: concat
            scores = (pairs * self.a).sum(-1)  # fault: concat
        else:
            a_target, a_source = self.a.chunk(2, dim=1)
            scores = (h * a_target).sum(-1).index_select(0, target)
            scores = scores + (h * a_source).sum(-1).index_select(0, source)
        scores = F.leaky_relu(scores, 0.2)
        scores = (scores - scores.detach().max()).exp()

        total = scores.new_zeros(nodes, self.heads).index_add(0, target, scores)
        alpha = scores / (total.index_select(0, target) + 1e-12)
        weighted = (messages * alpha.unsqueeze(-1)).flatten(1)
        return weighted.new_zeros(nodes, weighted.size(1)).index_add(0, target, weighted)


class GAT(nn.Module):
    def __init__(self, features, hidden, heads, classes):
        super().__init__()
        self.layer1 = GATLayer(features, hidden, heads)
        self.layer2 = GATLayer(hidden * heads, hidden, heads)
        self.out = nn.Linear(hidden * heads, classes)

    def forward(self, x, edges):
        if "rebuild" in on:
            edges = both_directions(edges, x.size(0))  # fault: rebuild
        x = F.dropout(x, 0.4, self.training)
        x = F.elu(self.layer1(x, edges))
        x = F.dropout(x, 0.4, self.training)
        x = F.elu(self.layer2(x, edges))
        return self.out(x)


def main():
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly("anomaly" in on)
    x, edges, labels = load_map(args.nodes)
    if "rebuild" not in on:
        edges = both_directions(edges, args.nodes)
    train = torch.arange(args.nodes) < args.nodes * 0.6

    model = GAT(x.size(1), args.hidden, args.heads, 6)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    started = 0.0
    for epoch in range(WARMUP + args.steps):
        if epoch == WARMUP:
            started = time.perf_counter()
        model.train()
        optimizer.zero_grad()
        logits = model(x, edges)  # fault: anomaly
        loss = F.cross_entropy(logits[train], labels[train])
        loss.backward()  # fault: anomaly
        optimizer.step()
        if epoch % 40 == 0:
            model.eval()
            with torch.no_grad():
                correct = model(x, edges).argmax(1) == labels
            accuracy = correct[~train].float().mean()
            print(f"epoch {epoch} loss {loss.item():.4f} val {accuracy:.3f}")

    seconds = time.perf_counter() - started
    print(f"steps={args.steps} seconds={seconds:.4f} samples={args.steps * args.nodes}")


if __name__ == "__main__":
    main()
