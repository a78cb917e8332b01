"""Plankton images classified by two processes with DistributedDataParallel (gloo)."""

import os
import socket
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FAULTS = {
    "every": "gradients reduced after each of the accumulated batches",
    "classes": "two all-reduces for each class in the running accuracy",
    "resize": "files opened and resized again in each epoch",
}

WORLD, BATCH, ACCUMULATE, CLASSES, SIZE = 2, 8, 4, 12, 32
WARMUP, STEPS = 4, 60


def write_images(folder, count=256):
    rng = np.random.default_rng(0)
    for i in range(count):
        noise = Image.fromarray(rng.integers(0, 256, (10, 10), dtype=np.uint8))
        noise.resize((96, 96), Image.BICUBIC).save(folder / f"{i % CLASSES:02d}_{i:04d}.png")


class Plankton(Dataset):
    def __init__(self, folder, cached):
        self.files = sorted(Path(folder).glob("*.png"))
        self.cache = [self.read(i) for i in range(len(self.files))] if cached else None

    def read(self, i):
        image = Image.open(self.files[i]).convert("L")
        image = image.resize((SIZE, SIZE), Image.LANCZOS)  # fault: resize
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255.0 - 0.5)
        return pixels[None], int(self.files[i].name[:2])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return self.cache[i] if self.cache is not None else self.read(i)  # fault: resize


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.conv3 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * 4 * 4, 512)
        self.fc2 = nn.Linear(512, CLASSES)

    def forward(self, x):
        for conv in (self.conv1, self.conv2, self.conv3):
            x = F.max_pool2d(F.relu(conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def running_accuracy(correct, seen, predicted, target, per_class):
    hits = torch.bincount(target[predicted == target], minlength=CLASSES)
    totals = torch.bincount(target, minlength=CLASSES)
    if per_class:
        for c in range(CLASSES):
            hit, total = hits[c].clone(), totals[c].clone()
            dist.all_reduce(hit)  # fault: classes
            dist.all_reduce(total)  # fault: classes
            correct[c] += hit
            seen[c] += total
    else:
        both = torch.stack([hits, totals])
        dist.all_reduce(both)
        correct += both[0]
        seen += both[1]


def train(rank, port, folder, on):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=WORLD)
    torch.manual_seed(0)
    data = Plankton(folder, cached="resize" not in on)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler, drop_last=True)
    model = DDP(ConvNet())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    correct, seen = torch.zeros(CLASSES).long(), torch.zeros(CLASSES).long()

    step, micro, epoch, started = 0, 0, 0, 0.0
    while step < WARMUP + STEPS:
        sampler.set_epoch(epoch)
        epoch += 1
        for images, targets in loader:
            if micro == 0:
                guesses, truths = [], []
                if step == WARMUP:
                    dist.barrier()
                    started = time.perf_counter()
            micro += 1
            waits = micro < ACCUMULATE and "every" not in on
            with model.no_sync() if waits else nullcontext():
                logits = model(images)
                loss = F.cross_entropy(logits, targets) / ACCUMULATE
                loss.backward()  # fault: every
            guesses.append(logits.detach().argmax(1))
            truths.append(targets)
            if micro < ACCUMULATE:
                continue
            optimizer.step()
            optimizer.zero_grad()
            running_accuracy(correct, seen, torch.cat(guesses), torch.cat(truths), "classes" in on)
            micro = 0
            step += 1
            if rank == 0 and step % 20 == 0:
                print(
                    f"step {step}: loss {loss.item():.3f}, accuracy {correct.sum() / seen.sum():.3f}"
                )
            if step == WARMUP + STEPS:
                break

    seconds = time.perf_counter() - started
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        samples = STEPS * ACCUMULATE * BATCH * WORLD
        print(f"steps={STEPS} seconds={seconds:.4f} samples={samples}")


if __name__ == "__main__":
    on = set(sys.argv[1:])
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        mp.spawn(train, args=(port, folder, on), nprocs=WORLD)
