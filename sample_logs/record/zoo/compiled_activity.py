"""Activity recognition from wearable sensors: a compiled recurrence-free encoder."""

import sys
import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

FAULTS = {
    "static_shapes": "a compilation for every new length of the batch, as shapes are static",
    "list_collate": "batches padded in nested Python lists and converted number by number",
}
SENSORS, CLASSES = 12, 6
BATCH, WIDTH = 32, 128
LENGTHS = (80, 96)  # the second session takes longer
WARMUP, STEPS = 10, 150


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(SENSORS, WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        h = F.gelu(self.embed(x))
        h = h + F.gelu(self.mix(h)) * torch.sigmoid(h)
        h = self.norm(h) * mask.unsqueeze(2)
        pooled = h.sum(1) / mask.sum(1, keepdim=True)
        return self.head(pooled)


def recordings(count: int) -> list[tuple[Tensor, int]]:
    """Sensor readings of random activities; those of the second session take longer."""
    items = []
    for i in range(count):
        length = LENGTHS[len(LENGTHS) * i // count] - int(torch.randint(0, 24, ()))
        label = int(torch.randint(0, CLASSES, ()))
        wave = torch.sin(torch.arange(length)[:, None] * 0.1 * (label + 1) + torch.arange(SENSORS))
        items.append((wave + 0.3 * torch.randn(length, SENSORS), label))
    return items


def collate_tensors(items: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor, Tensor]:
    readings = [reading for reading, _ in items]
    lengths = torch.tensor([len(reading) for reading in readings])
    x = pad_sequence(readings, batch_first=True)
    x = F.pad(x, (0, 0, 0, -x.shape[1] % 16))  # to a multiple of 16
    mask = (torch.arange(x.shape[1]) < lengths[:, None]).float()
    return x, mask, torch.tensor([label for _, label in items])


def collate_lists(items: list[tuple[list[list[float]], int]]) -> tuple[Tensor, Tensor, Tensor]:
    longest = max(len(reading) for reading, _ in items)
    longest += -longest % 16
    x, mask, labels = [], [], []
    for reading, label in items:
        padding = longest - len(reading)
        x.append(reading + [[0.0] * SENSORS for _ in range(padding)])  # fault: list_collate
        mask.append([1.0] * len(reading) + [0.0] * padding)  # fault: list_collate
        labels.append(label)
    return torch.tensor(x), torch.tensor(mask), torch.tensor(labels)  # fault: list_collate


def main(faults: set[str]) -> None:
    torch.manual_seed(0)
    data = recordings((WARMUP + STEPS) * BATCH)
    collate = collate_tensors
    if "list_collate" in faults:
        data = [(reading.tolist(), label) for reading, label in data]  # as read from JSON
        collate = collate_lists

    model = Encoder()
    compiled = torch.compile(model, dynamic="static_shapes" not in faults)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    losses = []
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            start = time.perf_counter()
        x, mask, labels = collate(data[step * BATCH : (step + 1) * BATCH])
        loss = F.cross_entropy(compiled(x, mask), labels)  # fault: static_shapes
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    seconds = time.perf_counter() - start
    if not torch.stack(losses).isfinite().all():
        message = "training diverged"
        raise FloatingPointError(message)
    print(f"loss {losses[0].item():.5f} -> {losses[-1].item():.5f}")
    print(f"steps={STEPS} seconds={seconds:.3f} samples={STEPS * BATCH}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
