"""Small ResNet on CIFAR-like images: one flat script, as a first project has it."""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

FAULTS = {
    "validate": "a pass over the validation set in every step",
    "checkpoint": "a checkpoint every two steps",
    "float64": "inputs and weights in double precision, because NumPy's default reached the model",
}
on = set(sys.argv[1:])

BATCH = 8
WARMUP, STEPS = 5, 60
EVAL_EVERY = 1 if "validate" in on else STEPS
SAVE_EVERY = 2 if "checkpoint" in on else STEPS


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or in_planes != planes:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_planes, planes, 1, stride, bias=False), nn.BatchNorm2d(planes)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))  # fault: float64
        out = self.bn2(self.conv2(out))  # fault: float64
        out += self.shortcut(x)  # fault: float64
        return F.relu(out)


class ResNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.layer1 = BasicBlock(8, 8)
        self.layer2 = BasicBlock(8, 16, stride=2)
        self.layer3 = BasicBlock(16, 32, stride=2)
        self.layer4 = BasicBlock(32, 128, stride=2)
        self.linear = nn.Linear(128, num_classes)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))  # fault: float64
        out = self.layer4(self.layer3(self.layer2(self.layer1(out))))  # fault: float64
        return self.linear(F.adaptive_avg_pool2d(out, 1).flatten(1))


print("==> Preparing data..")
rng = np.random.default_rng(0)
raw = rng.integers(0, 256, (1024 + 32, 3, 32, 32), dtype=np.uint8)
labels = torch.from_numpy(rng.integers(0, 10, len(raw)))
mean = np.array([0.4914, 0.4822, 0.4465]).reshape(1, 3, 1, 1)
std = np.array([0.2023, 0.1994, 0.2010]).reshape(1, 3, 1, 1)
images = torch.from_numpy((raw / 255.0 - mean) / std)
if "float64" not in on:
    images = images.float()

trainset = torch.utils.data.TensorDataset(images[:1024], labels[:1024])
valset = torch.utils.data.TensorDataset(images[1024:], labels[1024:])
trainloader = torch.utils.data.DataLoader(trainset, batch_size=BATCH, shuffle=True, drop_last=True)
valloader = torch.utils.data.DataLoader(valset, batch_size=32)

print("==> Building model..")
torch.manual_seed(0)
net = ResNet()
if "float64" in on:
    net = net.double()  # RuntimeError: expected scalar type Float but found Double
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
checkpoints = tempfile.TemporaryDirectory()


def evaluate():
    net.eval()
    correct = 0
    with torch.no_grad():
        for inputs, targets in valloader:
            correct += (net(inputs).argmax(1) == targets).sum().item()  # fault: validate
    net.train()
    return 100.0 * correct / len(valset)


step, started = 0, 0.0
while step < WARMUP + STEPS:
    for inputs, targets in trainloader:
        if step == WARMUP:
            started = time.time()
        optimizer.zero_grad()
        outputs = net(inputs)  # fault: float64
        loss = criterion(outputs, targets)
        loss.backward()  # fault: float64
        optimizer.step()
        step += 1
        if step > WARMUP and (step - WARMUP) % EVAL_EVERY == 0:
            acc = evaluate()  # fault: validate
            if step % 20 == 0:
                print("step %d | loss %.3f | val acc %.1f%%" % (step, loss.item(), acc))
        if step > WARMUP and (step - WARMUP) % SAVE_EVERY == 0:
            state = {
                "net": net.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
            }
            torch.save(state, Path(checkpoints.name) / f"ckpt_{step}.pth")  # fault: checkpoint
        if step == WARMUP + STEPS:
            break

seconds = time.time() - started
checkpoints.cleanup()
print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")
