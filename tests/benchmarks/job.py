"""Make the folder of a job of many ranks whose truth is known: `python -m benchmarks.job 64 1024`.

Eight process groups a rank, a straggler with a slow DataLoader, two missing ranks, a damaged file:
`job_plan.Job` says which. From a shell, in `tests`, with `PYTHONPATH=.:../sample_logs/record`. A
job is made once and kept in `.cache/bench/job-<ranks>-<MB>`.
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
"""Beyond this a larger recording has more steps."""
LEFT_OF_DAMAGED = 0.6
SIZES_MB = (2.0,)


@dataclass(frozen=True, kw_only=True)
class Made:
    """What all of a job's files are made of."""

    job: Job
    template: Template
    clocks: Clocks
    folder: Path

    def write(self, rank: int) -> None:
        """Write a rank's file; that of the damaged one is cut."""
        compressor = zlib.compressobj(level=1, wbits=31)
        text = self.template.filled(self.job, self.clocks, rank)
        content = compressor.compress(text.encode()) + compressor.flush()
        if rank == self.job.damaged:
            content = content[: int(LEFT_OF_DAMAGED * len(content))]
        Path(self.folder, self.job.file_name(rank)).write_bytes(content)


def job(rank_count: int, size_mb: float = 2.0, folder: Path = FOLDER) -> Path:
    """Return the folder of a job, made now or some time ago; each file is about so much JSON."""
    path = folder / f"job-{rank_count}-{size_mb:g}"
    if not path.exists():
        unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
        unfinished.mkdir(parents=True)
        made = _made(rank_count, size_mb, unfinished)
        ranks = [rank for rank in range(rank_count) if rank not in made.job.missing]
        context = multiprocessing.get_context("fork")
        with context.Pool(os.cpu_count(), initializer=_give, initargs=(made,)) as pool:
            for _ in pool.imap_unordered(_write, ranks, chunksize=4):
                pass
        unfinished.rename(path)
    return path


def _made(rank_count: int, size_mb: float, folder: Path) -> Made:
    job, turns = planned(rank_count, size_mb)
    return Made(job=job, template=template(job, turns), clocks=play(job, turns), folder=folder)


def planned(rank_count: int, size_mb: float) -> tuple[Job, Sequence[Turn]]:
    """Return a job whose recordings have about a size, and what a step of it consists of."""

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


_given: Made


def _give(made: Made) -> None:
    global _given  # noqa: PLW0603 (a process of the pool has one job)
    _given = made


def _write(rank: int) -> None:
    _given.write(rank)


def main() -> None:
    """Make the jobs that the command line asks for; print where they are and what is true."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ranks", nargs="+", type=int)
    parser.add_argument("--mb", nargs="+", type=float, default=SIZES_MB, help="of JSON a file")
    given = parser.parse_args()
    for count in given.ranks:
        true = Job(rank_count=count)
        for size in given.mb:
            print(
                f"{job(count, size)}: straggler {true.straggler} (data loading), "
                f"missing {true.missing}, damaged {true.damaged}"
            )


if __name__ == "__main__":
    main()
