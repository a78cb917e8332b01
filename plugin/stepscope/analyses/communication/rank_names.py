"""Ranks that file names tell: only where all files of a run follow one pattern.

`rank-34.Jul_15.pt.trace.json`, `worker0.….pt.trace.json`, `trace_r3.json`, and the coordinates
that Megatron, vLLM and SGLang write: `tp0_pp1`, `TP-3`.
"""

import re
from collections.abc import Callable, Mapping, Sequence

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


def named_like(others: Mapping[str, int], name: str) -> int | None:
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
