"""Process groups of a trace: ranks, cost, and role (data, tensor, pipeline, expert parallelism).

Traces do not record roles. In order of confidence: the group's description (torch's `mesh_tp`,
Megatron's `TENSOR_MODEL_PARALLEL_GROUP`), its collectives, and the stride of its ranks: by default
Megatron and torch's device meshes number ranks with tensor parallelism fastest and pipeline stages
slowest (Narayanan et al. 2021, "Efficient large-scale language model training", §3).
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import collective_events, is_in_forward
from stepscope.base.errors import MissingDataError
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.process_groups import ProcessGroup, header_groups
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed, whole_number

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


SCHEMA: Schema = (
    Column("group", "object", "text", "The name that torch gave it (`pg_name`): mostly a number."),
    Column("description", "object", "text", "Its description (`pg_desc`); None: not recorded."),
    Column("backend", "object", "text", "Its libraries (`backend_config`), or those seen in use."),
    Column("group_size", "float64", "count", "Number of its ranks; NaN: not recorded."),
    Column("ranks", "object", "text", "Its ranks (JSON); None: unknown."),
    Column("source", "object", "text", "`header` (distributedInfo.pg_config), `events`, or both."),
    Column("role", "object", "text", "Its likely role: `DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`,"
           " several joined by +, or `single`; None: unknown."),
    Column("role_confidence", "object", "text", "`high`, `medium` or `low`; None without a role."),
    Column("role_reason", "object", "text", "The evidence for the role."),
    Column("kinds", "object", "text", "Kinds of collectives seen in it, comma separated."),
    Column("call_count", "int64", "count", "Collectives in it."),
    Column("total_ns", "int64", "ns", "Sum of their durations, where known."),
    Column("exposed_ns", "int64", "ns", "Sum of their exposed time."),
    Column("total_bytes", "float64", "bytes", "Sum of their messages, where known."),
)  # fmt: skip
EVENT_COLUMNS = (
    *("kind", "backend", "duration_ns", "exposed_ns", "message_bytes", "in_forward"),
    *("group_description", "group_ranks", "group_size"),
)
UNUSED: dict[str, Any] = {
    "kinds": [],
    "backend": [],
    "call_count": 0,
    "total_ns": 0,
    "exposed_ns": 0,
    "total_bytes": np.nan,
}
REMEDY = "torch.distributed.init_process_group(...)  # before profiling, with torch 2.3 or later"


@public_table(
    "process-groups",
    SCHEMA,
    "One row per process group: its ranks, its likely role with the reason, and the cost of its"
    " collectives on this rank.",
)
@computed
def process_groups(trace: Trace) -> pd.DataFrame:
    """Return one row per process group, most time first.

    Raises:
        MissingDataError: neither header nor events name one.
    """
    listed = header_groups(trace.metadata)
    if not listed and not trace.collectives["group"].notna().any():
        reason = "no process group was recorded"
        raise MissingDataError(reason, REMEDY)
    events = collective_events(trace)
    events = events.assign(in_forward=is_in_forward(trace))
    used = _events_by_group(events[events["group"].notna()])
    about = _about(trace)
    names = dict.fromkeys((*listed, *used))
    rows = [_row(name, listed.get(name), used.get(name), about) for name in names]
    return rows_to_frame(SCHEMA, rows, "-total_ns")


Events = Mapping[str, NDArray[Any]]
"""Columns of a group's collectives: a frame for each of many groups costs too much."""


def _events_by_group(events: pd.DataFrame) -> dict[str, Events]:
    codes, names = pd.factorize(events["group"].astype(str).astype(object))
    order = np.argsort(codes, kind="stable")
    columns = {name: events[name].to_numpy()[order] for name in EVENT_COLUMNS}
    bounds = np.searchsorted(codes[order], np.arange(len(names) + 1)).tolist()
    return {
        name: {column: values[start:end] for column, values in columns.items()}
        for name, start, end in zip(names, bounds[:-1], bounds[1:], strict=True)
    }


def _about(trace: Trace) -> tuple[int, bool]:
    info = trace.metadata.get("distributedInfo")
    world_size = whole_number(info.get("world_size")) if isinstance(info, Mapping) else None
    wrapped = name_mask(trace.host_calls["name"], "DistributedDataParallel.forward".__eq__)
    return max(0, world_size or 0), bool(wrapped.any())


def _row(
    name: str, listed: ProcessGroup | None, events: Events | None, about: tuple[int, bool]
) -> dict[str, Any]:
    group = listed or ProcessGroup(name=name)
    used = UNUSED if events is None else _used(events)
    described, ranks, size = group.description, group.ranks, group.size
    if events is not None:
        described = described or _first(events["group_description"]) or ""
        ranks = ranks or tuple(json.loads(_first(events["group_ranks"]) or "[]"))
        size = size or len(ranks) or int(_first(events["group_size"]) or 0)
    world_size, has_data_parallel = about
    judged = role(
        Signs(
            description=described,
            ranks=ranks,
            size=size,
            kinds=frozenset(used["kinds"]),
            world_size=world_size,
            has_data_parallel=has_data_parallel,
            forward_share=_forward_share(events) if events is not None else None,
        )
    )
    return used | {
        "group": group.name,
        "description": described or None,
        "backend": group.backend or ", ".join(used["backend"]) or None,
        "group_size": float(size) if size else np.nan,
        "ranks": json.dumps(list(ranks), separators=(",", ":")) if ranks else None,
        "source": " and ".join(
            ["header"] * (listed is not None) + ["events"] * (events is not None)
        ),
        "role": judged.name,
        "role_confidence": judged.confidence,
        "role_reason": judged.reason,
        "kinds": ", ".join(used["kinds"]),
    }


def _forward_share(events: Events) -> float | None:
    is_large = (events["kind"] == "all_reduce") & (events["message_bytes"] >= LARGE_BYTES)
    flags = events["in_forward"][is_large]
    flags = flags[~np.isnan(flags)]
    return float(flags.mean()) if len(flags) else None


def _used(events: Events) -> dict[str, Any]:
    message_bytes = events["message_bytes"]
    has_bytes = not np.isnan(message_bytes).all()
    return {
        "kinds": sorted(set(events["kind"])),
        "backend": sorted(name for name in set(events["backend"]) if isinstance(name, str)),
        "call_count": len(message_bytes),
        "total_ns": int(np.nansum(events["duration_ns"])),
        "exposed_ns": int(np.nansum(events["exposed_ns"])),
        "total_bytes": float(np.nansum(message_bytes)) if has_bytes else np.nan,
    }


def _first(values: NDArray[Any]) -> Any:  # noqa: ANN401
    """Return the first value that is not missing; None: there is none."""
    return next(iter(values[pd.notna(values)].tolist()), None)
