"""ResNet-34 on photo crops: plain PyTorch, with a dataset that augments in Python."""

import random
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler

FAULTS = {
    "jitter": "colour jitter and normalisation of each image in NumPy's double precision in the "
    "loader workers, which send float32 batches",
    "layout": "a model and batches in NCHW layout under bfloat16 autocast",
    "accuracy": "a second forward pass in each step for the training accuracy",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, SIZE, CROP, IMAGES, WORKERS = (256, 128, 112, 4096, 4) if GPU else (4, 40, 32, 64, 2)
WIDTH, DEPTHS = (64, (3, 4, 6, 3)) if GPU else (8, (1, 1, 1, 1))
CLASSES = 37
WARMUP, SECONDS = 12, 1.0
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Photos(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.images = rng.integers(0, 256, (count, SIZE, SIZE, 3), dtype=np.uint8)
        self.labels = rng.integers(0, CLASSES, count)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        top, left = random.randint(0, SIZE - CROP), random.randint(0, SIZE - CROP)
        image = self.images[index][top : top + CROP, left : left + CROP]
        if random.random() < 0.5:
            image = image[:, ::-1]
        brightness, contrast = random.uniform(0.7, 1.3), random.uniform(0.7, 1.3)
        if "jitter" in on:
            image = image / 255.0  # fault: jitter
            grey = image.mean()  # fault: jitter
            image = ((image - grey) * contrast + grey) * brightness  # fault: jitter
            image = np.clip(image, 0.0, 1.0)  # fault: jitter
            image = (image - np.array(MEAN)) / np.array(STD)  # fault: jitter
            image = image.astype(np.float32)  # fault: jitter
        factors = np.array([brightness, contrast], dtype=np.float32)
        return np.ascontiguousarray(image), int(self.labels[index]), factors


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)), inplace=True)
        out = self.bn2(self.conv2(out))
        out += x if self.down is None else self.down(x)
        return F.relu(out, inplace=True)


def make_resnet():
    layers = [
        nn.Conv2d(3, WIDTH, 7, 2, 3, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    inputs = WIDTH
    for i, depth in enumerate(DEPTHS):
        for j in range(depth):
            outputs = WIDTH * 2**i
            layers.append(Block(inputs, outputs, 2 if i > 0 and j == 0 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, CLASSES))


mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
std = torch.tensor(STD, device=device).view(1, 3, 1, 1)


def prepare(images, factors):
    images = images.permute(0, 3, 1, 2)
    if images.dtype == torch.uint8:
        brightness, contrast = factors.view(-1, 2, 1, 1, 1).unbind(1)
        images = images.float() / 255
        grey = images.mean((1, 2, 3), keepdim=True)
        images = ((images - grey) * contrast + grey) * brightness
        images = (images.clamp(0, 1) - mean) / std
    if "layout" in on:
        images = images.contiguous()  # fault: layout
    return images


def autocast():
    return torch.autocast(device.type, dtype=torch.bfloat16)


def main():
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    dataset = Photos(IMAGES)
    loader = DataLoader(
        dataset,
        batch_size=BATCH,
        sampler=RandomSampler(dataset, replacement=True, num_samples=BATCH * 2000),
        num_workers=WORKERS,
        pin_memory=GPU,
        drop_last=True,
    )
    model = make_resnet().to(device)
    if "layout" not in on:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True, fused=True
    )
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    total_loss = torch.zeros((), device=device)
    correct = torch.zeros((), device=device, dtype=torch.long)

    step, started = 0, 0.0
    for images, labels, factors in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        images = prepare(images, factors.to(device, non_blocking=True))
        with autocast():
            logits = model(images)  # fault: layout
            loss = criterion(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # fault: layout
        optimizer.step()
        total_loss += loss.detach()
        if "accuracy" in on:
            model.eval()
            with torch.no_grad(), autocast():
                logits = model(images)  # fault: accuracy
            model.train()
        correct += (logits.argmax(1) == labels).sum()
        step += 1
        if step == WARMUP:
            if GPU:
                torch.cuda.synchronize()
            started = time.perf_counter()
        if step > WARMUP and time.perf_counter() - started >= SECONDS:
            break
    if GPU:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started

    print(f"loss {total_loss.item() / step:.3f}, accuracy {correct.item() / (step * BATCH):.3f}")
    steps = step - WARMUP
    print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")


if __name__ == "__main__":
    main()
