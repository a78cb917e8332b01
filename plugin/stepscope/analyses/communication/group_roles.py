"""Role of a process group: data, tensor, pipeline, expert or context parallelism.

Traces do not record roles. In order of confidence: the group's description (torch's `mesh_tp`,
Megatron's `TENSOR_MODEL_PARALLEL_GROUP`), its collectives, and the stride of its ranks: by default
Megatron and torch's device meshes number ranks with tensor parallelism fastest and pipeline stages
slowest (Narayanan et al. 2021, "Efficient large-scale language model training", §3).
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from itertools import pairwise

WORDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)"), role)
    for pattern, role in (
        ("fsdp|dp_shard|hsdp_shard|shard", "FSDP"),
        ("ddp|dp|edp|data_parallel|dp_replicate|replicate|data", "DP"),
        ("tp|etp|tensor", "TP"),
        ("pp|pipeline|pipe", "PP"),
        ("ep|expert|moe", "EP"),
        ("cp|context|sp|sequence|ulysses|ring", "CP"),
    )
)
NODE = 8
"""Devices of a usual machine, which tensor parallelism seldom exceeds."""
PEER_TO_PEER = frozenset({"send", "recv", "send_recv"})
SHARDING = frozenset({"all_gather", "reduce_scatter"})
EXCHANGE = frozenset({"all_to_all", "all_to_allv"})
ASIDE = frozenset({"barrier", "broadcast", "coalesced", "other"})
"""Kinds that groups of any role have."""
OF_ACTIVATIONS = 0.2
"""Least fraction of large reductions in the forward pass. Tensor parallelism has half of them
there, a third with recomputed activations; buffers and losses are reduced there once per step."""
LARGE_BYTES = 65_536
"""Losses and metrics are smaller."""


@dataclass(frozen=True, kw_only=True)
class Role:
    """Role of a group, with confidence and reason; `name` is None where it is unknown."""

    name: str | None
    confidence: str | None
    """`high`, `medium` or `low`."""
    reason: str


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Evidence on a group's role."""

    description: str
    ranks: tuple[int, ...]
    size: int
    """0: unknown."""
    kinds: Set[str]
    """Kinds of collectives seen in it."""
    world_size: int
    """Ranks of the whole job; 0: unknown."""
    has_data_parallel: bool
    """Whether the trace holds `DistributedDataParallel.forward`."""
    forward_share: float | None = None
    """Fraction of its large reductions requested in the forward pass; None: unknown."""


def role(signs: Signs) -> Role:
    """Return a group's role."""
    if signs.size == 1:
        return Role(
            name="single", confidence="high", reason="The group has one rank and sends nothing."
        )
    for judge in (_by_words, _by_wrapper, _by_exchange, _by_pass, _by_kinds, _by_ranks):
        if (result := judge(signs)) is not None:
            return result
    return Role(
        name=None, confidence=None, reason="Description, collectives and ranks give no role."
    )


def _by_words(signs: Signs) -> Role | None:
    text = re.sub(r"[^a-z0-9]+", "_", signs.description.lower())
    names = [name for pattern, name in WORDS if pattern.search(text)]
    if "FSDP" in names and "DP" in names:
        names.remove("DP")  # `dp_shard` is FSDP alone
    if not names:
        return None
    reason = f"Its description is {signs.description!r}."
    return Role(name="+".join(names), confidence="high", reason=reason)


def _by_wrapper(signs: Signs) -> Role | None:
    if not signs.has_data_parallel or not _is_world(signs) or "all_reduce" not in signs.kinds:
        return None
    reason = "DistributedDataParallel runs, and all ranks reduce in it."
    return Role(name="DP", confidence="high", reason=reason)


def _by_exchange(signs: Signs) -> Role | None:
    kinds = signs.kinds - ASIDE
    if kinds and kinds <= PEER_TO_PEER:
        return Role(name="PP", confidence="medium", reason="Its ranks only send to each other.")
    if kinds & EXCHANGE:
        return Role(name="EP", confidence="medium", reason="Its ranks exchange data all to all.")
    return None


def _by_pass(signs: Signs) -> Role | None:
    """Judge by reductions: of activations in the forward pass, of gradients in the backward."""
    if signs.forward_share is None or "all_reduce" not in signs.kinds:
        return None
    if signs.forward_share >= OF_ACTIVATIONS and not _is_world(signs):
        share = f"{signs.forward_share:.0%} of its large reductions"
        reason = f"{share} run in the forward pass, so they are of activations."
        return Role(name="TP", confidence="medium", reason=reason)
    if not signs.forward_share:
        reason = "All its large reductions follow the forward pass, so they are of gradients."
        return Role(name="DP", confidence="medium", reason=reason)
    return None


def _by_kinds(signs: Signs) -> Role | None:
    return _by_shards(signs) if signs.kinds - ASIDE >= SHARDING else None


def _by_shards(signs: Signs) -> Role:
    reason = "Its ranks gather shards and scatter reduced ones."
    if _stride(signs.ranks) == 1 and signs.size <= NODE and not _is_world(signs):
        return Role(name="TP", confidence="low", reason=f"{reason} Its ranks are neighbours.")
    return Role(name="FSDP", confidence="medium", reason=reason)


def _by_ranks(signs: Signs) -> Role | None:
    if _is_world(signs):
        return Role(name="DP", confidence="low", reason="It holds all ranks.")
    stride = _stride(signs.ranks)
    if stride == 1 and 1 < signs.size <= NODE:
        return Role(name="TP", confidence="low", reason="Its ranks are neighbours.")
    if stride > 1:
        return Role(name="DP", confidence="low", reason=f"Its ranks are {stride} apart.")
    return None


def _is_world(signs: Signs) -> bool:
    return signs.world_size > 1 and signs.size == signs.world_size


def _stride(ranks: tuple[int, ...]) -> int:
    """Return the distance between consecutive ranks, 0 where it differs or is unknown."""
    steps = {after - before for before, after in pairwise(ranks)}
    return steps.pop() if len(steps) == 1 else 0
