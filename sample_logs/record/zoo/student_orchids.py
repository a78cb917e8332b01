"""Distil a frozen teacher into a small student for orchid photos: logits, features and relations."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "graph": "a graph and gradients of the frozen teacher, which nothing uses",
    "decode": "photos decoded and resized at every access although all fit in memory",
    "pairs": "distances between samples computed pair by pair in a Python loop",
}
on = set(sys.argv[1:])

BATCH, WARMUP, STEPS = 16, 5, 70
CLASSES, T, ALPHA, BETA, GAMMA = 12, 4.0, 0.3, 0.5, 0.1


def write_photos(folder, n=96):
    rng = np.random.default_rng(3)
    for i in range(n):
        coarse = rng.integers(0, 256, (12, 12, 3), dtype=np.uint8)
        photo = Image.fromarray(coarse).resize((128, 128), Image.Resampling.BICUBIC)
        photo.save(folder / f"{i % CLASSES:02d}_{i:03d}.png")


class Orchids(Dataset):
    def __init__(self, folder):
        self.paths = sorted(folder.glob("*.png"))
        self.labels = [int(path.name[:2]) for path in self.paths]
        self.photos = None
        if "decode" not in on:
            self.photos = [self.load(path) for path in self.paths]

    def load(self, path):
        photo = Image.open(path).convert("RGB")  # fault: decode
        photo = photo.resize((36, 36), Image.Resampling.BILINEAR)  # fault: decode
        return torch.from_numpy(np.array(photo)).permute(2, 0, 1).contiguous()

    def __len__(self):
        return len(self.paths) * 8

    def __getitem__(self, index):
        index %= len(self.paths)
        if self.photos is not None:
            photo = self.photos[index]
        else:
            photo = self.load(self.paths[index])  # fault: decode
        top, left, flip = torch.randint(0, 5, (3,)).tolist()
        photo = photo[:, top : top + 32, left : left + 32]
        return (photo.flip(2) if flip > 2 else photo), self.labels[index]


def conv(cin, cout, stride=1):
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)
    )


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        layers = [conv(3, width)]
        for stage in range(3):
            layers.append(conv(width << stage, width << (stage + 1), stride=2))
            layers += [conv(width << (stage + 1), width << (stage + 1)) for _ in range(depth - 1)]
        self.body = nn.Sequential(*layers)
        self.fc = nn.Linear(width << 3, CLASSES)

    def forward(self, x):
        features = F.adaptive_avg_pool2d(self.body(x), 1).flatten(1)  # fault: graph
        return self.fc(features), features


def relations(features):
    """Distances between all samples of the batch, divided by their mean (relational KD)."""
    if "pairs" in on:
        rows = []
        for i in range(len(features)):
            for j in range(i + 1, len(features)):
                rows.append((features[i] - features[j]).norm())  # fault: pairs
        distances = torch.stack(rows)
    else:
        distances = F.pdist(features)
    return distances / distances.mean()


def teach(images):
    if "graph" in on:
        return teacher(images)  # fault: graph
    with torch.no_grad():
        return teacher(images)


torch.manual_seed(0)
folder = tempfile.TemporaryDirectory()
write_photos(Path(folder.name))
loader = DataLoader(Orchids(Path(folder.name)), batch_size=BATCH, shuffle=True, drop_last=True)
teacher = Net(16, 3).to(memory_format=torch.channels_last)
student = Net(8, 2).to(memory_format=torch.channels_last)
project = nn.Linear(64, 128)
teacher.eval()
parameters = [*student.parameters(), *project.parameters()]
optimizer = torch.optim.AdamW(parameters, lr=2e-3, weight_decay=0.01, fused=True)

step, started, losses = 0, 0.0, []
while step < WARMUP + STEPS:
    for photos, labels in loader:
        if step == WARMUP:
            started = time.time()
        images = photos.float().div_(127.5).sub_(1.0)
        images = images.contiguous(memory_format=torch.channels_last)
        t_logits, t_features = teach(images)
        s_logits, s_features = student(images)
        hard = F.cross_entropy(s_logits, labels)
        soft = F.kl_div(
            F.log_softmax(s_logits / T, dim=1),
            F.log_softmax(t_logits / T, dim=1),
            reduction="batchmean",
            log_target=True,
        )
        hint = F.mse_loss(project(s_features), t_features)
        relation = F.smooth_l1_loss(relations(s_features), relations(t_features))
        loss = ALPHA * hard + (1 - ALPHA) * T * T * soft + BETA * hint + GAMMA * relation
        optimizer.zero_grad()
        loss.backward()  # fault: graph
        optimizer.step()
        losses.append(loss.detach())
        step += 1
        if step % 25 == 0:
            print(f"step {step} | distillation loss {torch.stack(losses).mean():.4f}")
            losses.clear()
        if step == WARMUP + STEPS:
            break

seconds = time.time() - started
folder.cleanup()
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
