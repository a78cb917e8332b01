"""Duration of `stepscope whatif` of a run from the summaries of its ranks, as stored in files.

`python -m benchmarks.stored_ranks`, in `tests`. The ranks are generated as summaries (`rankparts`)
and stored as after a first run; their traces are files that cannot be read. The command runs in a
process of its own, from its start to its end; the figure is wall time.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
from rich.console import Console

import rankparts
import stepscope
from benchmarks import growth
from benchmarks.cross_rank import SLOW
from benchmarks.processes import measured, of_module
from loading import SAMPLE_LOGS, trace_at
from stepscope import storage
from stepscope.advice import TraceAdvice
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.base.config import SummarySettings
from stepscope.storage import discover
from stepscope.storage.discover import TraceFile
from stepscope.summaries.store import Store
from stepscope.summaries.summary import Summary, summarise

RANKS = 1_024
MOST_SECONDS = 60.0
"""On two cores."""
[TRACE] = (SAMPLE_LOGS / "ranks" / "one_slow_rank").glob("rank0*.json.gz")
"""Its advice stands for that of each rank."""
PACKAGE = Path(stepscope.__file__).parents[1]
RECORDED = 1_790_000_000_000_000_000
console = Console(highlight=False, soft_wrap=True)


def store(folder: Path, location: Path, count: int, steps: int) -> None:
    """Write the summaries of a run of ranks, one of them slow, and files in place of traces."""
    job = rankparts.shape(count, slow={min(SLOW, count - 1): 0.3}, step_count=steps)
    parts = {part.evidence.worker: part for part in rankparts.parts_of(job)}
    for worker in parts:
        (folder / f"{worker}.{RECORDED}.pt.trace.json").write_text("not a trace")
    summaries, recorded = Store(SummarySettings(location=str(location))), summarise(trace_at(TRACE))
    for file in discover.at(str(folder)):
        summary = of_rank(recorded, parts[file.worker], file)
        summaries.add(file, storage.stamp(file.path), summary)
    summaries.flush()


def of_rank(summary: Summary, part: RankSummary, file: TraceFile) -> Summary:
    """Return the summary of a recorded trace as that of a generated rank."""
    named = {"trace": file.id, "span": file.span}
    worker = msgspec.structs.replace(summary.advice.worker, name=file.worker, **named)
    outcomes = tuple(
        msgspec.structs.replace(outcome, worker=file.worker, **named)
        for outcome in summary.advice.outcomes
    )
    advice = TraceAdvice(worker=worker, outcomes=outcomes, part=part)
    return replace(summary, advice=advice)


def measure(count: int, steps: int) -> None:
    """Print the time of a prediction, and the size of the summaries."""
    with tempfile.TemporaryDirectory() as base:
        folder, location = Path(base, "run"), Path(base, "summaries")
        folder.mkdir()
        store(folder, location, count, steps)
        size_mb = sum(path.stat().st_size for path in location.rglob("*.parquet")) / 1e6
        options = ("--without-rank", str(min(SLOW, count - 1)), "--network", "2")
        stored = ("--summaries", str(location))
        command = of_module("stepscope", "whatif", str(folder), *options, *stored)
        result = measured(command, {"PYTHONPATH": str(PACKAGE)})
    console.print(f"{count:,} ranks of {steps} steps; their summaries have {size_mb:.1f} MB")
    console.print(growth.line("prediction, wall seconds", result.seconds["whole"], MOST_SECONDS))
    console.print(growth.line("prediction, seconds of the processor", result.cpu_seconds))
    console.print(growth.line("peak memory, MB", result.peak_bytes / 1e6))


def main() -> None:
    """Measure a run of the requested size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=RANKS)
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    measure(options.ranks, options.steps)


if __name__ == "__main__":
    main()
