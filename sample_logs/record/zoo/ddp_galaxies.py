"""Morphology of galaxies: a small VGG with accumulated gradients on two gloo processes."""

import contextlib
import sys
import tempfile
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from PIL import Image, ImageFilter
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

FAULTS = {
    "sync": "gradients reduced in every micro-batch, although the optimizer steps every fourth",
    "gather": "pickled predictions of all processes gathered in every micro-batch",
    "shard": "images of the complete batch prepared by each process, which keeps its half",
}
on = set(sys.argv[1:])

WORLD = 2
BATCH, ACCUMULATE = 8, 4  # of each process
SIZE, CLASSES = 32, 7
WARMUP, STEPS = 5, 60
LOG_EVERY = 10


class Galaxies(Dataset):
    def __init__(self, n=2048):
        self.rng = np.random.default_rng()
        rng = np.random.default_rng(0)
        y, x = np.mgrid[-1 : 1 : SIZE * 1j, -1 : 1 : SIZE * 1j]
        self.labels = rng.integers(0, CLASSES, n)
        self.images = []
        for label in self.labels:
            axis = rng.uniform(0.4, 1.0)
            glow = np.exp(-((x / axis) ** 2 + y**2) * (2 + label)) * 200
            glow = glow[:, :, None] * rng.uniform(0.6, 1.0, 3) + 20
            self.images.append(Image.fromarray(glow.clip(0, 255).astype(np.uint8)))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i].rotate(np.random.uniform(0, 360), Image.Resampling.BILINEAR)
        image = image.filter(ImageFilter.GaussianBlur(np.random.uniform(0.3, 1.2)))
        pixels = np.asarray(image, dtype=np.float32).transpose(2, 0, 1) / 255.0
        pixels = pixels + 0.02 * self.rng.standard_normal(pixels.shape, dtype=np.float32)
        pixels = (pixels - pixels.mean()) / (pixels.std() + 1e-3)
        return torch.from_numpy(pixels), int(self.labels[i])


def vgg():
    layers, cin = [], 3
    for cout in (16, 32, 64):
        layers += [nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        cin = cout
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(64 * (SIZE // 8) ** 2, 1280),
        nn.ReLU(),
        nn.Linear(1280, CLASSES),
    )


def batches(rank):
    """Micro-batches of this process."""
    galaxies = Galaxies()
    if "shard" in on:
        order = torch.Generator().manual_seed(0)
        loader = DataLoader(galaxies, BATCH * WORLD, shuffle=True, generator=order, drop_last=True)
        while True:
            for images, labels in loader:  # fault: shard
                yield images[rank::WORLD], labels[rank::WORLD]
    sampler = DistributedSampler(galaxies, WORLD, rank, seed=0, drop_last=True)
    loader = DataLoader(galaxies, BATCH, sampler=sampler, drop_last=True)
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def hits(logits, labels):
    """Right predictions: of all processes, or of this one, to be added up for the log."""
    if "gather" not in on:
        return (logits.argmax(1) == labels).sum()
    parts = [None] * WORLD
    dist.all_gather_object(parts, {"logits": logits, "labels": labels})  # fault: gather
    return sum((part["logits"].argmax(1) == part["labels"]).sum() for part in parts)


def train(rank, rendezvous, faults):
    on.update(faults)
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{rendezvous}/init", rank=rank, world_size=WORLD
    )
    torch.manual_seed(0)
    np.random.seed(rank)
    model = DistributedDataParallel(vgg())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, fused=True)
    data = batches(rank)
    correct, started = torch.zeros(1), 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            dist.barrier()
            started = time.time()
        for micro in range(ACCUMULATE):
            images, labels = next(data)
            last = micro == ACCUMULATE - 1
            local = contextlib.nullcontext() if last or "sync" in on else model.no_sync()
            with local:
                logits = model(images)
                loss = F.cross_entropy(logits, labels) / ACCUMULATE
                loss.backward()  # fault: sync
            correct += hits(logits.detach(), labels)
        optimizer.step()
        optimizer.zero_grad()
        if (step + 1) % LOG_EVERY == 0:
            if "gather" not in on:
                dist.all_reduce(correct)
            if rank == 0:
                seen = LOG_EVERY * WORLD * ACCUMULATE * BATCH
                print(f"step {step + 1} accuracy {correct.item() / seen:.3f}")
            correct.zero_()
    seconds = time.time() - started
    if rank == 0:
        print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * WORLD * ACCUMULATE * BATCH}")
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as rendezvous:
        mp.spawn(train, args=(rendezvous, sorted(on)), nprocs=WORLD)
