"""U-Net that removes clouds from satellite tiles, with a feature loss and EMA weights."""

import io
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from PIL import Image, ImageFilter
from torch.utils.data import DataLoader, Dataset
from torchmetrics.functional.image import structural_similarity_index_measure as ssim

FAULTS = {
    "average": "the state dict built anew for every entry of the moving average",
    "features": "features of the target recorded, and gradients of the frozen feature network",
    "scaling": "tiles decoded and scaled down in every access",
    "similarity": "the structural similarity computed in every step",
}
on = set(sys.argv[1:])

SIZE, SOURCE, BATCH, TILES = 48, 144, 4, 64
WARMUP, STEPS, LOG_EVERY, DECAY = 5, 60, 30, 0.995


def make_tile(rng):
    ground = Image.fromarray(rng.integers(0, 256, (24, 24, 3), dtype=np.uint8))
    clouds = Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8))
    clear = ground.resize((SOURCE, SOURCE), Image.Resampling.BICUBIC)
    clouds = clouds.resize((SOURCE, SOURCE)).filter(ImageFilter.GaussianBlur(6))
    cloudy = Image.composite(Image.new("RGB", clear.size, "white"), clear, clouds)
    files = [io.BytesIO(), io.BytesIO()]
    for image, file in zip((cloudy, clear), files, strict=True):
        image.save(file, "JPEG", quality=90)
    return files


class Tiles(Dataset):
    def __init__(self, n=TILES):
        rng = np.random.default_rng(0)
        self.files = [make_tile(rng) for _ in range(n)]
        self.pairs = [self.load(i) for i in range(n)]

    def load(self, index):
        pair = []
        for file in self.files[index]:
            image = Image.open(file).convert("RGB")  # fault: scaling
            image = image.resize((SIZE, SIZE), Image.Resampling.LANCZOS)  # fault: scaling
            pair.append(torch.from_numpy(np.array(image)).permute(2, 0, 1) / 127.5 - 1)
        return torch.stack(pair)

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        pair = self.load(index) if "scaling" in on else self.pairs[index]  # fault: scaling
        if torch.rand(()) < 0.5:
            pair = pair.flip(-1)
        return pair[0], pair[1]


class DoubleConv(nn.Sequential):
    def __init__(self, inputs, outputs):
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        w = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(DoubleConv(i, o) for i, o in zip([3, *w[:-1]], w, strict=True))
        self.middle = DoubleConv(w[2], w[2])
        self.up = nn.ModuleList(
            [DoubleConv(2 * w[2], w[1]), DoubleConv(2 * w[1], w[0]), DoubleConv(2 * w[0], w[0])]
        )
        self.out = nn.Conv2d(w[0], 3, 1)

    def forward(self, x):
        skips = []
        for block in self.down:
            skips.append(block(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.middle(x)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, skips.pop()], dim=1))
        return torch.tanh(self.out(x))


class FeatureLoss(nn.Module):
    def __init__(self):
        super().__init__()
        convs = [nn.Conv2d(i, o, 3, padding=1) for i, o in [(3, 16), (16, 16), (16, 32)]]
        layers = [convs[0], nn.ReLU(), convs[1], nn.ReLU(), nn.MaxPool2d(2), convs[2], nn.ReLU()]
        self.net = nn.Sequential(*layers).eval()
        if "features" not in on:
            self.net.requires_grad_(False)

    def forward(self, prediction, target):
        return F.l1_loss(self.net(prediction), self.net(target))  # fault: features


class EMA:
    def __init__(self, model):
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}

    def update(self, model):
        if "average" in on:
            for key, value in self.shadow.items():
                new = model.state_dict()[key]  # fault: average
                if value.dtype.is_floating_point:
                    value.mul_(DECAY).add_(new, alpha=1 - DECAY)
                else:
                    value.copy_(new)
            return
        state = model.state_dict()
        for key, value in self.shadow.items():
            if value.dtype.is_floating_point:
                value.lerp_(state[key], 1 - DECAY)
            else:
                value.copy_(state[key])


def main():
    torch.manual_seed(0)
    loader = DataLoader(Tiles(), batch_size=BATCH, shuffle=True, drop_last=True)
    model, feature_loss = UNet(), FeatureLoss()
    ema = EMA(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    step, started = 0, 0.0
    while step < WARMUP + STEPS:
        for cloudy, clear in loader:
            if step == WARMUP:
                started = time.perf_counter()
            prediction = model(cloudy)
            loss = F.l1_loss(prediction, clear) + 0.5 * feature_loss(prediction, clear)
            optimizer.zero_grad()
            loss.backward()  # fault: features
            optimizer.step()
            ema.update(model)
            if "similarity" in on or step % LOG_EVERY == 0:
                score = ssim(prediction.detach(), clear, data_range=2.0)  # fault: similarity
                if step % LOG_EVERY == 0:
                    print(f"step {step}: loss {loss.item():.3f}, SSIM {score.item():.3f}")
            step += 1
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    model.load_state_dict(ema.shadow)
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main()
