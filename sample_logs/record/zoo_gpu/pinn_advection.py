"""Physics-informed network for advection and diffusion in two dimensions, with torch.compile."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "derivatives": "second derivatives by nested calls of autograd.grad, without compilation",
    "boundary": "boundary points that pass through the network together with all derivatives",
    "error": "the error against the exact solution on a fine grid in every step",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
POINTS, WIDTH, HIDDEN, GRID = (65536, 256, 4, 512) if GPU else (64, 16, 2, 12)
NU, SPEED = 0.05, 0.5
ERROR_EVERY = 1 if "error" in on else 100
SECONDS, WARMUP, MIN_STEPS = 1.0, 10, 30


def exact(points):
    x, y, t = points.unbind(1)
    s = 1 + 4 * NU * t
    return torch.exp(-((x - SPEED * t) ** 2 + (y - SPEED * t) ** 2) / s) / s


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, WIDTH)
        self.hidden = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(HIDDEN)])
        self.last = nn.Linear(WIDTH, 1)

    def forward(self, points):
        h = torch.tanh(self.first(points))
        for layer in self.hidden:
            h = torch.tanh(layer(h))
        return self.last(h)[:, 0]

    def jet(self, points):
        """Return u, u_x, u_y, u_t, u_xx and u_yy, carried forward through the layers."""
        z = self.first(points)
        zx, zy, zt = (w.expand_as(z) for w in self.first.weight.unbind(1))
        h = self.activate(z, zx, zy, zt, torch.zeros_like(z), torch.zeros_like(z))
        for layer in self.hidden:
            z = F.linear(h, layer.weight).unbind(0)
            h = self.activate(z[0] + layer.bias, *z[1:])
        u = F.linear(h, self.last.weight)[..., 0].unbind(0)
        return u[0] + self.last.bias, *u[1:]

    @staticmethod
    def activate(z, zx, zy, zt, zxx, zyy):
        a = torch.tanh(z)
        d = 1 - a * a
        curve = -2 * a * d
        second = (d * zxx + curve * zx * zx, d * zyy + curve * zy * zy)
        return torch.stack([a, d * zx, d * zy, d * zt, *second])


def nested(points):
    points = points.requires_grad_()
    u = net(points)
    (first,) = torch.autograd.grad(u.sum(), points, create_graph=True)  # fault: derivatives
    ux, uy, ut = first.unbind(1)
    uxx = torch.autograd.grad(ux.sum(), points, create_graph=True)[0][:, 0]  # fault: derivatives
    uyy = torch.autograd.grad(uy.sum(), points, create_graph=True)[0][:, 1]  # fault: derivatives
    return u, ux, uy, ut, uxx, uyy


def loss_terms(interior, boundary, target):
    derivatives = nested if "derivatives" in on else net.jet
    if "boundary" in on:
        n = len(interior)
        terms = derivatives(torch.cat([interior, boundary]))  # fault: boundary
        prediction = terms[0][n:]
        _, ux, uy, ut, uxx, uyy = (term[:n] for term in terms)
    else:
        _, ux, uy, ut, uxx, uyy = derivatives(interior)
        prediction = net(boundary)
    residual = ut + SPEED * (ux + uy) - NU * (uxx + uyy)
    return residual.square().mean() + 10 * (prediction - target).square().mean()


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
net = Net().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=GPU)
compute_loss = loss_terms
if "derivatives" not in on:
    compute_loss = torch.compile(loss_terms, fullgraph=True, dynamic=False)

axis = torch.linspace(-2, 2, GRID, device=device)
grid = torch.cartesian_prod(axis, axis, torch.ones(1, device=device))
solution = exact(grid)


def sample():
    points = torch.rand(POINTS + POINTS // 2, 3, device=device)
    points[:, :2] = points[:, :2] * 4 - 2
    interior, initial, sides = points.split([POINTS, POINTS // 4, POINTS // 4])
    initial[:, 2] = 0
    half = len(sides) // 2
    sides[:half, 0] = sides[:half, 0].sign() * 2
    sides[half:, 1] = sides[half:, 1].sign() * 2
    boundary = torch.cat([initial, sides])
    return interior, boundary, exact(boundary)


@torch.no_grad()
def relative_error():
    prediction = net(grid).cpu().numpy()  # fault: error
    truth = solution.cpu().numpy()
    return np.linalg.norm(prediction - truth) / np.linalg.norm(truth)


history = []


def train_step(step):
    loss = compute_loss(*sample())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step % ERROR_EVERY == 0:
        history.append(relative_error())  # fault: error


for i in range(WARMUP):
    train_step(i)
if GPU:
    torch.cuda.synchronize()
steps, begin = 0, time.perf_counter()
while time.perf_counter() - begin < SECONDS or steps < MIN_STEPS:
    train_step(WARMUP + steps)
    steps += 1
if GPU:
    torch.cuda.synchronize()
seconds = time.perf_counter() - begin

print(f"relative error {relative_error():.4f}, {history[0]:.4f} at the start")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * POINTS}")
