"""Two ranks train a transformer on sequences, with gradients summed over small batches."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from pairs.job import Fault, Steps

FAULTS = {
    "searched": Fault("ddp-find-unused-parameters"),
    "small_buckets": Fault("small-collectives"),
    "slow_rank": Fault("straggler-rank"),
    "reduced_each_time": Fault("ddp-missing-no-sync"),
}
PAIRS = (
    ("searched",),
    ("small_buckets",),
    ("slow_rank",),
    ("reduced_each_time",),
    ("searched", "small_buckets"),
    ("slow_rank", "reduced_each_time"),
)
RANKS = 2
SEED = 20_309
ACCUMULATED = 3
BATCH = 2
SHORTEST, LONGEST = 16, 112
TOKENS = 500
WIDTH = 64
HEADS = 4
DEPTH = 3
SMALL_BUCKET_MB = 0.02
DEFAULT_BUCKET_MB = 25


class LanguageModel(nn.Module):
    """Torch's encoder with a causal mask, and scores of the next tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, WIDTH)
        self.positions = nn.Embedding(LONGEST, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, DEPTH, nn.LayerNorm(WIDTH), enable_nested_tensor=False
        )
        self.scores = nn.Linear(WIDTH, TOKENS)

    @override
    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        tokens = self.tokens(ids) + self.positions(torch.arange(length))
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.layers(tokens, mask=mask, is_causal=True)
        scores: Tensor = self.scores(hidden)
        return scores


def batches_of(rank: int, *, by_length: bool) -> list[Tensor]:
    """Returns a rank's batches of token ids.

    Batches are split by their order, or sorted by length and the second rank gets the long ones.
    """
    shared = torch.Generator().manual_seed(SEED)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (64,), generator=shared)
    lengths = lengths.sort().values
    half = len(lengths) // 2
    shard = lengths[rank * half :][:half] if by_length else lengths[rank::RANKS]
    order = torch.randperm(half, generator=shared)
    return [torch.randint(TOKENS, (BATCH, length + 1)) for length in shard[order].tolist()]


def train(faults: Set[str], steps: Steps) -> None:
    """Train one rank; `faults` are the names of the faults that are switched on."""
    rank = distributed.get_rank()
    torch.manual_seed(SEED)
    model = DistributedDataParallel(
        LanguageModel(),
        find_unused_parameters="searched" in faults,
        bucket_cap_mb=SMALL_BUCKET_MB if "small_buckets" in faults else DEFAULT_BUCKET_MB,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    torch.manual_seed(SEED + rank)
    batches = batches_of(rank, by_length="slow_rank" in faults)
    number = 0
    while steps.remain:
        optimizer.zero_grad()
        for part in range(ACCUMULATED):
            is_last = part == ACCUMULATED - 1 or "reduced_each_time" in faults
            sync: AbstractContextManager[object] = nullcontext() if is_last else model.no_sync()
            ids = batches[number % len(batches)]
            with sync:
                scores = model(ids[:, :-1])
                loss = functional.cross_entropy(scores.flatten(0, 1), ids[:, 1:].flatten())
                (loss / ACCUMULATED).backward()
            number += 1
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps.step()
