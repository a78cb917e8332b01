"""PointNet: the part that each point of a scanned chair belongs to."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "farthest": "farthest points selected in Python whenever a cloud is read",
    "concat": "the feature of the whole cloud copied to each point before a layer",
    "iou": "the IoU of each cloud and part counted in NumPy loops in every step",
}
on = set(sys.argv[1:])

N_CLOUDS, RAW_POINTS, POINTS, PARTS = 160, 600, 256, 6
BATCH = 16
WARMUP, STEPS = 3, 60


def farthest_points(cloud, count):
    """Return the positions of points that are far from each other."""
    selected = np.zeros(count, dtype=np.int64)
    distance = np.full(len(cloud), np.inf, dtype=np.float32)
    for i in range(1, count):
        delta = cloud - cloud[selected[i - 1]]  # fault: farthest
        distance = np.minimum(distance, np.einsum("ij,ij->i", delta, delta))  # fault: farthest
        selected[i] = distance.argmax()  # fault: farthest
    return selected


def scan_chairs(seed=5):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, PARTS, (N_CLOUDS, RAW_POINTS))
    center = rng.normal(0, 1, (N_CLOUDS, PARTS, 3))
    cloud = np.take_along_axis(center, label[..., None], 1)
    cloud += rng.normal(0, 0.25, cloud.shape)
    cloud -= cloud.mean(1, keepdims=True)
    cloud /= np.linalg.norm(cloud, axis=2).max(1)[:, None, None]
    return cloud.astype(np.float32), label


class Chairs(Dataset):
    def __init__(self, keep):
        self.clouds, self.labels = scan_chairs()
        if keep:
            self.selected = [farthest_points(cloud, POINTS) for cloud in self.clouds]
        else:
            self.selected = None

    def __len__(self):
        return len(self.clouds)

    def __getitem__(self, i):
        cloud = self.clouds[i]
        if self.selected is None:
            selected = farthest_points(cloud, POINTS)  # fault: farthest
        else:
            selected = self.selected[i]
        angle = np.random.uniform(0, 2 * np.pi)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]], dtype=np.float32)
        return torch.from_numpy(cloud[selected] @ turn), torch.from_numpy(self.labels[i][selected])


def mlp(*sizes):
    layers = []
    for n_in, n_out in zip(sizes, sizes[1:]):
        layers += [nn.Linear(n_in, n_out, bias=False), nn.BatchNorm1d(n_out), nn.ReLU()]
    return nn.Sequential(*layers)


class PointNetSegmenter(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.local = mlp(3, 32, 64)
        self.lift = mlp(64, 64, width)
        self.mix = nn.Linear(64 + width, 128, bias=False)
        self.mix_norm = nn.BatchNorm1d(128)
        self.head = nn.Sequential(mlp(128, 64), nn.Linear(64, PARTS))

    def forward(self, clouds):
        b, n, _ = clouds.shape
        local = self.local(clouds.reshape(b * n, 3))
        whole = self.lift(local).view(b, n, -1).amax(1)
        if "concat" in on:
            repeated = whole[:, None].expand(-1, n, -1).reshape(b * n, -1)
            mixed = self.mix(torch.cat([local, repeated], 1))  # fault: concat
        else:
            by_point, by_cloud = self.mix.weight.split([64, whole.shape[1]], 1)
            mixed = (local @ by_point.T).view(b, n, -1) + (whole @ by_cloud.T)[:, None]
            mixed = mixed.flatten(0, 1)
        return self.head(F.relu(self.mix_norm(mixed)))


def mean_iou(predicted, target):
    """IoU over parts, then over clouds; 1 for parts that are absent."""
    if "iou" in on:
        predicted, target = predicted.numpy(), target.numpy()
        clouds = []
        for p, t in zip(predicted, target):
            parts = []
            for part in range(PARTS):
                inter = np.sum(np.logical_and(p == part, t == part))  # fault: iou
                union = np.sum(np.logical_or(p == part, t == part))  # fault: iou
                parts.append(1.0 if union == 0 else inter / float(union))
            clouds.append(np.mean(parts))  # fault: iou
        return np.mean(clouds)
    position = torch.arange(len(target))[:, None] * PARTS**2 + target * PARTS + predicted
    counts = position.flatten().bincount(minlength=len(target) * PARTS**2).view(-1, PARTS, PARTS)
    inter = counts.diagonal(dim1=1, dim2=2)
    union = counts.sum(1) + counts.sum(2) - inter
    return torch.where(union == 0, 1.0, inter / union.clamp(min=1)).mean().item()


if __name__ == "__main__":
    np.random.seed(0)
    torch.manual_seed(0)
    loader = DataLoader(Chairs("farthest" not in on), BATCH, shuffle=True, drop_last=True)
    model = PointNetSegmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    step, iou = 0, 0.0
    while step < WARMUP + STEPS:
        for clouds, labels in loader:
            if step == WARMUP:
                started = time.time()
            logits = model(clouds)
            loss = F.cross_entropy(logits, labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            iou = 0.9 * iou + 0.1 * mean_iou(logits.detach().argmax(1).view_as(labels), labels)
            step += 1
            if step % 20 == 0:
                print("[%d] loss: %.4f, mIoU: %.3f" % (step, loss.item(), iou))
            if step == WARMUP + STEPS:
                break
    seconds = time.time() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
