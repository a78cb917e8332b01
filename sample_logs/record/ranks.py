"""Two ranks of DistributedDataParallel, one of them slow, then balanced.

The second rank gets 28 of the 32 sequences of a batch, as when shards of unequal size are read in
the same number of steps; the first waits for it in every all-reduce. Balanced, each gets 16. In
`becomes_slow` they are balanced at first; in the middle of the trace the second rank gets more.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from recording import Plan, Target, recorded, target
from two_ranks import insist_on_two, on_two_ranks

BALANCED = (16, 16)
ONE_SLOW = (4, 28)
LENGTH = 64
WIDTH = 96
PLAN = Plan(active=6)
LONGER = Plan(active=12)
SLOW_FROM = LONGER.wait + LONGER.warmup + LONGER.active // 2


class SequenceClassifier(nn.Module):
    """Mixes every token of a sequence with the others, then averages."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True) for _ in range(2))
        )
        self.classifier = nn.Linear(WIDTH, 10)

    @override
    def forward(self, sequences: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.layers(sequences).mean(dim=1))
        return scores


def train(
    rank: int, device: torch.device, *, run: Path, plan: Plan, batches: list[tuple[int, int]]
) -> None:
    """Runs one rank, which gets its part of each step's batch."""
    model = DistributedDataParallel(SequenceClassifier().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sequences = torch.rand(max(map(max, batches)), LENGTH, WIDTH, device=device)
    with recorded(run, device, plan, worker=f"rank{rank}") as profiler:
        for batch in batches:
            optimizer.zero_grad()
            model(sequences[: batch[rank]]).square().mean().backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault, its variant and the fix."""
    insist_on_two(where.device)
    for name, plan, first, later in (
        ("one_slow_rank", PLAN, ONE_SLOW, ONE_SLOW),
        ("becomes_slow", LONGER, BALANCED, ONE_SLOW),
        ("balanced", PLAN, BALANCED, BALANCED),
    ):
        batches = [first if step < SLOW_FROM else later for step in range(plan.steps)]
        loop = partial(train, run=where.run(name), plan=plan, batches=batches)
        on_two_ranks(loop, where.device)


if __name__ == "__main__":
    main(target("ranks", __doc__))
