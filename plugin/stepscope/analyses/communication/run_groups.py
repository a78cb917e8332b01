"""Process groups of a run, merged over its ranks."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from stepscope.analyses.communication.rank_summary import RankGroup
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run

SURENESS = ("", "low", "medium", "high")
TELLING = SURENESS.index("medium")
Kin = tuple[int, int, tuple[str, ...]]
"""A group's size, the stride of its ranks, and its kinds of collectives."""


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """One process group; its figures are means over the traces that took part in it."""

    name: str
    description: str
    role: str
    """Empty: unknown."""
    role_confidence: str
    role_reason: str
    backend: str
    size: int
    """0: unknown."""
    ranks: tuple[int, ...]
    """Empty: unknown."""
    recorded_count: int
    """Traces that contain it."""
    kinds: tuple[str, ...]
    call_count: float
    total_ns: float
    exposed_ns: float
    wait_ns: float
    """NaN where none of its collectives has a match."""
    total_bytes: float
    """NaN: not recorded."""


@computed_per_run
def run_groups(run: RankRun) -> tuple[RunGroup, ...]:
    """Return a run's process groups, most time first."""
    together: dict[tuple[str, str], list[RankGroup]] = {}
    for part in run.parts:
        for group in part.groups:
            together.setdefault((group.name, group.ranks), []).append(group)
    waits = _waits(run)
    groups = [
        _merged(members, waits.get((name, ranks), np.nan))
        for (name, ranks), members in together.items()
    ]
    with_roles = _as_their_kin(groups)
    return tuple(sorted(with_roles, key=lambda group: -group.total_ns * group.recorded_count))


def _as_their_kin(groups: Sequence[RunGroup]) -> list[RunGroup]:
    """Give groups without a certain role that of groups with equal stride, size and collectives.

    A mesh has many such groups along each axis. Where their roles differ, none is copied.
    """
    kin: dict[Kin, list[RunGroup]] = {}
    for group in groups:
        if (sign := _kin(group)) is not None and SURENESS.index(group.role_confidence) >= TELLING:
            kin.setdefault(sign, []).append(group)
    signs = [_kin(group) for group in groups]
    return [
        _with_role(group, kin[sign]) if sign in kin else group
        for group, sign in zip(groups, signs, strict=True)
    ]


def _with_role(group: RunGroup, kin: Sequence[RunGroup]) -> RunGroup:
    is_sure = SURENESS.index(group.role_confidence) >= TELLING
    if is_sure or len({relative.role for relative in kin}) != 1:
        return group
    surest = max(kin, key=lambda relative: SURENESS.index(relative.role_confidence))
    return replace(
        group,
        role=surest.role,
        role_confidence=SURENESS[SURENESS.index(surest.role_confidence) - 1],
        role_reason=f"It has the layout and the collectives of group {surest.name!r}:"
        f" {surest.role_reason}",
    )


def _kin(group: RunGroup) -> Kin | None:
    """Return the common properties of groups along one axis of a mesh; None: no stride."""
    apart = {after - before for before, after in pairwise(group.ranks)}
    return (group.size, apart.pop(), group.kinds) if len(apart) == 1 and group.kinds else None


def _merged(members: Sequence[RankGroup], wait_ns: float) -> RunGroup:
    surest = max(members, key=lambda group: SURENESS.index(group.role_confidence))
    active = [group for group in members if group.call_count] or members
    sizes = [group.total_bytes for group in active if group.total_bytes == group.total_bytes]
    return RunGroup(
        name=members[0].name,
        description=members[0].description,
        role=surest.role,
        role_confidence=surest.role_confidence,
        role_reason=surest.role_reason,
        backend=members[0].backend,
        size=max(group.size for group in members),
        ranks=tuple(json.loads(members[0].ranks or "[]")),
        recorded_count=len(members),
        kinds=tuple(sorted({kind for group in members for kind in group.kinds})),
        call_count=float(np.mean([group.call_count for group in active])),
        total_ns=float(np.mean([group.total_ns for group in active])),
        exposed_ns=float(np.mean([group.exposed_ns for group in active])),
        wait_ns=wait_ns / len(active),
        total_bytes=float(np.mean(sizes)) if sizes else float("nan"),
    )


def _waits(run: RankRun) -> dict[tuple[str, str], float]:
    matches = run.matches
    is_matched = matches.is_matched
    total = np.bincount(
        matches.key[is_matched], matches.wait_ns[is_matched], minlength=len(matches.keys)
    )
    count = np.bincount(matches.key[is_matched], minlength=len(matches.keys))
    waits: dict[tuple[str, str], float] = {}
    for key, wait_ns, members in zip(matches.keys, total, count, strict=True):
        if members:
            name = (key.group, key.ranks)
            waits[name] = waits.get(name, 0.0) + float(wait_ns)
    return waits
