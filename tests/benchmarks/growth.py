"""Duration of the analyses as a trace grows: every public table, at two sizes.

`python -m benchmarks.growth`, in `tests`; `make bench FULL=1` includes it.
"""

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.processes import measured, of_module
from benchmarks.scaled import SEED, scaled

SIZES = ("500k", "5M")
GROWTH = 10
"""Ratio of the sizes, in events."""
MOST_SECONDS = 6.0
"""Of all tables together, on one core, at the larger size."""
MOST_SECONDS_EACH = 1.5
MOST_SLOPE = 1.2
"""Growth exponent: 1 if twice the events take twice as long."""
SHOWN_SECONDS = 0.02
"""Shorter phases, at the larger size, are not listed."""
Seconds = Mapping[str, float]
console = Console(highlight=False, soft_wrap=True)


def of_size(size: str, seed: Path, turns: int, subject: str = "analyses") -> Seconds:
    """Return the CPU seconds of each phase, as medians over processes."""
    path = scaled(size, seed)
    runs = [
        measured([*of_module("benchmarks.subjects", subject), str(path)]).seconds
        for _ in range(turns)
    ]
    return {phase: statistics.median(run[phase] for run in runs) for phase in runs[0]}


def slope(small: float, large: float) -> float:
    """Return the growth exponent of time by the size of the trace."""
    return math.log(large / small) / math.log(GROWTH) if small > 0 and large > 0 else math.nan


def total(seconds: Seconds, kind: str) -> float:
    """Return the seconds of all phases of a kind together: `frame` or `table`."""
    return sum(took for phase, took in seconds.items() if phase.startswith(f"{kind} "))


def show(small: Seconds, large: Seconds) -> None:
    """Print the time of each phase at both sizes, longest first, and whether the limits are met."""
    table = Table()
    for column in ("", *(f"{size} s" for size in SIZES), "exponent"):
        table.add_column(column, justify="right" if column else "left")
    by_time = sorted(large, key=lambda phase: -large[phase])
    for phase in by_time:
        if large[phase] >= SHOWN_SECONDS and phase != "whole":
            add_row(table, phase, small[phase], large[phase])
    for kind in ("frame", "table"):
        add_row(table, f"all {kind}s", total(small, kind), total(large, kind))
    console.print(table)
    tables = [took for phase, took in large.items() if phase.startswith("table ")]
    together = total(large, "table")
    growth = slope(total(small, "table"), together)
    console.print(line("all tables, seconds", together, MOST_SECONDS))
    console.print(line("the slowest table, seconds", max(tables), MOST_SECONDS_EACH))
    console.print(line("growth exponent of all tables", growth, MOST_SLOPE))


def add_row(table: Table, name: str, small: float, large: float) -> None:
    """Add the time of a phase at both sizes."""
    table.add_row(name, f"{small:.3f}", f"{large:.3f}", f"{slope(small, large):.2f}")


def line(text: str, value: float, most: float | None = None) -> str:
    """Return a figure with its limit, if it has one."""
    limit = "" if most is None else f"  at most {most:.3g}: {'yes' if value <= most else 'NO'}"
    return f"  {text:<60} {value:.2f}{limit}"


def measure(seeds: Sequence[Path], turns: int) -> None:
    """Measure the analyses on traces generated from each seed, and print them."""
    for seed in seeds:
        console.print(f"\nAnalyses of {seed.name}, repeated to {' and '.join(SIZES)} events")
        show(*(of_size(size, seed, turns) for size in SIZES))


def main() -> None:
    """Measure the seeds that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=Path, nargs="*", default=[SEED])
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    measure(options.seed, options.turns)


if __name__ == "__main__":
    main()
