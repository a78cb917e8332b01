"""Transfer learning on photos of ceramic tiles: the backbone stays as it is, the head is trained."""

import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "reopen": "every photo opened, decoded and resized again each time it is drawn",
    "unfrozen": "gradients of the pretrained backbone, whose weights no optimizer updates",
    "accuracy": "a second forward pass over each batch for the training accuracy",
}
on = set(sys.argv[1:])

CLASSES = ["crack", "glaze", "good", "stain"]
BATCH = 24
WARMUP, STEPS = 5, 60
MEAN = torch.tensor([0.485, 0.456, 0.406])
STD = torch.tensor([0.229, 0.224, 0.225])


def write_photos(root, per_class=40):
    rng = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        (root / name).mkdir()
        for i in range(per_class):
            small = rng.integers(60, 160 + 20 * label, (12, 16, 3), dtype=np.uint8)
            photo = Image.fromarray(small).resize((256, 192), Image.Resampling.BICUBIC)
            photo.save(root / name / f"{i:03d}.jpg", quality=90)


class TileFolder(Dataset):
    def __init__(self, root):
        self.paths = sorted(root.glob("*/*.jpg"))
        self.targets = [CLASSES.index(path.parent.name) for path in self.paths]
        self.images = None
        if "reopen" not in on:
            self.images = [self.load(path) for path in self.paths]

    def load(self, path):
        with Image.open(path) as photo:
            photo = photo.convert("RGB")  # fault: reopen
            photo = photo.resize((72, 72), Image.Resampling.BILINEAR)  # fault: reopen
        return np.asarray(photo)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.images is None:
            image = self.load(self.paths[index])  # fault: reopen
        else:
            image = self.images[index]
        top, left = random.randint(0, 8), random.randint(0, 8)
        image = image[top : top + 64, left : left + 64]
        if random.random() < 0.5:
            image = image[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(image)), self.targets[index]


def make_backbone():
    layers, channels = [], 3
    for width in (16, 32, 64, 64):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
        layers += [nn.MaxPool2d(2)]
        channels = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten())


def main():
    random.seed(0)
    torch.manual_seed(0)
    folder = tempfile.TemporaryDirectory()
    write_photos(Path(folder.name))
    dataset = TileFolder(Path(folder.name))
    loader = DataLoader(dataset, batch_size=BATCH, shuffle=True)

    backbone = make_backbone().eval()
    head = nn.Sequential(nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 4))
    if "unfrozen" not in on:
        backbone.requires_grad_(False)
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    step, started, epoch = 0, 0.0, 0
    while step < WARMUP + STEPS:
        running, correct, seen = 0.0, 0, 0
        for images, targets in loader:
            if step == WARMUP:
                started = time.perf_counter()
            exposure = torch.empty(len(images), 1, 1, 1).uniform_(0.8, 1.2)
            images = images * (exposure / 255.0)
            images = ((images - MEAN) / STD).permute(0, 3, 1, 2)

            logits = head(backbone(images))  # fault: unfrozen
            loss = criterion(logits, targets)
            optimizer.zero_grad()
            loss.backward()  # fault: unfrozen
            optimizer.step()

            running += loss.item() * len(targets)
            if "accuracy" in on:
                head.eval()
                with torch.no_grad():
                    logits = head(backbone(images))  # fault: accuracy
                head.train()
            correct += (logits.argmax(1) == targets).sum().item()
            seen += len(targets)
            step += 1
            if step == WARMUP + STEPS:
                break
        epoch += 1
        print(f"epoch {epoch}: loss {running / seen:.3f}, accuracy {correct / seen:.2f}")

    seconds = time.perf_counter() - started
    folder.cleanup()
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
