"""SimCLR on photographs of leaves: two augmented views, small encoder, NT-Xent loss."""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

FAULTS = {
    "cosine": "all pairs of embeddings expanded for the cosine similarity",
    "views": "crops and colour changes applied image by image in Python",
    "monitor": "a second pass of the encoder in every step for the check of collapse",
}
on = set(sys.argv[1:])

N, SIDE, PAD, DIM, TEMPERATURE = 48, 32, 4, 128, 0.2
WARMUP, STEPS = 5, 60


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1, bias=False),
            nn.BatchNorm2d(16),
            nn.ReLU(inplace=True),
            nn.Conv2d(16, 32, 3, 2, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(inplace=True),
            nn.Conv2d(32, 64, 3, 2, 1, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, DIM))

    def forward(self, x):
        h = self.features(x)  # fault: monitor
        return self.projector(h)  # fault: monitor


def draw(n):
    dy, dx = torch.randint(0, 2 * PAD + 1, (2, n))
    flip = torch.rand(n) < 0.5
    brightness = torch.empty(n).uniform_(0.6, 1.4)
    gray = torch.rand(n) < 0.2
    return dy, dx, flip, brightness, gray


def augment(images):
    n = len(images)
    dy, dx, flip, brightness, gray = draw(n)
    padded = F.pad(images, (PAD,) * 4)
    if "views" in on:
        out = []
        for i in range(n):
            img = padded[i, :, dy[i] : dy[i] + SIDE, dx[i] : dx[i] + SIDE]  # fault: views
            if flip[i]:
                img = img.flip(-1)  # fault: views
            img = (img * brightness[i]).clamp(0, 1)  # fault: views
            if gray[i]:
                img = img.mean(0, keepdim=True).expand(3, -1, -1)  # fault: views
            out.append((img - 0.5) / 0.25)  # fault: views
        return torch.stack(out)
    side = torch.arange(SIDE)
    rows = dy[:, None] + side
    cols = dx[:, None] + torch.where(flip[:, None], SIDE - 1 - side, side)
    flat = (rows[:, :, None] * (SIDE + 2 * PAD) + cols[:, None, :]).view(n, 1, -1)
    x = padded.flatten(2).gather(2, flat.expand(-1, 3, -1)).view(n, 3, SIDE, SIDE)
    x = x.mul_(brightness[:, None, None, None]).clamp_(0, 1)
    x[gray] = x[gray].mean(1, keepdim=True)
    return x.sub_(0.5).div_(0.25)


def nt_xent(z):
    if "cosine" in on:
        sim = F.cosine_similarity(z.unsqueeze(1), z.unsqueeze(0), dim=2)  # fault: cosine
    else:
        z = F.normalize(z, dim=1)
        sim = z @ z.T
    logits = (sim / TEMPERATURE).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    half = len(z) // 2
    positives = torch.arange(len(z)).roll(half)
    return F.cross_entropy(logits, positives)


@torch.no_grad()
def collapse_level(model, views, z):
    if "monitor" in on:
        model.eval()
        z = model(views)  # fault: monitor
        model.train()
    return F.normalize(z, dim=1).std(0).mean() * DIM**0.5


def main():
    torch.manual_seed(0)
    leaves = torch.rand(768, 3, SIDE, SIDE)
    model = Encoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=WARMUP + STEPS)
    running, level = 0.0, 0.0
    step, started = 0, 0.0
    while step < WARMUP + STEPS:
        for batch in leaves[torch.randperm(len(leaves))].split(N):
            if step == WARMUP:
                started = time.perf_counter()
            views = torch.cat([augment(batch), augment(batch)])
            z = model(views)
            loss = nt_xent(z)
            optimizer.zero_grad()
            loss.backward()  # fault: cosine
            optimizer.step()
            schedule.step()
            running += loss.item()
            level = 0.9 * level + 0.1 * collapse_level(model, views, z)  # fault: monitor
            step += 1
            if step % 20 == 0:
                print(f"step {step} loss {running / 20:.4f} spread {level:.3f}")
                running = 0.0
            if step == WARMUP + STEPS:
                break
    seconds = time.perf_counter() - started
    print(f"steps={STEPS} seconds={seconds:.4f} samples={STEPS * N}")


if __name__ == "__main__":
    main()
