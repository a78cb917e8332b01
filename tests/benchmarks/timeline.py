"""Duration of the timeline on a large trace: index, tiles of any window, details, searches.

`python -m benchmarks.timeline`, in `tests`; `make bench` includes it. `timeline_figures` measures
in a separate process.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.growth import line
from benchmarks.processes import measured, of_module
from benchmarks.scaled import SEED, scaled

MOST_INDEX_SECONDS = 3.0
"""At 5 M events, on one core."""
MOST_BYTES_A_SLICE = 60
MOST_TILE_SECONDS = 0.02
"""Any window, all rows."""
MOST_DETAILS_SECONDS = 0.05
MOST_SEARCH_SECONDS = 0.25
SIZES = ("500k", "5M")
console = Console(highlight=False, soft_wrap=True)
Figures = Mapping[str, float]


def show(by_size: Mapping[str, Figures]) -> None:
    """Print the figures at each size, and whether the largest meets the limits."""
    table = Table()
    for column in ("", *by_size):
        table.add_column(column, justify="right" if column else "left")
    largest = by_size[SIZES[-1]] if SIZES[-1] in by_size else next(iter(by_size.values()))
    for name in largest:
        table.add_row(name, *(_shown(name, figures[name]) for figures in by_size.values()))
    console.print(table)
    console.print(line("index, CPU seconds", largest["index"], MOST_INDEX_SECONDS))
    console.print(line("bytes per slice", largest["bytes per slice"], MOST_BYTES_A_SLICE))
    console.print(line("tile p95, ms", 1e3 * largest["tile p95"], 1e3 * MOST_TILE_SECONDS))
    console.print(line("details p95, ms", 1e3 * largest["details p95"], 1e3 * MOST_DETAILS_SECONDS))
    console.print(line("search max, ms", 1e3 * largest["search max"], 1e3 * MOST_SEARCH_SECONDS))


def _shown(name: str, value: float) -> str:
    if name in {"events", "slices"}:
        return f"{value:,.0f}"
    return f"{value:.1f}" if name == "bytes per slice" else f"{1e3 * value:,.2f} ms"


def measure(seeds: Sequence[Path], sizes: Sequence[str] = SIZES, turns: int = 3) -> None:
    """Measure the timeline of traces generated from each seed, and print medians."""
    for seed in seeds:
        console.print(f"\nTimeline of {seed.name}, repeated to {' and '.join(sizes)} events")
        show({size: _of_size(size, seed, turns) for size in sizes})


def _of_size(size: str, seed: Path, turns: int) -> Figures:
    command = [*of_module("benchmarks.timeline_figures"), str(scaled(size, seed))]
    runs = [measured(command).seconds for _ in range(turns)]
    return {
        name: statistics.median(run[name] for run in runs) for name in runs[0] if name != "whole"
    }


def main() -> None:
    """Measure the seeds and sizes that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=Path, nargs="*", default=[SEED])
    parser.add_argument("--sizes", nargs="*", default=SIZES)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    measure(options.seed, options.sizes, options.turns)


if __name__ == "__main__":
    main()
