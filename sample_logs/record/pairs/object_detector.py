"""A detector with anchors: boxes are assigned to anchors, and overlapping detections dropped."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set

import torch
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "anchors": Fault("python-loop-indexing", kind="loop-invariant work in the step"),
    "assigned_in_loop": Fault("python-loop-indexing"),
    "detections": Fault("python-loop-indexing", kind="post-processing in the step"),
    "tiny_batch": Fault("tiny-batch-size"),
}
PAIRS = (
    ("anchors",),
    ("assigned_in_loop",),
    ("detections",),
    ("tiny_batch",),
    ("anchors", "assigned_in_loop"),
    ("anchors", "assigned_in_loop", "detections"),
)
SEED = 20_278
BATCH = 16
TINY_BATCH = 2
SIDE = 64
STRIDE = 4
CELLS = SIDE // STRIDE
SIZES = (6.0, 12.0, 24.0)
RATIOS = (0.5, 1.0, 2.0)
ANCHORS = len(SIZES) * len(RATIOS)
BOXES = 6
POINTS = 7
DETECTIONS = 40
CLASSES = 5
WIDTH = 32


class Detector(nn.Module):
    """Features of an image, and for each anchor its change and classes."""

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 16, WIDTH)
        self.features = nn.Sequential(
            nn.Conv2d(widths[0], widths[1], 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(widths[1], widths[2], 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Conv2d(WIDTH, ANCHORS * (4 + CLASSES + 1), 3, padding=1)
        self.box_classes = nn.Linear(WIDTH, CLASSES)

    @override
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(images)
        outputs = self.head(features).unflatten(1, (ANCHORS, -1))
        return features, outputs.permute(0, 3, 4, 1, 2).flatten(1, 3)


def anchor_boxes() -> Tensor:
    """Returns corners of all anchors, as (anchors, 4)."""
    boxes = []
    for row in range(CELLS):
        centers = (torch.arange(CELLS) + 0.5) * STRIDE
        for size in SIZES:
            for ratio in RATIOS:
                half = torch.tensor((size * ratio**0.5, size / ratio**0.5)) / 2
                middle = torch.stack((centers, torch.full_like(centers, (row + 0.5) * STRIDE)), 1)
                boxes.append(torch.cat((middle - half, middle + half), dim=1))
    return torch.stack(boxes).view(CELLS, ANCHORS, CELLS, 4).transpose(1, 2).reshape(-1, 4)


def overlaps(boxes: Tensor, anchors: Tensor) -> Tensor:
    """Returns the intersection over union of boxes and anchors, as (..., boxes, anchors)."""
    low = torch.maximum(boxes[..., None, :2], anchors[:, :2])
    high = torch.minimum(boxes[..., None, 2:], anchors[:, 2:])
    both = (high - low).clamp(min=0).prod(dim=-1)
    areas = (boxes[..., 2:] - boxes[..., :2]).prod(dim=-1)[..., None]
    return both / (areas + (anchors[:, 2:] - anchors[:, :2]).prod(dim=-1) - both)


def assigned(boxes: Tensor, anchors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the class of each anchor (the last is the background), and the best anchors."""
    best = overlaps(boxes, anchors).argmax(dim=-1)
    targets = torch.full((len(boxes), len(anchors)), CLASSES)
    return targets.scatter_(1, best, labels), best


def assigned_in_loop(boxes: Tensor, anchors: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the same, box by box."""
    targets = torch.full((len(boxes), len(anchors)), CLASSES)
    best = torch.zeros(labels.shape, dtype=torch.int64)
    for image in range(len(boxes)):
        for box in range(BOXES):
            overlap = overlaps(boxes[image, box : box + 1], anchors)[0]
            best[image, box] = overlap.argmax()
            targets[image, best[image, box]] = labels[image, box]
    return targets, best


def pooled(features: Tensor, boxes: Tensor) -> Tensor:
    """Returns the mean feature of a grid of points in each box, as (images, boxes, channels)."""
    grid = torch.cartesian_prod(torch.linspace(0, 1, POINTS), torch.linspace(0, 1, POINTS))
    low, high = boxes[..., None, :2] / SIDE, boxes[..., None, 2:] / SIDE
    points = low + (high - low) * grid
    pixels = functional.grid_sample(
        features, points * 2 - 1, padding_mode="border", align_corners=False
    )
    return pixels.mean(dim=3).transpose(1, 2)


def detections(outputs: Tensor, anchors: Tensor) -> list[int]:
    """Returns the anchors of an image whose box overlaps no better one by more than a half."""
    scores, candidates = outputs[:, 4:-1].amax(dim=1).topk(DETECTIONS)
    boxes = anchors[candidates] + outputs[candidates, :4] * SIDE
    remaining = list(range(DETECTIONS))
    selected = []
    while remaining:
        best = max(remaining, key=lambda row: scores[row].item())
        selected.append(int(candidates[best]))
        remaining.remove(best)
        shared = overlaps(boxes[best : best + 1], boxes)[0]
        remaining = [row for row in remaining if shared[row] < 0.5]
    return selected


def samples(faults: Set[str]) -> int:
    """Returns the images of a step."""
    return TINY_BATCH if "tiny_batch" in faults else BATCH


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    batch = samples(faults)
    model, anchors = Detector(), anchor_boxes()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    assign = assigned_in_loop if "assigned_in_loop" in faults else assigned
    while steps.remain:
        images, labels = torch.rand(batch, 3, SIDE, SIDE), torch.randint(CLASSES, (batch, BOXES))
        corners = torch.rand(batch, BOXES, 2) * SIDE / 2
        boxes = torch.cat((corners, corners + 4 + torch.rand(batch, BOXES, 2) * SIDE / 2), dim=-1)
        if "anchors" in faults:
            anchors = anchor_boxes()
        features, outputs = model(images)
        targets, best = assign(boxes, anchors, labels)
        loss = functional.cross_entropy(outputs[..., 4:].flatten(0, 1), targets.flatten())
        changes = outputs[..., :4].gather(1, best[..., None].expand(-1, -1, 4))
        loss = loss + functional.smooth_l1_loss(changes, boxes / SIDE)
        box_logits = model.box_classes(pooled(features, boxes))
        loss = loss + functional.cross_entropy(box_logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if "detections" in faults:
            with torch.no_grad():
                detections(outputs[0], anchors)
        steps.step()
