"""One-stage detector of blood cells: pyramid, anchors, target assignment and focal loss."""

import itertools
import math
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "matching": "overlap with the anchors computed box by box in a Python loop",
    "anchors": "the anchors of fixed grids generated again in every step",
    "workers": "worker processes for tensors in memory, started anew in each short epoch",
}
on = set(sys.argv[1:])

BATCH, SIDE, CLASSES, MAX_BOXES = 8, 64, 3, 10
SCALES, RATIOS = (1.0, 2 ** (1 / 3), 2 ** (2 / 3)), (0.5, 1.0, 2.0)
WARMUP, STEPS = 12, 60


class Cells(Dataset):
    def __init__(self, n=96):
        gen = torch.Generator().manual_seed(1)
        self.images = torch.rand(n, 3, SIDE, SIDE, generator=gen)
        wh = 6 + 20 * torch.rand(n, MAX_BOXES, 2, generator=gen)
        xy = (SIDE - wh) * torch.rand(n, MAX_BOXES, 2, generator=gen)
        self.boxes = torch.cat([xy, xy + wh], dim=2)
        self.labels = torch.randint(0, CLASSES, (n, MAX_BOXES), generator=gen)
        counts = torch.randint(4, MAX_BOXES + 1, (n, 1), generator=gen)
        self.boxes[torch.arange(MAX_BOXES) >= counts] = 0.0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i], self.boxes[i], self.labels[i]


def make_anchors():
    anchors = []
    for stride in (4, 8, 16):
        for y, x in itertools.product(range(SIDE // stride), repeat=2):
            cx, cy = (x + 0.5) * stride, (y + 0.5) * stride
            for scale, ratio in itertools.product(SCALES, RATIOS):
                w = 2 * stride * scale * math.sqrt(ratio)  # fault: anchors
                h = 2 * stride * scale / math.sqrt(ratio)  # fault: anchors
                anchors.append([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])  # fault: anchors
    return torch.tensor(anchors)  # fault: anchors


def conv(cin, cout, stride=1):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1), nn.ReLU(inplace=True))


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(conv(3, 16, 2), conv(16, 32, 2))
        self.c4, self.c5 = conv(32, 48, 2), conv(48, 64, 2)
        self.lateral = nn.ModuleList(nn.Conv2d(c, 32, 1) for c in (32, 48, 64))
        self.cls = nn.Conv2d(32, 9 * CLASSES, 3, padding=1)
        self.reg = nn.Conv2d(32, 9 * 4, 3, padding=1)
        nn.init.constant_(self.cls.bias, -4.0)
        self.register_buffer("anchors", make_anchors())

    def forward(self, x):
        c3 = self.stem(x)
        c4 = self.c4(c3)
        p3, p4, p5 = (f(c) for f, c in zip(self.lateral, (c3, c4, self.c5(c4)), strict=True))
        p4 = p4 + F.interpolate(p5, scale_factor=2)
        p3 = p3 + F.interpolate(p4, scale_factor=2)
        scores = [
            self.cls(p).permute(0, 2, 3, 1).reshape(len(x), -1, CLASSES) for p in (p3, p4, p5)
        ]
        deltas = [self.reg(p).permute(0, 2, 3, 1).reshape(len(x), -1, 4) for p in (p3, p4, p5)]
        anchors = make_anchors() if "anchors" in on else self.anchors  # fault: anchors
        return torch.cat(scores, 1), torch.cat(deltas, 1), anchors


def iou(anchors, boxes):
    ax1, ay1, ax2, ay2 = anchors.unbind(1)
    bx1, by1, bx2, by2 = boxes[:, :, None].unbind(-1)
    w = (torch.minimum(ax2, bx2) - torch.maximum(ax1, bx1)).clamp_(min=0)
    h = (torch.minimum(ay2, by2) - torch.maximum(ay1, by1)).clamp_(min=0)
    inter = w.mul_(h)
    union = (ax2 - ax1) * (ay2 - ay1) + (bx2 - bx1) * (by2 - by1) - inter
    return inter.div_(union)


@torch.no_grad()
def assign(anchors, boxes, labels):
    if "matching" in on:
        overlap = torch.zeros(len(boxes), boxes.shape[1], len(anchors))
        for b in range(len(boxes)):
            for g in range(boxes.shape[1]):
                one = boxes[b : b + 1, g : g + 1]
                overlap[b, g] = iou(anchors, one)  # fault: matching
    else:
        overlap = iou(anchors, boxes)
    best, index = overlap.max(1)
    positive = best > 0.5
    image, anchor = positive.nonzero(as_tuple=True)
    selected = index[image, anchor]
    target = torch.zeros(len(boxes), len(anchors), CLASSES)
    target[image, anchor, labels[image, selected]] = 1.0
    gt, a = boxes[image, selected], anchors[anchor]
    size = a[:, 2:] - a[:, :2]
    shift = (gt[:, :2] + gt[:, 2:] - a[:, :2] - a[:, 2:]) / (2 * size)
    return target, torch.cat([shift, ((gt[:, 2:] - gt[:, :2]) / size).log()], 1), (image, anchor)


def main():
    torch.manual_seed(0)
    workers = 2 if "workers" in on else 0
    loader = DataLoader(Cells(), BATCH, shuffle=True, num_workers=workers)  # fault: workers
    net = Detector()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    step, started = 0, 0.0
    while step < WARMUP + STEPS:
        for images, boxes, labels in loader:  # fault: workers
            if step == WARMUP:
                started = time.perf_counter()
            scores, deltas, anchors = net(images)
            target, offsets, where = assign(anchors, boxes, labels)
            bce = F.binary_cross_entropy_with_logits(scores, target, reduction="none")
            focal = ((target - scores.sigmoid()).square() * bce).sum()
            positives = max(len(offsets), 1)
            loss = (focal + F.smooth_l1_loss(deltas[where], offsets, reduction="sum")) / positives
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
