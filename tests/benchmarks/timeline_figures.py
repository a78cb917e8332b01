"""What the timeline of a trace takes: `python -m benchmarks.timeline_figures FILE`.

It prints figures as JSON in its last line: processor seconds, but for `slices`, `events` and
`bytes a slice`; of the index also what passes on the clock. Reading the trace is not counted.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from stepscope import ingest
from stepscope.analyses.timeline.idle_slices import idle_slices
from stepscope.analyses.timeline.range_summary import summarize
from stepscope.analyses.timeline.search import Search, search
from stepscope.analyses.timeline.slice_details import details
from stepscope.analyses.timeline.tiles import TILE_PIXELS, tile
from stepscope.analyses.timeline.timeline import Timeline, timeline
from stepscope.api.timeline_tiles import encoded
from stepscope.model.trace import trace_from_columns
from stepscope.readers import memory_size

WINDOWS_A_LEVEL = 12
LEVELS = range(4, 45)
SLICES = 200
WORDS = ("gemm", "a", "stream:7", "aten::add")
Figures = dict[str, float]


def figures(path: Path) -> Figures:
    """Read a trace, and return what its timeline takes, in seconds where nothing else is said."""
    trace = trace_from_columns(ingest.read(str(path)), worker="worker")
    found: Figures = {"events": len(trace)}
    start, clock = time.process_time(), time.perf_counter()
    shown = timeline(trace)
    found["index"] = time.process_time() - start
    found["index, on the clock"] = time.perf_counter() - clock
    found["slices"] = len(shown.slices)
    found["bytes a slice"] = memory_size.size_bytes(shown) / max(1, len(shown.slices))
    found |= _quantiles("tile", _tile_seconds(shown, [track.id for track in shown.tracks]))
    shuffler = random.Random(0)  # noqa: S311 - the same each time
    places = [shuffler.randrange(len(shown.slices)) for _ in range(SLICES)]
    events = [int(event) for event in shown.slices.event[places]]
    found["first details"] = _seconds(lambda: details(trace, events[0]))
    found |= _quantiles("details", (_seconds(_asked(details, trace, event)) for event in events))
    found |= _quantiles(
        "search", (_seconds(_asked(search, trace, Search(text=text))) for text in WORDS)
    )
    found["area of all"] = _seconds(
        lambda: summarize(
            shown, shown.slices, [track.id for track in shown.tracks], (0, shown.end_ns + 1)
        )
    )
    found["idle causes, first"] = _seconds(lambda: idle_slices(trace))
    return found


def _tile_seconds(shown: Timeline, tracks: Sequence[int]) -> Iterator[float]:
    """Yield what tiles take of every level, at its beginning, its end, and anywhere."""
    shuffler = random.Random(0)  # noqa: S311 - the same each time
    for level in LEVELS:
        last = shown.end_ns // (TILE_PIXELS << level)
        numbers = {0, last, *(shuffler.randint(0, last) for _ in range(WINDOWS_A_LEVEL))}
        for number in sorted(numbers):
            start = time.process_time()
            encoded([(shown.slices, tile(shown.slices, tracks, level, number))])
            yield time.process_time() - start


def _asked(ask: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: ask(*arguments)


def _seconds(ask: Callable[[], object]) -> float:
    start = time.process_time()
    ask()
    return time.process_time() - start


def _quantiles(what: str, seconds: Iterable[float]) -> Figures:
    taken = sorted(seconds)
    return {
        f"{what} p50": statistics.median(taken),
        f"{what} p95": taken[int(0.95 * (len(taken) - 1))],
        f"{what} max": taken[-1],
    }


def main() -> None:
    """Print the figures of the trace that the command line names."""
    sys.stdout.write(json.dumps(figures(Path(sys.argv[1]))) + "\n")


if __name__ == "__main__":
    main()
