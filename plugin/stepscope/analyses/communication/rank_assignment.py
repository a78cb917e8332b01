"""Rank of each trace of a run: by its header, else its file's name, else its content.

Names give ranks only where all files of a run follow one pattern: `rank-34.Jul_15.pt.trace.json`,
`worker0.….pt.trace.json`, `trace_r3.json`, and the coordinates that Megatron, vLLM and SGLang
write: `tp0_pp1`, `TP-3`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.base import urls
from stepscope.model.trace import Trace

TELLING_KINDS = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
"""Kinds whose `Rank` is the caller's; a broadcast's is the root's."""
MOST_MEMBERS = 100_000


@dataclass(frozen=True, kw_only=True)
class RankEvidence:
    """Evidence of one trace's rank."""

    worker: str
    span: str
    name: str
    """The file's name, else the worker's."""
    header: int | None
    """`distributedInfo.rank`."""
    content: int | None
    """The only rank that is common to all its groups and collectives."""
    device: int | None
    """The number of its device, if it used only one."""


@dataclass(frozen=True, kw_only=True)
class RecordedRank:
    """The rank of a trace; `rank` is None where it is unknown."""

    rank: int | None
    source: str | None
    """`header`, `file name`, `content` or `device`."""
    confidence: str | None
    """`high`, `medium` or `low`."""


UNKNOWN = RecordedRank(rank=None, source=None, confidence=None)


def rank_evidence(trace: Trace) -> RankEvidence:
    """Return the evidence of a trace's rank."""
    devices = np.unique(trace.device_events["device"].to_numpy())
    rank = trace.rank
    return RankEvidence(
        worker=trace.worker,
        span=trace.span,
        name=urls.name(trace.path) if trace.path else trace.worker,
        header=rank if rank is not None and rank >= 0 else None,
        content=_by_content(trace),
        device=int(devices[0]) if len(devices) == 1 and devices[0] >= 0 else None,
    )


def _by_content(trace: Trace) -> int | None:
    frame = trace.collectives
    listed = frame[frame["group_ranks"].notna()]
    distinct = listed[["kind", "group_ranks", "group_rank"]].drop_duplicates()
    possible: set[int] | None = None
    for kind, ranks, position in distinct.itertuples(index=False):
        members = json.loads(ranks)
        if len(members) > MOST_MEMBERS:
            continue
        if kind in TELLING_KINDS and 0 <= position < len(members):
            members = [members[position]]
        possible = set(members) if possible is None else possible & set(members)
    return possible.pop() if possible is not None and len(possible) == 1 else None


def recorded_ranks(evidence: Sequence[RankEvidence]) -> tuple[RecordedRank, ...]:
    """Return the rank of each trace of a run.

    A rank belongs to one worker: where headers give several workers the same rank, names decide.
    """
    names = _by_name(evidence)
    headers = _unless_shared(evidence, [item.header for item in evidence])
    contents = _unless_shared(evidence, [item.content for item in evidence])
    devices = [item.device for item in evidence]
    is_alone = len({item.worker for item in evidence}) < 2  # no other trace confirms its name
    by_name = "low" if is_alone else "medium"
    if is_alone or None in _unless_shared(evidence, devices):
        devices = [None] * len(evidence)
    ranks = [
        _first((header, "header", "high"), (name, "file name", by_name),
               (content, "content", "medium"), (device, "device", "low"))
        for header, name, content, device in zip(headers, names, contents, devices, strict=True)
    ]  # fmt: skip
    return tuple(
        _first((item.header, "header", "low")) if rank.rank is None else rank
        for rank, item in zip(ranks, evidence, strict=True)
    )


def _first(*answers: tuple[int | None, str, str]) -> RecordedRank:
    for rank, source, confidence in answers:
        if rank is not None:
            return RecordedRank(rank=rank, source=source, confidence=confidence)
    return UNKNOWN


