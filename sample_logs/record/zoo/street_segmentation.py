"""Small U-Net that segments street scenes drawn with PIL, with IoU and pictures of predictions."""

import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "palette_loop": "label colours turned into class numbers pixel by pixel",
    "iou_loops": "IoU computed for one class of one image at a time",
    "save_each_step": "a picture of the predictions written at every step",
}
on = set(sys.argv[1:])

PALETTE = {
    (128, 64, 128): 0,  # road
    (70, 70, 70): 1,  # building
    (0, 0, 142): 2,  # car
    **{(107, 142, 35): 3, (70, 130, 180): 4, (220, 20, 60): 5},  # tree, sky, person
    **{(153, 153, 153): 6, (220, 220, 0): 7, (244, 35, 232): 8},  # pole, sign, pavement
    **{(190, 153, 153): 9, (119, 11, 32): 10, (152, 251, 152): 11},  # fence, bicycle, terrain
}
COLOURS, NUM_CLASSES = np.array(list(PALETTE), dtype=np.uint8), len(PALETTE)
SIZE, BATCH, STEPS, WARMUP = 64, 8, 100, 5

CODES = COLOURS.astype(np.int64) @ np.array([65536, 256, 1])
ORDER = np.argsort(CODES)


class StreetScenes(Dataset):
    def __init__(self, n):
        rng = random.Random(0)
        self.images, self.labels = [], []
        for _ in range(n):
            label = Image.new("RGB", (SIZE, SIZE), tuple(COLOURS[4].tolist()))
            draw = ImageDraw.Draw(label)
            draw.rectangle([0, SIZE // 2, SIZE, SIZE], fill=tuple(COLOURS[0].tolist()))
            for _ in range(9):
                x, y, w = rng.randrange(SIZE), rng.randrange(SIZE), rng.randrange(6, 26)
                draw.rectangle(
                    [x, y, x + w, y + w], fill=tuple(COLOURS[rng.randrange(NUM_CLASSES)].tolist())
                )
            noise = np.random.default_rng(len(self.images)).normal(0, 20, (SIZE, SIZE, 3))
            self.images.append((np.asarray(label) + noise).clip(0, 255).astype(np.uint8))
            self.labels.append(np.asarray(label))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image, colours = self.images[i], self.labels[i]
        if random.random() < 0.5:
            image, colours = image[:, ::-1], colours[:, ::-1]
        if "palette_loop" in on:
            rows = colours.tolist()
            mask = [[PALETTE[tuple(rgb)] for rgb in row] for row in rows]  # fault: palette_loop
        else:
            codes = colours.astype(np.int64) @ np.array([65536, 256, 1])
            mask = ORDER[np.searchsorted(CODES[ORDER], codes)]
        x = torch.from_numpy(image.copy()).permute(2, 0, 1).float() / 255
        return x, torch.as_tensor(np.asarray(mask), dtype=torch.long)


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, c=6):
        super().__init__()
        self.stem = nn.Conv2d(3, c, 3, stride=2, padding=1)
        self.enc1, self.enc2, self.enc3 = block(c, c), block(c, 2 * c), block(2 * c, 4 * c)
        self.dec2, self.dec1 = block(6 * c, 2 * c), block(3 * c, c)
        self.head = nn.Conv2d(c, NUM_CLASSES, 1)

    def forward(self, x):
        e1 = self.enc1(self.stem(x))
        e2 = self.enc2(F.max_pool2d(e1, 2))
        e3 = self.enc3(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([F.interpolate(e3, scale_factor=2), e2], 1))
        d1 = self.dec1(torch.cat([F.interpolate(d2, scale_factor=2), e1], 1))
        return F.interpolate(self.head(d1), scale_factor=2)


def mean_iou(pred, target):
    if "iou_loops" in on:
        per_image = []
        for p, t in zip(pred, target):
            ious = []
            for c in range(NUM_CLASSES):
                tp = ((p == c) & (t == c)).sum().item()  # fault: iou_loops
                fp = ((p == c) & (t != c)).sum().item()  # fault: iou_loops
                fn = ((p != c) & (t == c)).sum().item()  # fault: iou_loops
                if tp + fp + fn > 0:
                    ious.append(tp / (tp + fp + fn))
            per_image.append(sum(ious) / len(ious))
        return sum(per_image) / len(per_image)
    n, k = len(pred), NUM_CLASSES
    index = (torch.arange(n).view(n, 1, 1) * k + target) * k + pred
    m = torch.bincount(index.flatten(), minlength=n * k * k).view(n, k, k).float()
    inter = m.diagonal(dim1=1, dim2=2)
    union = m.sum(1) + m.sum(2) - inter
    iou = torch.where(union > 0, inter / union.clamp(min=1), torch.nan)
    return iou.nanmean(1).mean().item()


def save_predictions(pred, target, path):
    rows = np.concatenate([COLOURS[target.numpy()], COLOURS[pred.numpy()]], axis=1)
    sheet = Image.fromarray(np.concatenate(list(rows), axis=1))
    w, h = sheet.size
    sheet = sheet.resize((2 * w, 2 * h), Image.BICUBIC)  # fault: save_each_step
    sheet.save(path)  # fault: save_each_step


def main():
    torch.manual_seed(0)
    random.seed(0)
    out = Path(tempfile.mkdtemp())
    loader = DataLoader(StreetScenes(BATCH * 25), batch_size=BATCH, shuffle=True, drop_last=True)
    model = UNet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    step, running = 0, 0.0
    while True:
        for x, y in loader:
            if step == WARMUP:
                start = time.perf_counter()
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            opt.zero_grad()
            loss.backward()
            opt.step()
            pred = logits.argmax(1)
            running = 0.9 * running + 0.1 * mean_iou(pred, y)
            if "save_each_step" in on or step % 50 == 0:
                save_predictions(pred, y, out / f"step{step:05d}.png")
            step += 1
            if step == STEPS + WARMUP:
                return time.perf_counter() - start


if __name__ == "__main__":
    print(f"steps={STEPS} seconds={main():.3f} samples={STEPS * BATCH}")
