"""How long the analyses take as a trace grows: every public table, at two sizes.

`python -m benchmarks.growth`, in `tests`; `make bench` runs it too.
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
"""The one size over the other, in events."""
MOST_SECONDS = 6.0
"""Of all tables together, on one core, at the larger size."""
MOST_SECONDS_EACH = 1.5
MOST_SLOPE = 1.2
"""Of the logarithm of time over that of size: 1 where twice the events take twice as long."""
SHOWN_SECONDS = 0.02
"""What takes less than this at the larger size is not listed."""
Seconds = Mapping[str, float]
console = Console(highlight=False, soft_wrap=True)


def of_size(size: str, seed: Path, turns: int, subject: str = "analyses") -> Seconds:
    """Return the processor seconds of each phase, medians of so many processes."""
    path = scaled(size, seed)
    runs = [
        measured([*of_module("benchmarks.subjects", subject), str(path)]).seconds
        for _ in range(turns)
    ]
    return {phase: statistics.median(run[phase] for run in runs) for phase in runs[0]}


def slope(small: float, large: float) -> float:
    """Return the exponent with which time grows with the trace."""
    return math.log(large / small) / math.log(GROWTH) if small > 0 and large > 0 else math.nan


def total(seconds: Seconds, kind: str) -> float:
    """Return the seconds of all phases of a kind together: `frame` or `table`."""
    return sum(took for phase, took in seconds.items() if phase.startswith(f"{kind} "))


def show(small: Seconds, large: Seconds) -> None:
    """Print what each phase takes at both sizes, longest first, and whether the bars are met."""
    table = Table()
    for column in ("", *(f"{size} s" for size in SIZES), "slope"):
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
    console.print(line("all tables together, seconds", together, MOST_SECONDS))
    console.print(line("the longest of them, seconds", max(tables), MOST_SECONDS_EACH))
    console.print(line("slope of all together", growth, MOST_SLOPE))


def add_row(table: Table, name: str, small: float, large: float) -> None:
    """Add what a phase takes at both sizes."""
    table.add_row(name, f"{small:.3f}", f"{large:.3f}", f"{slope(small, large):.2f}")


def line(text: str, found: float, most: float | None = None) -> str:
    """Return a figure beside its bar, where it has one."""
    bar = "" if most is None else f"  at most {most:.3g}: {'yes' if found <= most else 'NO'}"
    return f"  {text:<60} {found:.2f}{bar}"


def measure(seeds: Sequence[Path], turns: int) -> None:
    """Measure the analyses on traces made of each recording, and show it."""
    for seed in seeds:
        console.print(f"\nAnalyses of {seed.name}, repeated to {' and '.join(SIZES)} events")
        show(*(of_size(size, seed, turns) for size in SIZES))


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=Path, nargs="*", default=[SEED])
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    measure(given.seed, given.turns)


if __name__ == "__main__":
    main()