def _by_name(evidence: Sequence[RankEvidence]) -> list[int | None]:
    """Return the ranks by workers' names, unless a header contradicts them."""
    workers = list(dict.fromkeys(item.worker for item in evidence))
    name_of = {item.worker: item.name for item in reversed(evidence)}
    ranks = ranks_of_names([name_of[worker] for worker in workers])
    if ranks is None:
        return [None] * len(evidence)
    rank_of = dict(zip(workers, ranks, strict=True))
    headers = _unless_shared(evidence, [item.header for item in evidence])
    named = [rank_of[item.worker] for item in evidence]
    is_denied = any(h is not None and h != t for h, t in zip(headers, named, strict=True))
    return [None] * len(evidence) if is_denied else list(named)


def _unless_shared(
    evidence: Sequence[RankEvidence], ranks: Sequence[int | None]
) -> list[int | None]:
    pairs = {(item.worker, rank) for item, rank in zip(evidence, ranks, strict=True)}
    holders = Counter(rank for _, rank in pairs)
    return [rank if rank is not None and holders[rank] == 1 else None for rank in ranks]


ORDER = ("tp", "cp", "ep", "dp", "pp")
"""Megatron's default order of ranks (`--use-tp-pp-dp-mapping` off), the fastest first."""
COORDINATE = re.compile(r"(?<![a-z])(tp|cp|ep|dp|pp)[-_]?(\d{1,6})(?!\d)", re.IGNORECASE)
PATTERNS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(rf"(?:^|(?<=[^a-zA-Z])){word}(\d{{1,7}})(?!\d)", re.IGNORECASE)
    for word in (
        r"(?<!local.)rank[-_.= ]?",
        r"(?<!local.)(?:worker|proc|process|trainer)[-_.= ]?",
        r"r[-_]?",
        r"(?:gpu|device|cuda|card)[-_.= ]?",
    )
)
"""The first pattern that matches all names counts."""


def ranks_of_names(names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the rank in each name; None where one has no rank, or two have the same."""
    readings: list[Callable[[Sequence[str]], list[int] | None]] = [
        *(lambda of, pattern=pattern: _by_pattern(of, pattern) for pattern in PATTERNS),
        _by_coordinates,
    ]
    for reading in readings:
        ranks = reading(names)
        if ranks is not None and len(set(ranks)) == len(set(names)):
            return tuple(ranks)
    return None


def rank_named_like(others: Mapping[str, int], name: str) -> int | None:
    """Return the rank in a name, by the pattern of the other ranks' names."""
    for pattern in PATTERNS if others else ():
        if _by_pattern(list(others), pattern) == list(others.values()):
            ranks = _by_pattern([name], pattern)
            return ranks[0] if ranks else None
    return None


def _by_pattern(names: Sequence[str], pattern: re.Pattern[str]) -> list[int] | None:
    matches = [pattern.search(name) for name in names]
    ranks = [int(match[1]) for match in matches if match is not None]
    return ranks if ranks and len(ranks) == len(names) else None


def _by_coordinates(names: Sequence[str]) -> list[int] | None:
    """Return the ranks of names that fill a grid of coordinates."""
    grid = [_coordinates(name) for name in names]
    axes = [axis for axis in ORDER if grid and axis in grid[0]]
    if not axes or any(set(coordinates) != set(axes) for coordinates in grid):
        return None
    sizes = [max(coordinates[axis] for coordinates in grid) + 1 for axis in axes]
    count = 1
    for size in sizes:
        count *= size
    if count != len({tuple(coordinates.items()) for coordinates in grid}):
        return None
    return [_number(coordinates, axes, sizes) for coordinates in grid]


def _coordinates(name: str) -> dict[str, int]:
    matches = COORDINATE.findall(name)
    return {axis.lower(): int(number) for axis, number in sorted(matches)}


def _number(coordinates: Mapping[str, int], axes: Sequence[str], sizes: Sequence[int]) -> int:
    number = 0
    for axis, size in zip(reversed(axes), reversed(sizes), strict=True):
        number = number * size + coordinates[axis]
    return number
