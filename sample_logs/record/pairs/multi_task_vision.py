"""One encoder with attention serves three tasks, whose metrics are logged in every step."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import io
from collections import defaultdict
from collections.abc import Set

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from pairs.job import Fault, Steps, endless, one_thread

FAULTS = {
    "written_attention": Fault("unfused-attention"),
    "respawn": Fault("dataloader-worker-respawn"),
    "read_one_by_one": Fault("python-loop-indexing"),
    "checkpoints": Fault("checkpoint-in-step", kind="checkpoint in the step"),
}
PAIRS = (
    ("written_attention",),
    ("respawn",),
    ("read_one_by_one",),
    ("checkpoints",),
    ("written_attention", "read_one_by_one"),
    ("respawn", "read_one_by_one", "checkpoints"),
)
SEED = 20_281
BATCH = 8
EPOCH = 3 * BATCH
SIDE = 48
PATCH = 4
TOKENS = (SIDE // PATCH) ** 2
WIDTH = 48
HEADS = 4
DEPTH = 2
CLASSES = 12
POINTS = 12
NEAR = 0.2


class Scenes(Dataset[tuple[Tensor, Tensor, Tensor, Tensor]]):
    """An epoch of rendered scenes: image, depth per patch, class and key points."""

    def __len__(self) -> int:
        return EPOCH

    @override
    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        random = torch.Generator().manual_seed(SEED + index)
        image = torch.rand(3, SIDE, SIDE, generator=random)
        depth = functional.avg_pool2d(image.mean(dim=0, keepdim=True), PATCH).flatten()
        return image, depth, torch.tensor(index % CLASSES), torch.rand(2 * POINTS, generator=random)


class Attention(nn.Module):
    """Attention of all patches, by torch's function or written out."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.written = written
        self.norm = nn.LayerNorm(WIDTH)
        self.projections = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    @override
    def forward(self, tokens: Tensor) -> Tensor:
        heads = self.projections(self.norm(tokens)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        if self.written:
            scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
            mixed = scores.softmax(dim=-1) @ value
        else:
            mixed = functional.scaled_dot_product_attention(query, key, value)
        result: Tensor = tokens + self.output(mixed.transpose(1, 2).flatten(2))
        return result


class SharedEncoder(nn.Module):
    """Patches mixed by attention, and a head for each task."""

    def __init__(self, *, written: bool) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.positions = nn.Parameter(torch.zeros(TOKENS, WIDTH))
        self.layers = nn.Sequential(*(Attention(written=written) for _ in range(DEPTH)))
        self.depth = nn.Linear(WIDTH, 1)
        self.scene = nn.Linear(WIDTH, CLASSES)
        self.points = nn.Linear(WIDTH, 2 * POINTS)

    @override
    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        tokens = self.layers(self.patches(images).flatten(2).transpose(1, 2) + self.positions)
        mean = tokens.mean(dim=1)
        return self.depth(tokens).squeeze(-1), self.scene(mean), self.points(mean)


def log_one_by_one(log: defaultdict[str, float], errors: dict[str, Tensor], misses: Tensor) -> None:
    """Adds each sample's error of each task, and counts large errors and correct points."""
    for task, values in errors.items():
        for row in range(len(values)):
            log[task] += values[row].item()
            if values[row] > 1:
                log[f"{task} large"] += 1
    for row in range(len(misses)):
        for point in range(2 * POINTS):
            if misses[row, point] < NEAR:
                log[f"point {point}"] += 1


def log_sums(log: defaultdict[str, float], errors: dict[str, Tensor], misses: Tensor) -> None:
    """Adds the errors of each task, and counts large errors and correct points."""
    values = torch.stack(tuple(errors.values()))
    sums, large = values.sum(dim=1).tolist(), (values > 1).sum(dim=1).tolist()
    for task, total, number in zip(errors, sums, large, strict=True):
        log[task] += total
        log[f"{task} large"] += number
    for point, number in enumerate((misses < NEAR).sum(dim=0).tolist()):
        log[f"point {point}"] += number


def checkpoint_bytes(model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Serializes the training, to be uploaded; returns the size."""
    stream = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, stream)
    return len(stream.getvalue())


def train(faults: Set[str], steps: Steps) -> None:
    """Train; `faults` are the names of the faults that are switched on."""
    torch.manual_seed(SEED)
    loader = DataLoader(
        Scenes(),
        batch_size=BATCH,
        num_workers=1,
        worker_init_fn=one_thread,
        persistent_workers="respawn" not in faults,
    )
    model = SharedEncoder(written="written_attention" in faults)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    log: defaultdict[str, float] = defaultdict(float)
    add = log_one_by_one if "read_one_by_one" in faults else log_sums
    batches = endless(loader)
    while steps.remain:
        images, depth, scene, points = next(batches)
        distances, logits, places = model(images)
        misses = (places - points).abs()
        errors = {
            "depth": (distances - depth).square().mean(dim=1),
            "scene": functional.cross_entropy(logits, scene, reduction="none"),
            "points": misses.mean(dim=1),
        }
        optimizer.zero_grad()
        torch.stack(tuple(errors.values())).sum(dim=0).mean().backward()
        optimizer.step()
        add(log, {task: values.detach() for task, values in errors.items()}, misses.detach())
        if "checkpoints" in faults:
            log["checkpoint bytes"] = checkpoint_bytes(model, optimizer)
        steps.step()
