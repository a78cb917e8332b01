"""Cost of stepscope by the number of ranks of a job: `python -m benchmarks.scale`, in `tests`.

Figures are printed with their limits and stored in docs/scaling_figures.json, from which
`docs/scaling.md` is written. `--only growth look` measures a part.
"""

import argparse
import os
import platform
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from benchmarks import scale_cluster, scale_page, scale_runs, scale_storage
from benchmarks.scale_figures import Figure, note, show

MOST_RANKS = 1024
Part = tuple[str, Callable[[int], Iterator[Figure]]]
PARTS: Mapping[str, Part] = {
    "growth": ("Advice on jobs of 64 to 1,024 ranks", scale_runs.growth),
    "file": ("One trace", lambda _: scale_runs.large()),
    "look": ("A second run, from summaries", scale_runs.second_look),
    "dask": ("Local processes and Dask", scale_cluster.compared),
    "kill": ("Workers killed during a run", scale_cluster.killed),
    "s3": ("An S3 bucket", scale_storage.bucket),
    "listing": ("A large folder", lambda _: scale_storage.folder_listing()),
}


def measure(parts: list[str], most_ranks: int) -> None:
    """Measure some parts, and write the page."""
    python = platform.python_version()
    note("machine", f"{os.cpu_count()} cores, {platform.machine()}, Python {python}")
    for part in parts:
        title, measured = PARTS[part]
        note(f"load/{part}", f"{datetime.now(UTC).date()}, commit {_commit()}, {_load()}")
        show(title, measured(most_ranks))
    scale_page.write()


def _commit() -> str:
    """Return the short hash of the commit that is measured, from git."""
    command = ["git", "describe", "--always", "--exclude=*", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} at the start"


def main() -> None:
    """Measure the parts that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--most-ranks", type=int, default=MOST_RANKS, help="of the largest job")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.page:
        scale_page.write()
    else:
        measure(options.only, options.most_ranks)


if __name__ == "__main__":
    main()
