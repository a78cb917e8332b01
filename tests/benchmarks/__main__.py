"""Measure stepscope and its peers: `make bench`, `make bench FULL=1 TRACE=trace.json.gz`.

Every subject is a separate process. They run in turn, A B C A B C, so that other load on the
machine affects all of them equally; a ratio is the median of the turns' ratios. Figures are printed
with their limits, and exceeding one is no failure. (`make overhead`, which runs afterwards, fails.)
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import growth, rule_times, scale, timeline
from benchmarks.processes import FailedError, Measured, measured, of_module
from benchmarks.scaled import FOLDER, ROOT, SEED, scaled

PEERS = ROOT / ".venv" / "peers"
OLD_PANDAS = ROOT / ".venv" / "pandas-2.2.3"
"""HTA 0.5 takes seven times as long under pandas 3."""
WORKER_COUNT = 64
Turn = Mapping[str, Measured]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One command, to which the path of its input is appended."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """One subject over another: a phase's seconds, or `peak`, with a limit by size."""

    subject: Subject
    other: Subject
    phase: str
    most: Mapping[str, float] = field(default_factory=dict)

    def of(self, turn: Turn) -> float:
        """Return the ratio in one turn."""
        return _figure(turn[self.subject.name], self.phase) / _figure(
            turn[self.other.name], self.phase
        )


def _subject(name: str, function: str, **environment: str) -> Subject:
    command = of_module("benchmarks.subjects", function)
    return Subject(name=name, command=command, environment=environment)


def _advise(name: str, *options: str) -> Subject:
    command = of_module("stepscope", "advise", "--format", "json", *options)
    return Subject(name=name, command=command)


ADVISE = _advise("stepscope advise")
LOAD = _subject("stepscope load", "load")
PURE = _subject("stepscope load, pure Python", "load", STEPSCOPE_PURE_PYTHON="1")
SCAN = _subject("stepscope scan, in memory", "scan")
PEER = _subject("torch-tb-profiler", "torch_tb_profiler")
HTA = _subject("HTA", "hta", PYTHONPATH=os.pathsep.join((str(PEERS), str(OLD_PANDAS))))
ORJSON = _subject("orjson.loads", "orjson", PYTHONPATH=str(PEERS))
ONE_JOB, TWO_JOBS = (_advise(f"advise --jobs {jobs}", "--jobs", jobs) for jobs in "12")
OWN = (ADVISE, LOAD, SCAN)
ALL = (*OWN, PURE, PEER, HTA, ORJSON)
RATIOS = (
    Ratio(subject=ADVISE, other=PEER, phase="whole", most={"43MB": 0.25, "516MB": 0.06}),
    Ratio(subject=ADVISE, other=PEER, phase="peak", most={"516MB": 0.25}),
    Ratio(subject=LOAD, other=PEER, phase="load", most={"516MB": 0.04}),
    Ratio(subject=LOAD, other=PEER, phase="peak", most={"516MB": 0.20}),
    Ratio(subject=PURE, other=PEER, phase="load", most={"516MB": 0.25}),
    Ratio(subject=LOAD, other=HTA, phase="load"),
    Ratio(subject=LOAD, other=ORJSON, phase="load"),
    Ratio(subject=TWO_JOBS, other=ONE_JOB, phase="whole", most={"folder": 1 / 1.5}),
)
PEAK_BYTES_A_JSON_BYTE = {"2GB": 0.75}
SCAN_SECONDS_A_GIGABYTE = 1.0
console = Console(highlight=False, soft_wrap=True)


def in_turn(subjects: Sequence[Subject], path: Path, turns: int) -> list[Turn]:
    """Run the subjects on a path, one after the other, in turns; skip those that cannot run.

    Before that each runs once on a small trace, so that Python has compiled its modules.
    """
    runnable = []
    for subject in subjects:
        try:
            measured([*subject.command, str(SEED)], subject.environment)
        except FailedError as error:
            console.print(f"{subject.name} is skipped: {error}")
        else:
            runnable.append(subject)
    return [
        {
            subject.name: measured([*subject.command, str(path)], subject.environment)
            for subject in runnable
        }
        for _ in range(turns)
    ]


