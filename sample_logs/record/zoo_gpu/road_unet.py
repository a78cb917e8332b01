"""U-Net for street scenes: Dice and boundary-weighted cross-entropy, mean IoU while training."""

import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "dice": "the Dice loss of one image and one class at a time in Python loops",
    "confusion": "the confusion matrix in NumPy on the CPU from predictions of every step",
    "boundary": "the boundary mask by dilation of a one-hot map of all classes",
}
on = set(sys.argv[1:])

GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")
BATCH, SIZE, WIDTH, IMAGES = (16, 256, 32, 256) if GPU else (2, 32, 4, 8)
CLASSES, DEPTH, RADIUS = 12, 4, 4
WARMUP, SECONDS = 10, 1.0


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
        nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [WIDTH * 2**i for i in range(DEPTH + 1)]
        self.stem = double_conv(3, WIDTH)
        self.downs = nn.ModuleList(double_conv(widths[i], widths[i + 1]) for i in range(DEPTH))
        self.ups = nn.ModuleList(
            nn.ConvTranspose2d(widths[i + 1], widths[i], 2, stride=2)
            for i in reversed(range(DEPTH))
        )
        self.convs = nn.ModuleList(
            double_conv(widths[i + 1], widths[i]) for i in reversed(range(DEPTH))
        )
        self.out = nn.Conv2d(WIDTH, CLASSES, 1)

    def forward(self, x):
        skips = [self.stem(x)]
        for down in self.downs:
            skips.append(down(F.max_pool2d(skips[-1], 2)))
        x = skips.pop()
        for up, conv in zip(self.ups, self.convs, strict=True):
            x = conv(torch.cat([skips.pop(), up(x)], dim=1))
        return self.out(x)


def boundary_mask(target):
    """Pixels with more than one class in their neighbourhood."""
    window = 2 * RADIUS + 1
    if "boundary" in on:
        one_hot = F.one_hot(target, CLASSES).permute(0, 3, 1, 2).float()  # fault: boundary
        dilated = F.max_pool2d(one_hot, window, stride=1, padding=RADIUS)  # fault: boundary
        return dilated.sum(1) > 1  # fault: boundary
    labels = target.unsqueeze(1).float()
    both = torch.cat([labels, -labels], dim=1)
    rows = F.max_pool2d(both, (1, window), stride=1, padding=(0, RADIUS))
    highest, negative = F.max_pool2d(rows, (window, 1), stride=1, padding=(RADIUS, 0)).unbind(1)
    return highest != -negative


def dice_loss(logits, target, eps=1.0):
    probs = logits.softmax(1)
    if "dice" in on:
        loss = 0.0
        for prob, mask in zip(probs, target, strict=True):
            for c, p in enumerate(prob):
                t = (mask == c).float()  # fault: dice
                inter = (p * t).sum()  # fault: dice
                union = p.sum() + t.sum()  # fault: dice
                loss = loss + 1 - (2 * inter + eps) / (union + eps)  # fault: dice
        return loss / (len(probs) * CLASSES)
    one_hot = target.unsqueeze(1) == torch.arange(CLASSES, device=target.device).view(1, -1, 1, 1)
    inter = (probs * one_hot).sum((2, 3))
    union = probs.sum((2, 3)) + one_hot.sum((2, 3))
    return 1 - ((2 * inter + eps) / (union + eps)).mean()


class MeanIoU:
    def __init__(self):
        self.matrix = torch.zeros(CLASSES * CLASSES, dtype=torch.long, device=device)

    def update(self, logits, target):
        pred = logits.argmax(1)
        if "confusion" in on:
            pred = pred.cpu().numpy().ravel()  # fault: confusion
            target = target.cpu().numpy().ravel()  # fault: confusion
            counts = np.bincount(target * CLASSES + pred, minlength=CLASSES**2)  # fault: confusion
            self.matrix += torch.from_numpy(counts).to(device)
        else:
            index = (target * CLASSES + pred).flatten()
            self.matrix.scatter_add_(0, index, torch.ones_like(index))

    def compute(self):
        matrix = self.matrix.view(CLASSES, CLASSES).double()
        hits = matrix.diag()
        return (hits / (matrix.sum(0) + matrix.sum(1) - hits).clamp(min=1)).mean().item()


torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
images = torch.randint(0, 256, (IMAGES, SIZE, SIZE, 3), dtype=torch.uint8, device=device)
coarse = torch.randint(0, CLASSES, (IMAGES, 1, 8, 8), device=device).float()
masks = F.interpolate(coarse, size=(SIZE, SIZE), mode="nearest").squeeze(1).long()

model = UNet().to(device, memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
miou = MeanIoU()
epoch_loss = torch.zeros((), device=device)

step, started = 0, 0.0
while True:
    batch = torch.randint(0, IMAGES, (BATCH,), device=device)
    image, target = images[batch].permute(0, 3, 1, 2), masks[batch]
    image = image.float().div_(127.5).sub_(1.0)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits = model(image)
    logits = logits.float()
    weight = 1.0 + 2.0 * boundary_mask(target)
    cross_entropy = (F.cross_entropy(logits, target, reduction="none") * weight).mean()
    loss = cross_entropy + dice_loss(logits, target)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # fault: dice
    optimizer.step()
    epoch_loss += loss.detach()
    miou.update(logits.detach(), target)
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

steps = step - WARMUP
print(f"loss {epoch_loss.item() / step:.4f}, mIoU {miou.compute():.4f}")
print(f"steps={steps} seconds={seconds:.4f} samples={steps * BATCH}")
