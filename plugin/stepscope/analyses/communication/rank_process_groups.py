"""The process groups of one recording, as the others of its run are told of them."""

from dataclasses import dataclass
from sys import intern
from typing import Any

import pandas as pd

from stepscope.analyses.communication.process_groups import process_groups
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

MOST_UNUSED = 64
"""Of groups in which nothing was sent no more are told: a header may list every one of the job."""


@dataclass(frozen=True, kw_only=True)
class RankGroup:
    """One process group, by what this rank did in it; see `process_groups`."""

    name: str
    ranks: str
    """As JSON; empty where unknown."""
    description: str
    backend: str
    size: int
    """0: unknown."""
    role: str
    """Empty where nothing tells."""
    role_confidence: str
    role_reason: str
    kinds: tuple[str, ...]
    call_count: int
    total_ns: int
    exposed_ns: int
    total_bytes: float
    """NaN: not recorded."""


def rank_groups(trace: Trace) -> tuple[RankGroup, ...]:
    """Return a recording's process groups, most time first; none where none was recorded."""
    try:
        table = process_groups(trace)
    except MissingDataError:
        return ()
    used = table[table["call_count"] > 0]
    unused = table[table["call_count"] == 0].head(MOST_UNUSED)
    return tuple(_group(row) for row in pd.concat([used, unused]).to_dict("records"))


def _group(row: dict[Any, Any]) -> RankGroup:
    size = row["group_size"]
    return RankGroup(
        name=str(row["group"]),
        ranks=intern(row["ranks"] or ""),  # the same text on every rank of it
        description=row["description"] or "",
        backend=row["backend"] or "",
        size=int(size) if size == size else 0,  # noqa: PLR0124 (NaN)
        role=row["role"] or "",
        role_confidence=row["role_confidence"] or "",
        role_reason=row["role_reason"],
        kinds=tuple(filter(None, row["kinds"].split(", "))),
        call_count=int(row["call_count"]),
        total_ns=int(row["total_ns"]),
        exposed_ns=int(row["exposed_ns"]),
        total_bytes=float(row["total_bytes"]),
    )
