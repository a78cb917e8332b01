"""Generate a job of many ranks with known faults: `python -m benchmarks.job 64 1024`.

It has eight process groups per rank, a straggler with a slow DataLoader, two missing ranks and a
damaged file, as `job_plan.Job` defines. Run it in `tests`, with
`PYTHONPATH=.:../sample_logs/record`. A job is generated once, and stored in
`.cache/bench/job-<ranks>-<MB>`.
"""

import argparse
import multiprocessing
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.job_plan import Job
from benchmarks.job_segments import Model, Turn
from benchmarks.job_text import Template, template
from benchmarks.job_times import Clocks, play
from benchmarks.scaled import FOLDER

MEGABYTE = 10**6
MOST_LAYERS = 24
"""Larger traces have more steps instead."""
LEFT_OF_DAMAGED = 0.6
SIZES_MB = (2.0,)


@dataclass(frozen=True, kw_only=True)
class JobContent:
    """Common content of all files of a job."""

    job: Job
    template: Template
    clocks: Clocks
    folder: Path

    def write(self, rank: int) -> None:
        """Write a rank's file, truncated for the damaged rank."""
        compressor = zlib.compressobj(level=1, wbits=31)
        text = self.template.filled(self.job, self.clocks, rank)
        content = compressor.compress(text.encode()) + compressor.flush()
        if rank == self.job.damaged:
            content = content[: int(LEFT_OF_DAMAGED * len(content))]
        Path(self.folder, self.job.file_name(rank)).write_bytes(content)


def job(rank_count: int, size_mb: float = 2.0, folder: Path = FOLDER) -> Path:
    """Return the folder of a job, generated if missing; `size_mb` is the JSON of a file."""
    path = folder / f"job-{rank_count}-{size_mb:g}"
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
        unfinished.mkdir(parents=True)
        made = _made(rank_count, size_mb, unfinished)
        ranks = [rank for rank in range(rank_count) if rank not in made.job.missing]
        context = multiprocessing.get_context("fork")
        with context.Pool(os.cpu_count(), initializer=_set_content, initargs=(made,)) as pool:
            for _ in pool.imap_unordered(_write, ranks, chunksize=4):
                pass
        unfinished.rename(path)
    return path


def _made(rank_count: int, size_mb: float, folder: Path) -> JobContent:
    job, turns = planned(rank_count, size_mb)
    return JobContent(
        job=job, template=template(job, turns), clocks=play(job, turns), folder=folder
    )


def planned(rank_count: int, size_mb: float) -> tuple[Job, Sequence[Turn]]:
    """Return a job whose traces have about a size, and the pieces of its step."""

    def bytes_of(layers: int, steps: int) -> int:
        made = template(Job(rank_count=16, step_count=steps), tuple(Model(layers).step()))
        return len(made.text)

    steps = Job.step_count
    of_one, of_five = bytes_of(1, steps), bytes_of(5, steps)
    layers = 1 + round((size_mb * MEGABYTE - of_one) / ((of_five - of_one) / 4))
    layers = min(MOST_LAYERS, max(1, layers))
    if layers == MOST_LAYERS:
        steps = max(steps, round(size_mb * MEGABYTE / bytes_of(layers, steps) * steps))
    return Job(rank_count=rank_count, step_count=steps), tuple(Model(layers).step())


_content: JobContent


def _set_content(made: JobContent) -> None:
    global _content  # noqa: PLW0603 (a process of the pool has one job)
    _content = made


def _write(rank: int) -> None:
    _content.write(rank)


def main() -> None:
    """Generate the jobs that the command line names; print their folders and faults."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", nargs="+", type=int)
    parser.add_argument("--mb", nargs="+", type=float, default=SIZES_MB, help="JSON per file")
    options = parser.parse_args()
    for count in options.ranks:
        true = Job(rank_count=count)
        for size in options.mb:
            print(
                f"{job(count, size)}: straggler {true.straggler} (data loading), "
                f"missing {true.missing}, damaged {true.damaged}"
            )


if __name__ == "__main__":
    main()
