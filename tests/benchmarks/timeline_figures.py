"""Figures on the timeline of a trace: `python -m benchmarks.timeline_figures FILE`.

It prints them as JSON in its last line: CPU seconds, except for `slices`, `events` and
`bytes per slice`; for the index also the wall time. Reading the trace does not count.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from stepscope import ingest
from stepscope.analyses.timeline.range_summary import summarize
from stepscope.analyses.timeline.search import Search, search
from stepscope.analyses.timeline.slice_details import details
from stepscope.analyses.timeline.tiles import TILE_PIXELS, tile
from stepscope.analyses.timeline.timeline import Timeline, idle_slices, timeline
from stepscope.api.timeline_tiles import encoded
from stepscope.model.trace import trace_from_columns
from stepscope.readers import memory_size

WINDOWS_A_LEVEL = 12
LEVELS = range(4, 45)
SLICES = 200
WORDS = ("gemm", "a", "stream:7", "aten::add")
Figures = dict[str, float]


def figures(path: Path) -> Figures:
    """Read a trace, and return the figures on its timeline, in seconds by default."""
    trace = trace_from_columns(ingest.read(str(path)), worker="worker")
    measured: Figures = {"events": len(trace)}
    start, clock = time.process_time(), time.perf_counter()
    shown = timeline(trace)
    measured["index"] = time.process_time() - start
    measured["index, wall time"] = time.perf_counter() - clock
    measured["slices"] = len(shown.slices)
    measured["bytes per slice"] = memory_size.size_bytes(shown) / max(1, len(shown.slices))
    measured |= _quantiles("tile", _tile_seconds(shown, [track.id for track in shown.tracks]))
    shuffler = random.Random(0)  # noqa: S311 - the same each time
    rows = [shuffler.randrange(len(shown.slices)) for _ in range(SLICES)]
    events = [int(event) for event in shown.slices.event[rows]]
    measured["first details"] = _seconds(lambda: details(trace, events[0]))
    measured |= _quantiles("details", (_seconds(_call(details, trace, event)) for event in events))
    measured |= _quantiles(
        "search", (_seconds(_call(search, trace, Search(text=text))) for text in WORDS)
    )
    measured["area of all"] = _seconds(
        lambda: summarize(
            shown, shown.slices, [track.id for track in shown.tracks], (0, shown.end_ns + 1)
        )
    )
    measured["idle causes, first"] = _seconds(lambda: idle_slices(trace))
    return measured


def _tile_seconds(shown: Timeline, tracks: Sequence[int]) -> Iterator[float]:
    """Yield the times of tiles of every level, at its begin, its end, and in between."""
    shuffler = random.Random(0)  # noqa: S311 - the same each time
    for level in LEVELS:
        last = shown.end_ns // (TILE_PIXELS << level)
        numbers = {0, last, *(shuffler.randint(0, last) for _ in range(WINDOWS_A_LEVEL))}
        for number in sorted(numbers):
            start = time.process_time()
            encoded([(shown.slices, tile(shown.slices, tracks, level, number))])
            yield time.process_time() - start


def _call(call: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: call(*arguments)


def _seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _quantiles(name: str, seconds: Iterable[float]) -> Figures:
    taken = sorted(seconds)
    return {
        f"{name} p50": statistics.median(taken),
        f"{name} p95": taken[int(0.95 * (len(taken) - 1))],
        f"{name} max": taken[-1],
    }


def main() -> None:
    """Print the figures of the trace that the command line names."""
    sys.stdout.write(json.dumps(figures(Path(sys.argv[1]))) + "\n")


if __name__ == "__main__":
    main()
