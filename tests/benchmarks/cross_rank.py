"""Duration of the cross-rank analyses by the number of ranks.

`python -m benchmarks.cross_rank`, in `tests`. The ranks are generated as summaries (`rankparts`);
no file is read. Seconds are CPU time.
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
from stepscope.replay.run_graph import run_graph
from stepscope.replay.run_what_if import RunWhatIf, predict_run
from stepscope.tables import RunTable, all_tables

SIZES = (64, 128, 256, 512, 1_024)
MOST_SLOPE, MOST_SECONDS = 1.15, 10.0
SLOW = 37
"""The slow rank; the last one of smaller jobs."""
RULES = 70
"""Outcomes of each trace, one per rule; a few of them are findings."""
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
    """Store the CPU time of a phase, s."""
    start = time.process_time()
    yield
    seconds[phase] = time.process_time() - start


def advice(part: RankSummary) -> TraceAdvice:
    """Return plausible outcomes of the rules for a rank."""
    name = part.evidence.worker
    worker = msgspec.structs.replace(
        WORKER, trace=name, name=name, rank=part.evidence.header, health=(), budget=()
    )
    common = {"worker": name, "span": "1", "trace": name}
    findings = [
        msgspec.structs.replace(FOUND, rule=f"rule-{at:02}", fingerprint=f"{name}-{at}", **common)
        for at in range(FOUND_COUNT)
    ]
    passed = [
        msgspec.structs.replace(PASSED, rule=f"rule-{at:02}", **common)
        for at in range(FOUND_COUNT, RULES)
    ]
    return TraceAdvice(worker=worker, outcomes=(*findings, *passed), part=part)


def phases(parts: Sequence[RankSummary]) -> Seconds:
    """Return the time of each phase; those of the API share their results."""
    seconds: dict[str, float] = {}
    with timed(seconds, "merge"):
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
    replayed(run, seconds)
    traces = [advice(part) for part in parts]
    with timed(seconds, "advice merged"):
        run_report("job", traces)
    return seconds


def replayed(run: RankRun, seconds: dict[str, float]) -> None:
    """Store the times of a run's replay: its graph, and one prediction."""
    with timed(seconds, "replay graph"):
        run_graph(run)
    slow = min(SLOW, len(run.parts) - 1)
    with timed(seconds, "replay prediction"):
        predict_run(run, RunWhatIf(without_ranks=(slow,), network=2))


def answered(parts: Sequence[RankSummary], seconds: dict[str, float]) -> None:
    """Store the times of the Distributed view's responses: the first, and a repeated one."""
    shared = SharedRun(rank_run(parts))
    group = Group(name="job", parts=parts)
    every = tables.select_members(shared, None, "")
    requests: dict[str, Callable[[], object]] = {
        "summary": lambda: answers.distributed(shared, group),
        "steps": lambda: answers.heat(shared, "late", group),
        "ranks": lambda: answers.breakdown(shared, None, group),
        "collectives": lambda: tables.collectives(shared, "kind", every, 2_000),
        "collectives each": lambda: tables.collectives(shared, "each", every, 2_000),
        "groups": lambda: tables.group_table(shared),
    }
    for turn in ("first", "again"):
        for name, ask in requests.items():
            with timed(seconds, f"api {name}, {turn}"):
                msgspec.json.encode(ask())


def slope(by_size: Mapping[int, float]) -> float:
    """Return the growth exponent of time: least squares over the logarithms."""
    points = [(math.log(size), math.log(took)) for size, took in by_size.items() if took > 0]
    if len(points) < 2:
        return math.nan
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def whole(seconds: Seconds) -> float:
    """Return the time of a report: all tables, the page's first responses, and the advice, s."""
    return sum(took for name, took in seconds.items() if "again" not in name)


def show(by_size: Mapping[int, Seconds]) -> None:
    """Print the time of each phase by number of ranks, and its growth."""
    table = Table()
    for column in ("", *(f"{size:,} ranks, s" for size in by_size), "slope"):
        table.add_column(column, justify="right" if column else "left")
    for phase in next(iter(by_size.values())):
        add_row(table, phase, {size: seconds[phase] for size, seconds in by_size.items()})
    together = {size: whole(seconds) for size, seconds in by_size.items()}
    add_row(table, "whole", together)
    console.print(table)
    largest = max(by_size)
    console.print(f"slope of the whole: {slope(together):.2f}, at most {MOST_SLOPE}")
    console.print(f"the whole at {largest:,} ranks: {together[largest]:.2f} s")


def add_row(table: Table, name: str, by_size: Mapping[int, float]) -> None:
    """Add the time of a phase at each size."""
    table.add_row(name, *(f"{took:.3f}" for took in by_size.values()), f"{slope(by_size):.2f}")


def main() -> None:
    """Measure the jobs that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="*", default=SIZES)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    phases(rankparts.parts_of(rankparts.shape(16)))  # without imports
    by_size: dict[int, Seconds] = {}
    for size in options.ranks:
        job = rankparts.shape(size, slow={min(SLOW, size - 1): 0.3}, step_count=options.steps)
        parts = rankparts.parts_of(job)
        turns = [phases(parts) for _ in range(options.turns)]
        by_size[size] = {name: min(turn[name] for turn in turns) for name in turns[0]}
    show(by_size)


if __name__ == "__main__":
    main()
