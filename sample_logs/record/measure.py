"""Prints measurements of the traces in a folder as a Markdown table: `python measure.py [DIR]`.

The README's numbers come from this script. It does not use stepscope, so it checks it.
"""

import gzip
import json
import re
import statistics
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

SAMPLE_LOGS = Path(__file__).resolve().parent.parent
STEP = re.compile(r"ProfilerStep#\d+")

Event = dict[str, Any]


def complete_events(trace: Path) -> list[Event]:
    """Reads the events of one trace that have a duration."""
    with gzip.open(trace, "rt") as stream:
        events: list[Event] = json.load(stream)["traceEvents"]
    return [event for event in events if event.get("ph") == "X"]


def steps_ms(events: list[Event]) -> list[float]:
    """Returns the duration of each step on the host."""
    return [
        event["dur"] / 1000
        for event in events
        if event.get("cat") == "user_annotation" and STEP.fullmatch(event["name"])
    ]


def device_periods_ms(events: list[Event]) -> list[float]:
    """Returns the times between the starts of consecutive steps on the device."""
    starts = sorted(
        event["ts"]
        for event in events
        if event.get("cat") == "gpu_user_annotation" and STEP.fullmatch(event["name"])
    )
    return [(after - before) / 1000 for before, after in pairwise(starts)]


def outside_ms(events: list[Event], part: str) -> list[float]:
    """Returns the time of each step outside of annotations whose name begins with `part`."""
    labels = [event for event in events if event.get("cat") == "user_annotation"]
    steps = [event for event in labels if STEP.fullmatch(event["name"])]
    inside = [event for event in labels if event["name"].startswith(part)]
    return [
        (step["dur"] - sum(label["dur"] for label in inside if _begins_in(label, step))) / 1000
        for step in steps
    ]


def _begins_in(event: Event, step: Event) -> bool:
    return bool(step["ts"] <= event["ts"] < step["ts"] + step["dur"])


def share_of_steps(events: list[Event], part: str) -> float:
    """Returns the fraction of the steps' time in annotations whose name contains `part`."""
    inside: float = sum(
        event["dur"]
        for event in events
        if event.get("cat") == "user_annotation" and part in event["name"]
    )
    return inside / 1000 / max(sum(steps_ms(events)), 1e-9)


def operator_count(events: list[Event], name: str) -> int:
    """Counts the calls of one operator."""
    return sum(event["name"] == name and event.get("cat") == "cpu_op" for event in events)


def double_share(events: list[Event]) -> float:
    """Returns the fraction of convolutions and matrix products whose first input is float64."""
    heavy = [
        event["args"].get("Input type", [""])[0]
        for event in events
        if event["name"] in ("aten::convolution", "aten::convolution_backward", "aten::addmm")
    ]
    return sum(dtype == "double" for dtype in heavy) / len(heavy) if heavy else 0.0


def notes(events: list[Event]) -> str:
    """Returns the characteristics of a trace, as counted in its events."""
    shares = {
        part: share_of_steps(events, part)
        for part in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter", "masking")
    }
    texts = [f"{part} {share:.1%} of the steps" for part, share in shares.items() if share]
    counts = {
        name: operator_count(events, name)
        for name in ("aten::item", "aten::_local_scalar_dense", "aten::nonzero")
    }
    texts += [f"{count} {name}" for name, count in counts.items() if count]
    if doubles := double_share(events):
        texts.append(f"{doubles:.0%} of convolutions and addmm in float64")
    waits = [event["dur"] / 1000 for event in events if event["name"] == "gloo:all_reduce"]
    if waits:
        texts.append(f"gloo:all_reduce {sum(waits) / len(steps_ms(events)):.1f} ms per step")
    return "; ".join(texts)


def row(trace: Path, root: Path) -> str:
    """Returns the row of one trace: size, events, and the steps' median and range.

    Of a trace with a device, the steps' periods there: a host that runs ahead has shorter steps.
    """
    events = complete_events(trace)
    steps = steps_ms(events)
    times = device_periods_ms(events) or steps
    span = (
        f"{statistics.median(times):.2f} ({min(times):.2f} to {max(times):.2f})" if times else "–"
    )
    cells = (
        f"`{trace.parent.relative_to(root)}`",
        trace.name.split(".")[0],
        f"{trace.stat().st_size / 1000:.0f}",
        f"{len(events)}",
        f"{len(steps)}",
        span,
        notes(events),
    )
    return f"| {' | '.join(cells)} |"


def write(line: str) -> None:
    """Writes a line to standard output."""
    sys.stdout.write(f"{line}\n")


def main(root: Path) -> None:
    """Prints a row for every recorded trace below `root`."""
    write("| run | worker | kB | events | steps | step, ms: median (range) | in the trace |")
    write("| --- | --- | --: | --: | --: | --: | --- |")
    for trace in sorted(root.rglob("*.pt.trace.json.gz")):
        if not trace.relative_to(root).parts[0].startswith("synthetic_"):
            write(row(trace, root))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE_LOGS)
