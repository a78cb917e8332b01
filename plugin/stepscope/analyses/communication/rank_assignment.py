"""Which rank each recording of a run is: by its header, else its file's name, else its content."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stepscope.base import urls
from stepscope.model.trace import Trace

TELLING_KINDS = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
"""Kinds whose `Rank` is the caller's own: of a broadcast it is the root's."""
MOST_MEMBERS = 100_000


@dataclass(frozen=True, kw_only=True)
class RankEvidence:
    """What one recording says of its rank."""

    worker: str
    span: str
    name: str
    """The file's, or where there is none the worker's."""
    header: int | None
    """`distributedInfo.rank`."""
    content: int | None
    """The only rank that is in every group it took part in, or that a collective names."""
    device: int | None
    """The number of the device that it used, where that was one."""


@dataclass(frozen=True, kw_only=True)
class RecordedRank:
    """The rank of a recording; `rank` is None where nothing tells."""

    rank: int | None
    source: str | None
    """`header`, `file name`, `content` or `device`."""
    confidence: str | None
    """`high`, `medium` or `low`."""


UNKNOWN = RecordedRank(rank=None, source=None, confidence=None)


def rank_evidence(trace: Trace) -> RankEvidence:
    """Return what a recording says of its rank."""
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
    told = frame[frame["group_ranks"].notna()]
    distinct = told[["kind", "group_ranks", "group_rank"]].drop_duplicates()
    possible: set[int] | None = None
    for kind, ranks, own in distinct.itertuples(index=False):
        members = json.loads(ranks)
        if len(members) > MOST_MEMBERS:
            continue
        if kind in TELLING_KINDS and 0 <= own < len(members):
            members = [members[own]]
        possible = set(members) if possible is None else possible & set(members)
    return possible.pop() if possible is not None and len(possible) == 1 else None


def recorded_ranks(evidence: Sequence[RankEvidence]) -> tuple[RecordedRank, ...]:
    """Return the rank of each recording of a run.

    A rank is one worker's: where the header gives several workers the same, all files having been
    written by processes that did not know theirs, the names decide if they can.
    """
    names = _by_name(evidence)
    headers = _unless_shared(evidence, [each.header for each in evidence])
    contents = _unless_shared(evidence, [each.content for each in evidence])
    devices = [each.device for each in evidence]
    is_alone = len({each.worker for each in evidence}) < 2  # nothing confirms what its name says
    by_name = "low" if is_alone else "medium"
    if is_alone or None in _unless_shared(evidence, devices):
        devices = [None] * len(evidence)
    found = [
        _first((header, "header", "high"), (name, "file name", by_name),
               (content, "content", "medium"), (device, "device", "low"))
        for header, name, content, device in zip(headers, names, contents, devices, strict=True)
    ]  # fmt: skip
    return tuple(
        _first((each.header, "header", "low")) if one.rank is None else one
        for one, each in zip(found, evidence, strict=True)
    )


def _first(*answers: tuple[int | None, str, str]) -> RecordedRank:
    for rank, source, confidence in answers:
        if rank is not None:
            return RecordedRank(rank=rank, source=source, confidence=confidence)
    return UNKNOWN


def _by_name(evidence: Sequence[RankEvidence]) -> list[int | None]:
    """Return the ranks that names tell, unless a header says otherwise; a worker has one."""
    workers = list(dict.fromkeys(each.worker for each in evidence))
    name_of = {each.worker: each.name for each in reversed(evidence)}
    found = ranks_of_names([name_of[worker] for worker in workers])
    if found is None:
        return [None] * len(evidence)
    rank_of = dict(zip(workers, found, strict=True))
    headers = _unless_shared(evidence, [each.header for each in evidence])
    told = [rank_of[each.worker] for each in evidence]
    is_denied = any(h is not None and h != t for h, t in zip(headers, told, strict=True))
    return [None] * len(evidence) if is_denied else list(told)


def _unless_shared(
    evidence: Sequence[RankEvidence], ranks: Sequence[int | None]
) -> list[int | None]:
    """Return the ranks that are one worker's alone; None for those of several."""
    pairs = {(each.worker, rank) for each, rank in zip(evidence, ranks, strict=True)}
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
"""The first that fits all names counts."""


def ranks_of_names(names: Sequence[str]) -> tuple[int, ...] | None:
    """Return the rank that each name tells; None where not all do, or several tell the same."""
    readings: list[Callable[[Sequence[str]], list[int] | None]] = [
        *(lambda of, pattern=pattern: _by_pattern(of, pattern) for pattern in PATTERNS),
        _by_coordinates,
    ]
    for reading in readings:
        found = reading(names)
        if found is not None and len(set(found)) == len(set(names)):
            return tuple(found)
    return None


def rank_named_like(others: Mapping[str, int], name: str) -> int | None:
    """Return the rank that a name tells in the way in which those of other ranks do."""
    for pattern in PATTERNS if others else ():
        if _by_pattern(list(others), pattern) == list(others.values()):
            found = _by_pattern([name], pattern)
            return found[0] if found else None
    return None


def _by_pattern(names: Sequence[str], pattern: re.Pattern[str]) -> list[int] | None:
    matches = [pattern.search(name) for name in names]
    found = [int(match[1]) for match in matches if match is not None]
    return found if found and len(found) == len(names) else None


def _by_coordinates(names: Sequence[str]) -> list[int] | None:
    """Return the ranks of a grid of which every place has a name."""
    places = [_coordinates(name) for name in names]
    axes = [axis for axis in ORDER if places and axis in places[0]]
    if not axes or any(set(place) != set(axes) for place in places):
        return None
    sizes = [max(place[axis] for place in places) + 1 for axis in axes]
    count = 1
    for size in sizes:
        count *= size
    if count != len({tuple(place.items()) for place in places}):
        return None
    return [_number(place, axes, sizes) for place in places]


def _coordinates(name: str) -> dict[str, int]:
    found = COORDINATE.findall(name)
    return {axis.lower(): int(number) for axis, number in sorted(found)}


def _number(place: Mapping[str, int], axes: Sequence[str], sizes: Sequence[int]) -> int:
    number = 0
    for axis, size in zip(reversed(axes), reversed(sizes), strict=True):
        number = number * size + place[axis]
    return number
