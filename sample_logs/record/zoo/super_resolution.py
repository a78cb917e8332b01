"""Super resolution x2 of photographs, with a pixel loss and a perceptual loss (SRResNet-like)."""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FAULTS = {
    "unfrozen": "gradients of the weights of the perceptual network, which nobody updates",
    "deep": "layers of the perceptual network after the last one of which the loss is made",
    "whole": "whole photographs converted to float before a small patch is cut out",
}
on = set(sys.argv[1:])

PATCH, SCALE, BATCH = 40, 2, 8
WARMUP, STEPS = 5, 70


def make_photos(count=16, size=448):
    """Smooth random landscapes in place of photographs."""
    rng = np.random.default_rng(1)
    yy, xx = np.mgrid[0:size, 0:size] / size
    photos = []
    for _ in range(count):
        a, b, c = rng.uniform(2, 30, (3, 3))
        waves = np.sin(a * xx[..., None] + b * yy[..., None]) * np.cos(c * xx[..., None])
        photos.append(((waves + 1) * 127.5).astype(np.uint8))
    return photos


class Patches(Dataset):
    def __init__(self, photos, length):
        self.photos = photos
        self.length = length
        self.rng = np.random.default_rng(2)

    def __len__(self):
        return self.length

    def to_tensor(self, array):
        return torch.from_numpy(array).permute(2, 0, 1).float().div_(255).contiguous()

    def __getitem__(self, i):
        photo = self.photos[i % len(self.photos)]
        top, left = self.rng.integers(0, photo.shape[0] - PATCH, 2)
        if "whole" in on:
            image = self.to_tensor(photo)  # fault: whole
            return image[:, top : top + PATCH, left : left + PATCH]
        return self.to_tensor(photo[top : top + PATCH, left : left + PATCH])


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.act = nn.PReLU()
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.conv2(self.act(self.conv1(x)))


class SRNet(nn.Module):
    def __init__(self, width=24, blocks=3):
        super().__init__()
        self.head = nn.Conv2d(3, width, 3, padding=1)
        self.body = nn.Sequential(*(ResBlock(width) for _ in range(blocks)))
        self.up = nn.Conv2d(width, width * SCALE**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(SCALE)
        self.tail = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x):
        h = self.head(x)
        return self.tail(self.shuffle(self.up(h + self.body(h))))


class PerceptualLoss(nn.Module):
    """Distance of features of two layers of a network like VGG."""

    taps = (3, 8)

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for width in (16, "pool", 32, "pool", 64, 64, 64, "pool", 128, 128, 128):
            if width == "pool":
                layers.append(nn.MaxPool2d(2))
                continue
            layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU()]
            channels = width
        if "deep" not in on:
            layers = layers[: max(self.taps) + 1]
        self.layers = nn.ModuleList(layers)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        if "unfrozen" not in on:
            self.requires_grad_(False)

    def features(self, x):
        x = (x - self.mean) / self.std
        features = []
        for i, layer in enumerate(self.layers):
            x = layer(x)  # fault: deep  # fault: unfrozen
            if i in self.taps:
                features.append(x)
        return features

    def forward(self, output, target):
        pairs = zip(self.features(output), self.features(target))  # fault: unfrozen
        return sum(nn.functional.l1_loss(a, b) for a, b in pairs)


def main():
    torch.manual_seed(0)
    data = Patches(make_photos(), (WARMUP + STEPS) * BATCH)
    loader = DataLoader(data, batch_size=BATCH)
    net = SRNet()
    perceptual = PerceptualLoss().eval()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-4)

    for step, hr in enumerate(loader):
        if step == WARMUP:
            started = time.perf_counter()
        lr = nn.functional.avg_pool2d(hr, SCALE)
        sr = net(lr)
        pixel = nn.functional.l1_loss(sr, hr)
        loss = pixel + 0.1 * perceptual(sr, hr)  # fault: deep
        optimizer.zero_grad()
        loss.backward()  # fault: unfrozen
        optimizer.step()
        if step % 25 == 0:
            mse = nn.functional.mse_loss(sr.detach(), hr)
            print(f"iter {step}: loss {loss.item():.4f}, psnr {-10 * mse.log10().item():.2f} dB")

    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
