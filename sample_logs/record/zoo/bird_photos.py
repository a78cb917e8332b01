"""Classify photos of birds with a small residual network; the photos are JPEG files in a folder."""

import io
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from PIL import Image, ImageDraw
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

FAULTS = {
    "main_process_loading": "JPEG files decoded and resized in the training process",
    "python_normalization": "pixels normalized one by one in Python",
    "weight_report": "statistics of weights and gradients read and printed every step",
}
on = set(sys.argv[1:])

BATCH_SIZE = 12
IMAGE_SIZE = 40
CLASSES = 8
WARMUP_STEPS = 10
STEPS = 100
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)  # leave a core to the loader


def draw_photos(folder, count):
    """Write `count` JPEG files whose label is in their name."""
    for i in range(count):
        label = i % CLASSES
        image = Image.effect_noise((240, 200), 40).convert("RGB")
        draw = ImageDraw.Draw(image)
        x, y = random.randint(10, 120), random.randint(10, 100)
        color = (30 * label, 255 - 30 * label, random.randint(0, 255))
        draw.ellipse((x, y, x + 40 + 8 * label, y + 60), fill=color)
        image.save(folder / f"{i:04d}_{label}.jpg", quality=90)


class BirdPhotos(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.jpg"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, idx):
        path = self.files[idx]
        image = Image.open(io.BytesIO(path.read_bytes())).convert("RGB")
        image = image.resize((IMAGE_SIZE, IMAGE_SIZE), Image.Resampling.BILINEAR)
        if "python_normalization" in on:
            planes = []
            for channel, mean, std in zip(image.split(), MEAN, STD):
                pixels = channel.tobytes()
                plane = [(p / 255 - mean) / std for p in pixels]  # fault: python_normalization
                planes.append(plane)
            x = torch.tensor(planes).view(3, IMAGE_SIZE, IMAGE_SIZE)  # fault: python_normalization
        else:
            x = torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255)
            x = (x - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
        return x, int(path.stem.split("_")[1])


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.skip = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.skip(x))


net = nn.Sequential(
    nn.Conv2d(3, 16, 3, 2, 1),
    nn.ReLU(),
    *[Block(*args) for args in [(16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 48, 2)]],
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(48, CLASSES),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)

folder = tempfile.TemporaryDirectory()
draw_photos(Path(folder.name), (WARMUP_STEPS + STEPS) * BATCH_SIZE // 2)
data = BirdPhotos(Path(folder.name))
if "main_process_loading" in on:
    loader = DataLoader(data, BATCH_SIZE, shuffle=True)  # fault: main_process_loading
else:
    loader = DataLoader(
        data, BATCH_SIZE, shuffle=True, num_workers=1, prefetch_factor=8, persistent_workers=True
    )

step = 0
for epoch in range(2):
    bar = tqdm(loader, desc=f"epoch {epoch}")
    for x, y in bar:  # fault: main_process_loading  # fault: python_normalization
        if step == WARMUP_STEPS:
            start = time.perf_counter()
        optimizer.zero_grad()
        out = net(x)
        loss = criterion(out, y)
        loss.backward()
        optimizer.step()
        if "weight_report" in on or step % 50 == 0:
            report = {}
            for name, p in net.named_parameters():
                report[name] = (
                    p.data.mean().item(),  # fault: weight_report
                    p.data.std().item(),  # fault: weight_report
                    p.grad.norm().item(),  # fault: weight_report
                    p.grad.abs().max().item(),  # fault: weight_report
                    np.histogram(p.data.numpy(), bins=30)[0].max(),  # fault: weight_report
                    np.histogram(p.grad.numpy(), bins=30)[0].max(),  # fault: weight_report
                )
            acc = (out.argmax(1) == y).float().mean().item()  # fault: weight_report
            bar.set_postfix(loss=loss.item(), acc=acc)  # fault: weight_report
            for name, row in report.items():
                print(step, name, *(f"{v:.2e}" for v in row))  # fault: weight_report
        step += 1

seconds = time.perf_counter() - start
folder.cleanup()
print(f"final loss {loss.item():.4f}")
print(f"steps={STEPS} seconds={seconds:.3f} samples={STEPS * BATCH_SIZE}")
