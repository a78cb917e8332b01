"""Runs pairs in turns: `python -m pairs [FAMILY[:fault+fault] …] [--out build/pairs]`.

Each pair's result and its two traces go to a folder. A pair that fails is reported, and the others
still run. `python -m score.pairs` then stores what the accuracy page needs of them.
"""

import argparse
import sys
import time
from itertools import zip_longest
from pathlib import Path

from pairs.family import Pair, family_names, find_pairs
from pairs.result import FILE_NAME, PairResult
from pairs.turns import record_pair

OUT = Path(__file__).resolve().parents[3] / "build" / "pairs"


def parse_options() -> argparse.Namespace:
    """Reads the options."""
    parser = argparse.ArgumentParser(
        prog="python -m pairs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="FAMILY[:FAULT+FAULT]", help="default: all")
    parser.add_argument("--out", type=Path, default=OUT, metavar="DIR")
    parser.add_argument("--missing", action="store_true", help="only pairs without a result")
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="start no pair after this time (default: 30)"
    )
    return parser.parse_args()


def report(text: str) -> None:
    """Writes a line of progress."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def selected(names: list[str], failures: list[str]) -> list[Pair]:
    """Returns the pairs of these names: the first of each, then the second of each.

    A script that cannot be imported is a failure.
    """
    pairs = []
    for name in names or family_names():
        try:
            pairs.append(find_pairs(name))
        except Exception as error:  # a script's own fault must not stop the others
            failures.append(f"{name}: {type(error).__name__}: {error}")
    return [pair for turn in zip_longest(*pairs) for pair in turn if pair is not None]


def summary(result: PairResult) -> str:
    """Returns a pair's result in one line."""
    unit = "ms" if result.samples == (1, 1) else "ms per sample"
    disturbed = ", disturbed" if result.is_disturbed else ""
    return (
        f"{result.before_ms:.3f} {unit}, saves {result.saving_ms:.3f} ± {result.error_ms:.3f}"
        f" ({result.attempt_count} series{disturbed})"
    )


def main(options: argparse.Namespace) -> int:
    """Records the pairs one after the other, and lists the failures."""
    failures: list[str] = []
    begin = time.monotonic()
    for pair in selected(options.names, failures):
        folder = options.out / pair.family.name / pair.name.partition(":")[2]
        if options.missing and (folder / FILE_NAME).exists():
            continue
        begun = time.monotonic()
        if begun - begin > 60 * options.minutes:
            failures.append(f"{pair.name}: no time left")
            continue
        try:
            text = summary(record_pair(pair, folder))
        except Exception as error:  # the others still run
            text = f"failed: {type(error).__name__}: {error}"
            failures.append(f"{pair.name}: {text}")
        report(f"{pair.name}: {text}, {time.monotonic() - begun:.0f} s")
    for failure in failures:
        report(f"not recorded: {failure}")
    report(f"{time.monotonic() - begin:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(parse_options()))
