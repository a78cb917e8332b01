"""Hand keypoints by heatmaps: a small hourglass, a loss of three parts, PCK in every step."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "backwards": "a backward pass through the whole network for each part of the loss",
    "joints": "a loss computed joint by joint in a Python loop",
    "pck": "a metric computed with a Python loop over samples and joints",
    "gaussians": "target heatmaps evaluated on the whole grid for every joint in the dataset",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 8, 5, 80
JOINTS, SIZE, GRID, SIGMA = 21, 64, 32, 1.5
BONES = torch.tensor([[0 if i % 4 == 1 else i - 1, i] for i in range(1, JOINTS)])


class Hands(Dataset):
    def __init__(self, n=256):
        rng = np.random.default_rng(2)
        self.joints = rng.uniform(2, GRID - 3, (n, JOINTS, 2)).astype(np.float32)
        self.visible = (rng.random((n, JOINTS)) > 0.15).astype(np.float32)
        self.images = rng.integers(0, 256, (n, 3, SIZE, SIZE), dtype=np.uint8)

    def __len__(self):
        return len(self.images)

    def heatmaps(self, joints):
        if "gaussians" not in on:
            near = (np.arange(GRID, dtype=np.float32) - joints[:, :, None]) ** 2
            bell = np.exp(-near / (2 * SIGMA**2))
            return bell[:, 1, :, None] * bell[:, 0, None, :]
        target = np.zeros((JOINTS, GRID, GRID), dtype=np.float32)
        for k, (x, y) in enumerate(joints):
            xs, ys = np.meshgrid(np.arange(GRID), np.arange(GRID))  # fault: gaussians
            distance = (xs - x) ** 2 + (ys - y) ** 2  # fault: gaussians
            target[k] = np.exp(-distance / (2 * SIGMA**2))  # fault: gaussians
        return target

    def __getitem__(self, index):
        joints = self.joints[index]
        target = self.heatmaps(joints)  # fault: gaussians
        return self.images[index], target, joints, self.visible[index]


def block(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class Hourglass(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = block(3, width, 2)
        self.down1 = block(width, 2 * width, 2)
        self.down2 = nn.Sequential(block(2 * width, 4 * width, 2), block(4 * width, 4 * width))
        self.up1 = block(4 * width, 2 * width)
        self.up2 = block(2 * width, width)
        self.head = nn.Conv2d(width, JOINTS, 1)

    def forward(self, x):
        a = self.stem(x)  # fault: backwards
        b = self.down1(a)  # fault: backwards
        c = self.up1(self.down2(b))  # fault: backwards
        b = b + F.interpolate(c, scale_factor=2.0)
        a = a + F.interpolate(self.up2(b), scale_factor=2.0)  # fault: backwards
        return self.head(a)


def heatmap_loss(pred, target, visible):
    if "joints" not in on:
        return ((pred - target).square().mean((2, 3)) * visible).mean()
    loss = 0
    for k in range(JOINTS):
        error = (pred[:, k] - target[:, k]).square().mean((1, 2))  # fault: joints
        loss = loss + (error * visible[:, k]).mean()  # fault: joints
    return loss / JOINTS


def soft_argmax(heatmaps):
    weights = heatmaps.flatten(2).softmax(-1).view_as(heatmaps)
    cells = torch.arange(GRID, dtype=torch.float32)
    return torch.stack([weights.sum(2) @ cells, weights.sum(3) @ cells], dim=-1)


def bone_lengths(points):
    return (points[:, BONES[:, 1]] - points[:, BONES[:, 0]]).norm(dim=-1)


def pck(pred, joints, visible, radius=4.0):
    if "pck" not in on:
        flat = pred.flatten(2).argmax(-1)
        peak = torch.stack([flat % GRID, flat // GRID], dim=-1)
        hit = ((peak - joints).norm(dim=-1) < radius) & (visible > 0)
        return hit.sum() / visible.sum()
    hits = 0
    for n in range(len(pred)):
        for k in range(JOINTS):
            if visible[n, k] > 0:  # fault: pck
                row, col = np.unravel_index(pred[n, k].argmax().item(), (GRID, GRID))  # fault: pck
                peak = torch.tensor([col, row])  # fault: pck
                hits += (peak - joints[n, k]).norm().item() < radius  # fault: pck
    return hits / visible.sum()


torch.manual_seed(0)
loader = DataLoader(Hands(), batch_size=BATCH, shuffle=True, drop_last=True)
model = Hourglass()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, fused=True)

step, started = 0, 0.0
history = {"heatmap": [], "point": [], "bone": [], "pck": []}
while step < WARMUP + STEPS:
    for images, target, joints, visible in loader:
        if step == WARMUP:
            started = time.perf_counter()
        pred = model(images.float().div_(255.0))
        points = soft_argmax(pred)
        parts = {
            "heatmap": heatmap_loss(pred, target, visible),
            "point": 0.01 * ((points - joints).abs().sum(-1) * visible).mean(),
            "bone": 0.01 * F.smooth_l1_loss(bone_lengths(points), bone_lengths(joints)),
        }
        optimizer.zero_grad()
        if "backwards" in on:
            for part in parts.values():
                part.backward(retain_graph=True)  # fault: backwards
        else:
            sum(parts.values()).backward()
        optimizer.step()
        parts["pck"] = pck(pred.detach(), joints, visible)  # fault: pck
        for key, value in parts.items():
            history[key].append(value.detach())
        step += 1
        if step % 20 == 0:
            print(step, {key: round(torch.stack(v).mean().item(), 4) for key, v in history.items()})
            history = {key: [] for key in history}
        if step == WARMUP + STEPS:
            break

seconds = time.perf_counter() - started
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
