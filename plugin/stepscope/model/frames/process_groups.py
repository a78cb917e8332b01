"""Process groups and their ranks, from the header and from the events' arguments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.model.frames.collective_names import NUMBERS

MOST_RANKS = 1_000_000
"""Maximum plausible number of ranks."""


@dataclass(frozen=True, kw_only=True)
class ProcessGroup:
    """A process group as the header lists it."""

    name: str
    description: str = ""
    backend: str = ""
    size: int = 0
    """0 if unknown."""
    ranks: tuple[int, ...] = ()
    """Empty if unknown."""


def header_groups(metadata: Mapping[str, Any]) -> dict[str, ProcessGroup]:
    """Return the groups of `distributedInfo.pg_config` (torch 2.3 and later) by name."""
    info = metadata.get("distributedInfo")
    listed = info.get("pg_config") if isinstance(info, Mapping) else None
    if isinstance(listed, str):  # some exporters write the list as text
        try:
            listed = json.loads(listed)
        except (ValueError, RecursionError):
            listed = None
    groups = (_group(item) for item in (listed if isinstance(listed, list) else ()))
    return {group.name: group for group in groups if group is not None}


def _group(item: object) -> ProcessGroup | None:
    if not isinstance(item, Mapping) or "pg_name" not in item:
        return None
    ranks = item.get("ranks")
    if isinstance(ranks, str):
        ranks = [int(number) for number in NUMBERS.findall(ranks)]
    members = ranks if isinstance(ranks, list) else ()
    valid = tuple(int(rank) for rank in members if _is_rank(rank))
    size = item.get("pg_size")
    return ProcessGroup(
        name=str(item["pg_name"]),
        description=str(item.get("pg_desc") or ""),
        backend=str(item.get("backend_config") or ""),
        size=size if _is_rank(size) and size else len(valid),
        ranks=valid,
    )


def _is_rank(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < MOST_RANKS


def members(text: str | None, size: int, start: int, stride: int) -> tuple[int, ...]:
    """Return a group's ranks from an event's arguments, empty if unknown.

    torch shortens a list of more than 30 ranks to `[0, 1, ..., 63]`, and writes the first rank and,
    if constant, the stride (`Global rank start`, `… stride`).
    """
    listed = tuple(int(number) for number in NUMBERS.findall(text or ""))
    if listed and "..." not in (text or ""):
        return listed
    if 0 < size < MOST_RANKS and start >= 0 and stride > 0:
        return tuple(range(start, start + size * stride, stride))
    return ()


def as_text(ranks: tuple[int, ...]) -> str | None:
    """Return ranks as JSON, None if empty."""
    return json.dumps(list(ranks), separators=(",", ":")) if ranks else None
