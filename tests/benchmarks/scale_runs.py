"""Advice on whole jobs: its cost by the number of ranks, its findings, and a second run."""

import json
import math
import os
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.job import job as made
from benchmarks.job_plan import Job
from benchmarks.process_tree import TreeMeasured, watched
from benchmarks.processes import measured, of_module
from benchmarks.scale_figures import Figure, condition
from benchmarks.scaled import FOLDER

SIZES = (64, 256, 1024)
SIZE_MB, LARGE_MB, LARGE_COUNT = 2.0, 20.0, 16
MOST_SLOPE, MOST_PEAK_BYTES, MOST_MERGE_SECONDS = 1.15, 2e9, 10.0
MOST_SUMMARY_SHARE = 0.01
JSON_BYTES_WRAP = 2**32
Report = Mapping[str, Any]


def advise(
    path: str | os.PathLike[str],
    output: Path,
    *options: str,
    summaries: str | os.PathLike[str] = "0",
    **environment: str,
) -> TreeMeasured:
    """Run `stepscope advise` on a path; write its JSON to a file."""
    command = of_module("stepscope", "advise", os.fspath(path), "--format", "json", *options)
    variables = {"STEPSCOPE_SUMMARIES": os.fspath(summaries), **environment}
    return watched([*command, "--isolated", "--output", str(output)], variables)


def names(report: Report, true: Job) -> Mapping[str, bool]:
    """Return whether the advice names each of a job's faults."""
    [run] = report["runs"]
    findings: dict[str, list[str]] = {}
    for outcome in run["outcomes"]:
        if outcome["status"] == "found":
            findings.setdefault(outcome["rule"], []).append(json.dumps(outcome))
    late = [json.loads(text)["message"] for text in findings.get("straggler-rank", ())]
    missing = " ".join(findings.get("missing-ranks", ()))
    named = true.worker(true.damaged)
    damaged = [worker for worker in run["workers"] if worker["name"] == named]
    kinds = {item["kind"] for worker in damaged for item in worker["health"]}
    problems = json.dumps(report["problems"])
    return {
        "the straggler": len(late) == 1 and _has_word(late[0], f"rank {true.straggler}"),
        "the cause of the straggler": any(
            f'"{true.worker(true.straggler)}"' in text
            for text in findings.get("dataloader-bound", ())
        ),
        "the missing ranks": all(_has_word(missing, str(rank)) for rank in true.missing),
        "the damaged file": "truncated-gzip" in kinds or named in problems,
    }


