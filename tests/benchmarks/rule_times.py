"""Duration of the rules after the analyses, at two sizes; and of advice on a small file.

`python -m benchmarks.rule_times`, in `tests`; `make bench` includes it.
"""

import argparse
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import growth
from benchmarks.growth import MOST_SLOPE, SIZES, Seconds, add_row, of_size, slope
from benchmarks.processes import Measured, measured, of_module
from benchmarks.scaled import SEED, scaled

MOST_SECONDS = 1.0
"""Of all rules together, on one core, at the larger size."""
MOST_SECONDS_EACH = 0.15
SHOWN_SECONDS = 0.005
SMALL = "1MB"
MOST_WHOLE_SECONDS = 0.8
"""Of `stepscope advise` on a small trace, from its start to its end, on a free core."""
KINDS = ("first", "again")
PANDAS = (sys.executable, "-c", "import pandas")
console = Console(highlight=False, soft_wrap=True)


def measure_small(seed: Path, turns: int) -> None:
    """Measure the process of advice on a small trace, compared with importing pandas.

    A seed that is larger than `SMALL` is used whole.
    """
    path = scaled(SMALL, seed)
    command = (*of_module("stepscope", "advise"), str(path))
    for warming in (command, PANDAS):
        measured(warming)  # Python compiles its modules
    runs = [(measured(command), measured(PANDAS)) for _ in range(turns)]
    size = int.from_bytes(path.read_bytes()[-4:], "little") / 1e6
    console.print(f"\nstepscope advise {path.name}: {size:.1f} MB of JSON, medians of {turns}")
    show_small([advise for advise, _ in runs], [pandas for _, pandas in runs])


def show_small(advise: Sequence[Measured], pandas: Sequence[Measured]) -> None:
    """Print the time of the process, in seconds and relative to the import of pandas."""
    whole = statistics.median(run.seconds["whole"] for run in advise)
    processor = statistics.median(run.cpu_seconds for run in advise)
    ratio = statistics.median(
        one.cpu_seconds / other.cpu_seconds for one, other in zip(advise, pandas, strict=True)
    )
    console.print(growth.line("process, seconds", whole, MOST_WHOLE_SECONDS))
    console.print(growth.line("its CPU seconds", processor))
    console.print(growth.line("its CPU seconds over those of `import pandas`", ratio))


def show(small: Seconds, large: Seconds) -> None:
    """Print the time of each rule after the analyses at both sizes, longest first."""
    table = Table()
    for column in ("", *(f"{size} s" for size in SIZES), "exponent"):
        table.add_column(column, justify="right" if column else "left")
    again = sorted(_of_kind(large, "again"), key=lambda phase: -large[phase])
    for phase in again:
        if large[phase] >= SHOWN_SECONDS:
            add_row(table, phase.removeprefix("again "), small[phase], large[phase])
    for phase in ("worker report", *KINDS):
        add_row(table, f"all: {phase}", total(small, phase), total(large, phase))
    console.print(table)
    together = total(large, "again")
    steepness = slope(total(small, "again"), together)
    console.print(growth.line("all rules after analyses, seconds", together, MOST_SECONDS))
    console.print(growth.line("the slowest rule, seconds", large[again[0]], MOST_SECONDS_EACH))
    console.print(growth.line("growth exponent of all rules", steepness, MOST_SLOPE))


def _of_kind(seconds: Seconds, kind: str) -> list[str]:
    return [phase for phase in seconds if phase.startswith(kind)]


def total(seconds: Seconds, kind: str) -> float:
    """Return the seconds of all phases of a kind."""
    return sum(seconds[phase] for phase in _of_kind(seconds, kind))


def measure(seeds: Sequence[Path], turns: int) -> None:
    """Measure the rules on traces generated from each seed, and print them."""
    for seed in seeds:
        console.print(f"\nRules on {seed.name}, repeated to {' and '.join(SIZES)} events")
        show(*(of_size(size, seed, turns, subject="rules") for size in SIZES))


def main() -> None:
    """Measure the seeds that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=Path, nargs="*", default=[SEED])
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    for seed in options.seed:
        measure_small(seed, options.turns)
    measure(options.seed, options.turns)


if __name__ == "__main__":
    main()
