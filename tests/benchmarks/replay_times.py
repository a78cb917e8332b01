"""Duration of the replay of a large trace: its graph, each kind of change, and a slider's answer.

`python -m benchmarks.replay_times`, in `tests`. Times are of the processor, the shortest of several
turns; the graph is built from frames and links that other analyses have computed.
"""

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console

from benchmarks import growth
from benchmarks.scaled import ROOT, scaled
from loading import fresh_trace_at
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.idle.device_waits import device_waits
from stepscope.analyses.idle.host_waits import host_waits
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import Change, ScaleAllHost, ScaleDevice, ScaleHost, Unblock
from stepscope.replay.graph import replay_graph
from stepscope.replay.simulation import replay_error, simulate
from stepscope.replay.what_if import WhatIf, predict

SIZE = "1600k"
SEED = min((ROOT / "sample_logs/synthetic_item_sync/fault").glob("*.json.gz"))
MOST_GRAPH_SECONDS = 0.4
MOST_SIMULATION_SECONDS = 0.06
MOST_ANSWER_SECONDS = 0.2
PERIOD_NS, PART_NS = 2_000_000, 700_000
"""A change of the host concerns so long a part of each period."""
console = Console(highlight=False, soft_wrap=True)


def seconds(work: Callable[[], object], turns: int) -> float:
    """Return the shortest processor time of some turns."""
    times = []
    for _ in range(turns):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def graph_seconds(trace: Trace, turns: int) -> tuple[float, float]:
    """Return the times to build the graph: the first time, and the shortest of further turns."""

    def build() -> None:
        for key in [key for key in trace.results if key.startswith("stepscope.replay.")]:
            del trace.results[key]
        replay_graph(trace)

    host_waits(trace)
    device_waits(trace)
    return seconds(build, 1), seconds(build, turns)


def changes(trace: Trace) -> dict[str, Change]:
    """Return changes that concern large parts of a trace."""
    rows = np.arange(len(trace.device_events))
    start = np.arange(0, int(replay_graph(trace).time_ns.max()), PERIOD_NS)
    return {
        "all device events": ScaleDevice(rows=rows, factor=0.5),
        "every second device event": ScaleDevice(rows=rows[::2], factor=0.5),
        f"{len(start):,} times of the host": ScaleHost(
            times=intervals.union(start, start + PART_NS), factor=0.5, chain=None
        ),
        "the whole host": ScaleAllHost(factor=0.5),
        "all waits": Unblock(calls=synchronizations(trace).calls),
    }


def measure(path: Path, turns: int) -> None:
    """Print the times of a trace."""
    trace = fresh_trace_at(path)
    console.print(f"{path.name}: {len(trace):,} events")
    first, again = graph_seconds(trace, turns)
    console.print(growth.line("graph, built first, seconds", first))
    console.print(growth.line("graph, built again, seconds", again, MOST_GRAPH_SECONDS))
    graph = replay_graph(trace)
    console.print(f"{len(graph.time_ns):,} points, {len(graph.source):,} edges")
    console.print(growth.line("error of typical delays", replay_error(trace)))
    unchanged = simulate(trace, [])
    for name, change in changes(trace).items():
        taken = seconds(functools.partial(unchanged.with_changes, [change]), turns)
        console.print(growth.line(f"simulation, {name}", taken, MOST_SIMULATION_SECONDS))
    answer = seconds(functools.partial(predict, trace, WhatIf(host=0.9, device=0.8)), turns)
    console.print(growth.line("answer of a slider, seconds", answer, MOST_ANSWER_SECONDS))


def main() -> None:
    """Measure a trace of the requested size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default=SIZE)
    parser.add_argument("--seed", type=Path, default=SEED)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    measure(scaled(options.size, options.seed, is_plain=True), options.turns)


if __name__ == "__main__":
    main()