def show(title: str, size: str, turns: Sequence[Turn]) -> None:
    """Print each subject's medians, and the ratios between them."""
    console.print(f"\n{title}, medians of {len(turns)}")
    table = Table()
    for column in ("", "load, s", "total, s", "CPU, s", "peak, MB"):
        table.add_column(column, justify="left" if not column else "right")
    for name in turns[0]:
        runs = [turn[name] for turn in turns]
        figures = [
            statistics.median(run.seconds["load"] for run in runs)
            if "load" in runs[0].seconds
            else None,
            statistics.median(run.seconds["whole"] for run in runs),
            statistics.median(run.cpu_seconds for run in runs),
        ]
        peak = statistics.median(run.peak_bytes for run in runs) / 1e6
        seconds = ("" if figure is None else f"{figure:.2f}" for figure in figures)
        table.add_row(name, *seconds, f"{peak:,.0f}")
    console.print(table)
    for line in _ratios(size, turns):
        console.print(line)


def _figure(run: Measured, phase: str) -> float:
    return run.peak_bytes if phase == "peak" else run.seconds[phase]


def _ratios(size: str, turns: Sequence[Turn]) -> Iterator[str]:
    for ratio in RATIOS:
        if {ratio.subject.name, ratio.other.name} <= turns[0].keys():
            ratios = [ratio.of(turn) for turn in turns]
            text = f"{ratio.subject.name} / {ratio.other.name}, {ratio.phase}"
            yield _line(text, ratios, ratio.most.get(size))
    if SCAN.name in turns[0]:
        seconds = [turn[SCAN.name].seconds["a gigabyte"] for turn in turns]
        yield _line("scan in memory, seconds per gigabyte", seconds, SCAN_SECONDS_A_GIGABYTE)


def _line(text: str, values: Sequence[float], most: float | None) -> str:
    middle = statistics.median(values)
    bar = "" if most is None else f"  at most {most:.3g}: {'yes' if middle <= most else 'NO'}"
    return f"  {text:<60} {middle:.3f} ({min(values):.3f} to {max(values):.3f}){bar}"


def json_bytes(path: Path) -> int:
    """Return the uncompressed size of a gzipped file, up to 4 GiB, from its last four bytes."""
    return int.from_bytes(path.read_bytes()[-4:], "little")


def measure_file(size: str, seed: Path, subjects: Sequence[Subject], turns: int) -> None:
    """Measure the subjects on one trace of a size, and print it."""
    path = scaled(size, seed)
    turns_run = in_turn(subjects, path, turns)
    show(f"{path.name}: {json_bytes(path) / 1e6:,.0f} MB of JSON", size, turns_run)
    peaks = [turn[ADVISE.name].peak_bytes / json_bytes(path) for turn in turns_run]
    bar = PEAK_BYTES_A_JSON_BYTE.get(size)
    console.print(_line("stepscope advise, peak bytes per byte of JSON", peaks, bar))


def measure_folder(seed: Path, turns: int) -> None:
    """Measure a folder of many workers' traces, read by one process and by two."""
    file = scaled("43MB", seed)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        for worker in range(WORKER_COUNT):
            os.link(file, Path(folder, f"worker{worker}.pt.trace.json.gz"))
        runs = in_turn((ONE_JOB, TWO_JOBS), Path(folder), turns)
        if runs[0]:
            show(f"{WORKER_COUNT} times {file.name}", "folder", runs)


def main() -> None:
    """Measure the subjects that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=Path, default=SEED, help="the trace to repeat")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument(
        "--full", action="store_true", help="also 516 MB, 2 GB, and 1,024 ranks: two hours"
    )
    options = parser.parse_args()
    console.print(f"Traces generated from {options.seed}, stored in {FOLDER}")
    measure_file("43MB", options.seed, ALL, options.turns)
    measure_folder(options.seed, 1)
    rule_times.measure_small(options.seed, options.turns)
    timeline.measure([options.seed], timeline.SIZES[:1])
    if options.full:
        growth.measure([options.seed], 3)
        rule_times.measure([options.seed], 3)
        timeline.measure([options.seed])
        measure_file("516MB", options.seed, ALL, 3)
        measure_file("2GB", options.seed, OWN, 3)
        measure_file("10M", options.seed, OWN, 3)
        scale.measure(list(scale.PARTS), scale.MOST_RANKS)


if __name__ == "__main__":
    main()
