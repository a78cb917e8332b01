"""How long what is worked out over all ranks takes as the ranks become more.

`python -m benchmarks.cross_rank`, in `tests`. The ranks are made as what their recordings say
(`rankparts`): no file is read, so that nothing else is measured. Seconds are the processor's.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from rich.console import Console
from rich.table import Table

import rankparts
from reports import FOUND, PASSED, WORKER
from stepscope.advice import run_report
from stepscope.advice.trace_advice import TraceAdvice
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, rank_run
from stepscope.analyses.communication.run_groups import run_groups
from stepscope.analyses.communication.run_steps import run_steps
from stepscope.api import distributed_ranks as answers
from stepscope.api import distributed_tables as tables
from stepscope.api.endpoint import Group
from stepscope.api.run_ranks import SharedRun
from stepscope.tables import RunTable, all_tables

SIZES = (64, 128, 256, 512, 1_024)
MOST_SLOPE, MOST_SECONDS = 1.15, 10.0
SLOW = 37
RULES = 70
"""Outcomes of each recording: as many as there are rules; a few of them found something."""
FOUND_COUNT = 6
TABLES = (
    "ranks",
    "matched-collectives",
    "clock-alignment",
    "stragglers",
    "representative-ranks",
    "outlier-ranks",
)
Seconds = Mapping[str, float]
console = Console(highlight=False, soft_wrap=True)


@contextmanager
def timed(seconds: dict[str, float], phase: str) -> Iterator[None]:
    """Note how many processor seconds a phase took."""
    start = time.process_time()
    yield
    seconds[phase] = time.process_time() - start


def advice(part: RankSummary) -> TraceAdvice:
    """Return what rules might have said of a rank."""
    name = part.evidence.worker
    worker = msgspec.structs.replace(
        WORKER, trace=name, name=name, rank=part.evidence.header, health=(), budget=()
    )
    common = {"worker": name, "span": "1", "trace": name}
    found = [
        msgspec.structs.replace(FOUND, rule=f"rule-{at:02}", fingerprint=f"{name}-{at}", **common)
        for at in range(FOUND_COUNT)
    ]
    passed = [
        msgspec.structs.replace(PASSED, rule=f"rule-{at:02}", **common)
        for at in range(FOUND_COUNT, RULES)
    ]
    return TraceAdvice(worker=worker, outcomes=(*found, *passed), part=part)


def phases(parts: Sequence[RankSummary]) -> Seconds:
    """Return what each part of the work takes; those of the API share what they rest on."""
    seconds: dict[str, float] = {}
    with timed(seconds, "put together"):
        run = rank_run(parts)
    for name in ("matches", "alignment", "waits"):
        with timed(seconds, name):
            getattr(run, name)
    analyses: dict[str, Callable[[RankRun], object]] = {"groups": run_groups, "steps": run_steps}
    for name, analysis in analyses.items():
        with timed(seconds, name):
            analysis(run)
    for name in sorted(all_tables().keys() & set(TABLES)):
        table = all_tables()[name]
        assert isinstance(table, RunTable)
        with timed(seconds, f"table {name}"):
            table.build(parts)
    answered(parts, seconds)
    recordings = [advice(part) for part in parts]
    with timed(seconds, "advice merged"):
        run_report("job", recordings)
    return seconds


def answered(parts: Sequence[RankSummary], seconds: dict[str, float]) -> None:
    """Note what the Distributed view's answers take: the first, and each once more."""
    shared = SharedRun(rank_run(parts))
    group = Group(name="job", parts=parts)
    every = tables.select_members(shared, None, "")
    asked: dict[str, Callable[[], object]] = {
        "summary": lambda: answers.distributed(shared, group),
        "steps": lambda: answers.heat(shared, "late", group),
        "ranks": lambda: answers.breakdown(shared, None, group),
        "collectives": lambda: tables.collectives(shared, "kind", every, 2_000),
        "collectives each": lambda: tables.collectives(shared, "each", every, 2_000),
        "groups": lambda: tables.group_table(shared),
    }
    for turn in ("first", "again"):
        for name, ask in asked.items():
            with timed(seconds, f"api {name}, {turn}"):
                msgspec.json.encode(ask())


def slope(found: Mapping[int, float]) -> float:
    """Return the exponent with which time grows: least squares over the logarithms."""
    points = [(math.log(size), math.log(took)) for size, took in found.items() if took > 0]
    if len(points) < 2:
        return math.nan
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def whole(seconds: Seconds) -> float:
    """Return what a report takes: all tables, the page's first answers, and the advice."""
    return sum(took for name, took in seconds.items() if "again" not in name)


def show(found: Mapping[int, Seconds]) -> None:
    """Print what each phase takes at each number of ranks, and how it grows."""
    table = Table()
    for column in ("", *(f"{size:,} ranks, s" for size in found), "slope"):
        table.add_column(column, justify="right" if column else "left")
    for phase in next(iter(found.values())):
        add_row(table, phase, {size: seconds[phase] for size, seconds in found.items()})
    together = {size: whole(seconds) for size, seconds in found.items()}
    add_row(table, "whole", together)
    console.print(table)
    largest = max(found)
    console.print(f"slope of the whole: {slope(together):.2f}, at most {MOST_SLOPE}")
    console.print(f"the whole at {largest:,} ranks: {together[largest]:.2f} s")


def add_row(table: Table, name: str, found: Mapping[int, float]) -> None:
    """Add what a phase takes at each size."""
    table.add_row(name, *(f"{took:.3f}" for took in found.values()), f"{slope(found):.2f}")


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=SIZES)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--turns", type=int, default=1)
    given = parser.parse_args()
    phases(rankparts.parts_of(rankparts.shape(16)))  # imports are no part of it
    found: dict[int, Seconds] = {}
    for size in given.ranks:
        job = rankparts.shape(size, slow={SLOW: 0.3}, step_count=given.steps)
        parts = rankparts.parts_of(job)
        turns = [phases(parts) for _ in range(given.turns)]
        found[size] = {name: min(turn[name] for turn in turns) for name in turns[0]}
    show(found)


if __name__ == "__main__":
    main()