def _has_word(text: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", text, re.IGNORECASE) is not None


def growth(most_ranks: int) -> Iterator[Figure]:
    """Yield the cost of advice by the number of ranks, and whether it names the faults."""
    sizes = [size for size in SIZES if size <= most_ranks]
    wall: dict[int, float] = {}
    for count in sizes:
        true, path = Job(rank_count=count), made(count, SIZE_MB)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            output, location = Path(folder, "advice.json"), Path(folder, "summaries")
            run = advise(path, output, summaries=location)
            wall[count] = run.seconds
            yield from _of_job(count, run)
            for fault, is_named in names(json.loads(output.read_bytes()), true).items():
                text = f"{count} ranks: the advice names {fault}"
                yield condition(f"names/{count}/{fault}", text, holds=is_named)
            if count == sizes[-1]:
                yield from merging(path, location)
    if len(wall) > 1:
        yield Figure(
            key="growth/slope",
            text="Growth exponent of wall time",
            value=slope(wall),
            most=MOST_SLOPE,
        )


def _of_job(count: int, run: TreeMeasured) -> Iterator[Figure]:
    of = f"{count} ranks of {SIZE_MB:g} MB"
    key = f"growth/{count}"
    yield Figure(key=f"{key}/wall", text=f"{of}: wall time", value=run.seconds, unit="s")
    yield Figure(
        key=f"{key}/cpu", text=f"{of}: CPU time, all processes", value=run.cpu_seconds, unit="s"
    )
    yield Figure(
        key=f"{key}/peak",
        text=f"{of}: peak memory, all processes",
        value=run.peak_bytes / 1e6,
        unit="MB",
        most=MOST_PEAK_BYTES / 1e6,
    )
    yield Figure(
        key=f"{key}/own",
        text=f"{of}: peak memory of the client process",
        value=run.first_peak_bytes / 1e6,
        unit="MB",
    )


def merging(path: Path, location: Path) -> Iterator[Figure]:
    """Yield the cost of merging the summaries of all ranks."""
    command = of_module("benchmarks.scale_subjects", "merge", str(path), str(location))
    seconds = measured(command).seconds
    for phase, most in (("known", None), ("merged", MOST_MERGE_SECONDS), ("json", None)):
        text = {
            "known": "summaries read",
            "merged": "merging, cross-rank analyses and rules over the run",
            "json": "report written as JSON",
        }[phase]
        yield Figure(
            key=f"merge/{phase}",
            text=f"{path.name}: {text}",
            value=seconds[phase],
            unit="s",
            most=most,
        )


def large() -> Iterator[Figure]:
    """Yield the cost of a large trace compared with a small one, on one core."""
    cpu = {}
    for size in (SIZE_MB, LARGE_MB):
        path = made(LARGE_COUNT, size)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            run = advise(path, Path(folder, "advice.json"), "--jobs", "1")
        count = LARGE_COUNT - 2
        cpu[size] = (run.cpu_seconds - start_seconds()) / count
        yield Figure(
            key=f"file/{size:g}",
            text=f"CPU time per trace of {size:g} MB",
            value=cpu[size],
            unit="s",
        )
    a_megabyte = (cpu[LARGE_MB] - cpu[SIZE_MB]) / (LARGE_MB - SIZE_MB)
    yield Figure(
        key="file/megabyte", text="CPU time per MB of JSON", value=a_megabyte * 1000, unit="ms"
    )
    fixed = cpu[SIZE_MB] - SIZE_MB * a_megabyte
    yield Figure(
        key="file/fixed", text="CPU time per trace, fixed part", value=fixed * 1000, unit="ms"
    )


def start_seconds() -> float:
    """Return the CPU time of starting the program, s."""
    runs = [measured(of_module("stepscope", "--version")).cpu_seconds for _ in range(3)]
    return statistics.median(runs)


def second_look(count: int) -> Iterator[Figure]:
    """Yield the cost of a job whose summaries are stored, after its files were emptied."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path, location = Path(folder, "job"), Path(folder, "summaries")
        path.mkdir()
        for file in made(count, SIZE_MB).iterdir():
            os.link(file, path / file.name)
        total = sum(json_bytes(file) for file in path.iterdir())
        outputs = [Path(folder, f"{turn}.json") for turn in range(2)]
        first = advise(path, outputs[0], summaries=location)
        _hollow(path)
        second = advise(path, outputs[1], summaries=location)
        yield Figure(
            key="look/first", text=f"{count} ranks, first run", value=first.seconds, unit="s"
        )
        yield Figure(
            key="look/second", text=f"{count} ranks, second run", value=second.seconds, unit="s"
        )
        is_same = outputs[0].read_bytes() == outputs[1].read_bytes()
        yield condition(
            "look/same",
            "The second run gives the same report although the files are empty",
            holds=is_same,
        )
        stored = sum(file.stat().st_size for file in location.rglob("*") if file.is_file())
        yield Figure(
            key="look/share",
            text=f"Summaries, % of the JSON ({stored / 1e6:,.1f} of {total / 1e6:,.0f} MB)",
            value=100 * stored / total,
            unit="%",
            most=100 * MOST_SUMMARY_SHARE,
        )


def _hollow(folder: Path) -> None:
    """Replace files by empty ones with the same size and modification time."""
    for file in list(folder.iterdir()):
        state = file.stat()
        file.unlink()
        with file.open("wb") as stream:
            stream.truncate(state.st_size)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def json_bytes(file: Path) -> int:
    """Return the size of JSON in a gzip file by its last bytes; estimated for a truncated file."""
    size = int.from_bytes(file.read_bytes()[-4:], "little")
    return size if size < 100 * file.stat().st_size else 10 * file.stat().st_size


def slope(by_count: Mapping[int, float]) -> float:
    """Return the growth exponent: least squares over the logarithms."""
    x = [math.log(count) for count in by_count]
    y = [math.log(value) for value in by_count.values()]
    middle = sum(x) / len(x), sum(y) / len(y)
    over = sum((a - middle[0]) * (b - middle[1]) for a, b in zip(x, y, strict=True))
    return over / sum((a - middle[0]) ** 2 for a in x)
