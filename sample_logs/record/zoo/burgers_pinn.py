"""A physics-informed network for the equation of Burgers, with a travelling front as solution."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn

FAULTS = {
    "derivatives": "first derivatives computed anew for each term of the residual",
    "hypercube": "collocation points drawn by a Latin hypercube in Python loops",
    "error": "the error on the whole grid evaluated in every step, with its graph",
}
on = set(sys.argv[1:])

NU, SPEED = 0.05, 0.5
COLLOCATION, BOUNDARY = 512, 96
GRID = 64
WIDTH, DEPTH = 64, 4
WARMUP, STEPS = 5, 200
ERROR_EVERY = 1 if "error" in on else STEPS


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [2] + [WIDTH] * DEPTH
        layers = []
        for n_in, n_out in zip(sizes, sizes[1:]):
            layers += [nn.Linear(n_in, n_out), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(WIDTH, 1))

    def forward(self, points):
        return self.net(points)


def exact(points):
    x, t = points[:, :1], points[:, 1:]
    return SPEED * (1 - torch.tanh(SPEED * (x - SPEED * t) / (2 * NU)))


def grad(u, points):
    return torch.autograd.grad(u, points, torch.ones_like(u), create_graph=True)[0]


def diff(u, points, axis):
    return grad(u, points)[:, axis : axis + 1]


def residual(net, points):
    points = points.requires_grad_()
    u = net(points)
    if "derivatives" in on:
        u_t = diff(u, points, 1)  # fault: derivatives
        advection = u * diff(u, points, 0)  # fault: derivatives
        return u_t + advection - NU * diff(diff(u, points, 0), points, 0)  # fault: derivatives
    first = grad(u, points)
    u_x, u_t = first[:, :1], first[:, 1:]
    return u_t + u * u_x - NU * diff(u_x, points, 0)


def latin_hypercube(rng, count, low, high):
    """Return one point in each of `count` intervals, along each axis."""
    if "hypercube" in on:
        columns = []
        for a, b in zip(low, high):
            width = (b - a) / count
            column = [
                rng.uniform(a + i * width, a + (i + 1) * width) for i in range(count)
            ]  # fault: hypercube
            rng.shuffle(column)  # fault: hypercube
            columns.append(column)
        return torch.tensor(list(zip(*columns)), dtype=torch.float32)  # fault: hypercube
    low, high = np.array(low), np.array(high)
    cells = rng.permuted(np.tile(np.arange(count), (len(low), 1)), axis=1).T
    unit = (cells + rng.random(cells.shape)) / count
    return torch.from_numpy((low + unit * (high - low)).astype(np.float32))


def boundary(rng):
    n = BOUNDARY // 3
    x, t = rng.uniform(-1, 1, n), rng.uniform(0, 1, 2 * n)
    edges = np.concatenate([np.full(n, -1.0), np.full(n, 1.0)])
    initial = np.stack([x, np.zeros(n)], 1)
    points = np.concatenate([initial, np.stack([edges, t], 1)])
    return torch.from_numpy(points.astype(np.float32))


def relative_error(net, grid, truth):
    if "error" in on:
        u = net(grid)  # fault: error
        return ((u - truth).norm() / truth.norm()).item()
    with torch.no_grad():
        return ((net(grid) - truth).norm() / truth.norm()).item()


torch.manual_seed(1)
rng = np.random.default_rng(1)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
x, t = torch.meshgrid(torch.linspace(-1, 1, GRID), torch.linspace(0, 1, GRID), indexing="ij")
grid = torch.stack([x.flatten(), t.flatten()], 1)
truth = exact(grid)
for step in range(1, WARMUP + STEPS + 1):
    inside = latin_hypercube(rng, COLLOCATION, (-1.0, 0.0), (1.0, 1.0))  # fault: hypercube
    edge = boundary(rng)
    optimizer.zero_grad()
    loss_f = residual(net, inside).square().mean()
    loss_b = (net(edge) - exact(edge)).square().mean()
    loss = loss_f + 10 * loss_b
    loss.backward()  # fault: derivatives
    optimizer.step()
    if step == WARMUP:
        started = time.perf_counter()
    elif step > WARMUP and (step - WARMUP) % ERROR_EVERY == 0:
        error = relative_error(net, grid, truth)  # fault: error
        if step % 35 == 0:
            print("Iter %d, loss %.2e, error %.3f" % (step, loss.item(), error))

seconds = time.perf_counter() - started
print("relative error %.3f" % error)
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * COLLOCATION}")
