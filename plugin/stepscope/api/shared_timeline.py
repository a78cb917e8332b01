"""The timelines of a shared file: tiles of whole levels, from coarse to fine while there is space.

A level either is in the file completely or not at all, so the page knows which it may request. It
draws from a finer one where a level is missing, so that every third level is enough.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from stepscope.analyses.timeline.detail_levels import COARSEST
from stepscope.analyses.timeline.tiles import TILE_PIXELS
from stepscope.api.shared_requests import Get, Json, Request, request
from stepscope.api.timeline_tiles import SIXTEENTHS, compressible, merged_count
from stepscope.base.formatting import duration

NARROW_LEVELS = 2
"""Levels in which the whole trace is narrower than a tile: for small windows."""
STRIDE = 3
"""Distance of the levels in a file."""
COUNTER_LEVELS = 7
"""Coarse levels of which counters are in a file."""
MOST_COUNTERS = 24

MOST_TILES = 2048
"""Limit of tiles per level and trace."""
FEW_MERGED = 0.01
"""Fraction of merged items below which a finer level is added last."""

DECIMATED = "Decimated in this file: slices shorter than {} are merged."

Store = Callable[[Iterable[tuple[Request, bytes]]], bool]
"""Adds responses to the file: all, or none where they do not fit."""
Body = Callable[[Request], bytes | None]


@dataclass(kw_only=True)
class SharedTimeline:
    """The levels of a trace's timeline that a file holds."""

    trace: str
    tracks: Json
    """The list of its tracks, of which the file adds levels and a note."""
    end_ns: int
    counters: tuple[int, ...]
    """Tracks of counters."""
    coarsest: int
    levels: list[int] = field(default_factory=list)
    """The levels in the file, from coarse to fine."""
    next_level: int | None
    """The level to be added; None where there is none, or no space."""
    merged_fraction: float = 1.0
    """Fraction of the finest level's items that merge short slices."""

    @property
    def note(self) -> str:
        """The decimation as a sentence; empty where the timeline shows all slices."""
        if not self.merged_ns:
            return ""
        return DECIMATED.format(duration(self.merged_ns))

    @property
    def listed(self) -> Json:
        """The list of its tracks with the levels in the file."""
        note = " ".join(filter(None, (self.tracks["note"], self.note)))
        return {**self.tracks, "levels": self.levels, "note": note}

    @property
    def longest_listed(self) -> Json:
        """The list of its tracks, as long as it can become."""
        note = f"{self.tracks['note']} {DECIMATED.format('00.0 ms')}"
        return {**self.tracks, "levels": list(range(self.coarsest, -1, -1)), "note": note}

    @property
    def merged_ns(self) -> int:
        """Shorter slices are merged; 0 where none are."""
        return 1 << self.levels[-1] if self.merged_fraction and self.levels else 0

    @property
    def rounding_ns(self) -> int:
        """To how many ns times are rounded in the finest level."""
        return max(1, (1 << self.levels[-1]) // SIXTEENTHS) if self.levels else 0

    def add_level(self, body: Body, store: Store) -> None:
        """Add the next level, if it fits; otherwise a coarser one is next."""
        level = self.next_level
        if level is None:
            return
        counts: list[tuple[int, int]] = []
        tile_count = self._tile_count(level)
        is_stored = tile_count <= MOST_TILES and store(self._responses(level, body, counts))
        if is_stored and len(counts) == tile_count:  # else the file became unreadable
            self.levels.append(level)
            self.merged_fraction = sum(n for n, _ in counts) / max(1, sum(n for _, n in counts))
            self.next_level = max(0, level - STRIDE) if self._can_refine else None
        else:
            coarser = level + 1
            is_left = not self.levels or coarser < self.levels[-1]
            self.next_level = coarser if is_left and coarser <= self.coarsest else None

    @property
    def _can_refine(self) -> bool:
        return self.merged_fraction >= FEW_MERGED and bool(self.levels) and self.levels[-1] > 0

    def _responses(
        self, level: int, body: Body, counts: list[tuple[int, int]]
    ) -> Iterator[tuple[Request, bytes]]:
        """Yield the tiles of a level, and its counters; `counts` receives the tiles' items."""
        for of in self._tiles(level):
            if (content := body(of)) is not None:
                counts.append(merged_count(content))
                yield of, compressible(content)
        for of in self._counters(level):
            if (content := body(of)) is not None:
                yield of, content

    def refine(self) -> None:
        """Continue after the finest level, or try again, when there is more space."""
        if not self.levels:
            self.next_level = self.coarsest
        elif self.merged_fraction and self.levels[-1] > 0:
            self.next_level = max(0, self.levels[-1] - STRIDE)

    def _tiles(self, level: int) -> list[Request]:
        return [
            request(f"traces/{self.trace}/timeline/tiles", level=level, tile=tile)
            for tile in range(self._tile_count(level))
        ]

    def _counters(self, level: int) -> list[Request]:
        if level <= self.coarsest - COUNTER_LEVELS:
            return []
        return [
            request(f"traces/{self.trace}/timeline/counters", track=track, level=level, tile=tile)
            for track in self.counters
            for tile in range(self._tile_count(level))
        ]

    def _tile_count(self, level: int) -> int:
        return max(1, math.ceil(self.end_ns / (TILE_PIXELS << level)))


def timeline_of(trace: str, get: Get) -> SharedTimeline | None:
    """Return the timeline of a trace without any level; None where it has none."""
    timeline = get(request(f"traces/{trace}/timeline/tracks"))
    if timeline is None or timeline["end_ns"] <= 0:
        return None
    counters = [track["id"] for track in timeline["tracks"] if track["kind"] == "counter"]
    coarsest = coarsest_level(timeline["end_ns"])
    return SharedTimeline(
        trace=trace,
        tracks=timeline,
        end_ns=timeline["end_ns"],
        counters=tuple(counters[:MOST_COUNTERS]),
        coarsest=coarsest,
        next_level=coarsest,
    )


def coarsest_level(end_ns: int) -> int:
    """Return the coarsest level in a file: the whole trace in a narrow window."""
    whole = max(0, math.ceil(math.log2(max(1, end_ns) / TILE_PIXELS)))
    return int(min(COARSEST, whole + NARROW_LEVELS))
