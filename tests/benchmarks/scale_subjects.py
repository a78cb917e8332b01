"""Measurements of `scale` in separate processes; the last line is JSON: seconds by phase."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from stepscope import storage
from stepscope.advice import AdviceSettings, run_report
from stepscope.base.config import SummarySettings
from stepscope.storage import discover
from stepscope.summaries.store import Store


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Store the time of a phase, s."""
    start = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - start


def merge(path: str, location: str) -> dict[str, float]:
    """Merge the summaries of a job."""
    seconds: dict[str, float] = {}
    settings = AdviceSettings()
    with timed(seconds, "listed"):
        files = discover.at(path)
    with timed(seconds, "known"):
        stamped = [(file, file.listed or storage.stamp(file.path)) for file in files]
        summaries = Store(SummarySettings(location=location), settings).find(stamped)
    assert len(summaries) == len(files), f"{len(summaries)} of {len(files)} have a summary"
    with timed(seconds, "merged"):
        report = run_report("job", [summaries[file.id].advice for file in files], settings)
    with timed(seconds, "json"):
        msgspec.json.encode(report)
    return seconds


def listing(path: str) -> dict[str, float]:
    """List a folder's traces."""
    seconds: dict[str, float] = {}
    with timed(seconds, "listed"):
        files = discover.in_folder(path)
    seconds["count"] = len(files)
    return seconds


def main() -> None:
    """Run the subject that the command line names."""
    name, *arguments = sys.argv[1:]
    seconds = merge(*arguments) if name == "merge" else listing(*arguments)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
