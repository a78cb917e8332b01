"""One process of a side: the job's loop, which waits inside `steps.step()` between its turns.

The parent sends numbers of steps, so that all ranks of a side pause after the same step. It ends
the process by a signal.
"""

import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import torch
from torch import distributed
from torch.profiler import ProfilerActivity, profile, schedule

from pairs.family import Family, load_family
from stepscope import trace_handler

WARMUP = 2
RECORDED = 6


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a process, as its argument."""

    family: str
    faults: tuple[str, ...]
    rank: int
    meeting: str
    """File by which the ranks connect."""
    connection: int
    """File descriptor to the parent."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The next steps of a side."""

    step_count: int
    folder: Path | None = None
    """Folder of the trace of the last `RECORDED` steps; None: without a profiler."""


class TurnSteps:
    """Steps that run in turns, with their times."""

    remain = True

    def __init__(self, connection: Connection, worker: str, *, has_stacks: bool) -> None:
        self._connection = connection
        self._worker = worker
        self._has_stacks = has_stacks
        self._profiler: profile | None = None
        self._durations_ns: list[int] = []
        self._count = 0
        self._began_ns = 0

    def begin_turn(self) -> None:
        """Wait for the parent's next turn."""
        turn: Turn = self._connection.recv()
        self._durations_ns = []
        self._count = turn.step_count
        if turn.folder is not None:
            self._profiler = self._started(turn.folder, turn.step_count)
        self._began_ns = time.perf_counter_ns()

    def step(self) -> None:
        """End the step; after the turn's last, report the times and wait."""
        self._durations_ns.append(time.perf_counter_ns() - self._began_ns)
        if self._profiler is not None:
            self._profiler.step()
        if len(self._durations_ns) < self._count:
            self._began_ns = time.perf_counter_ns()
            return
        if self._profiler is not None:
            self._profiler.stop()
            self._profiler = None
        self._connection.send(tuple(self._durations_ns))
        self.begin_turn()

    def _started(self, folder: Path, step_count: int) -> profile:
        profiler = profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(
                wait=step_count - WARMUP - RECORDED, warmup=WARMUP, active=RECORDED, repeat=1
            ),
            on_trace_ready=trace_handler(folder, worker_name=self._worker, use_gzip=True),
            record_shapes=True,
            with_stack=self._has_stacks,
        )
        profiler.start()
        return profiler


def join_ranks(family: Family, start: Start) -> str:
    """Connects the ranks, if there are several; returns the worker's name."""
    if family.ranks == 1:
        return "trainer"
    distributed.init_process_group(
        "gloo", init_method=f"file://{start.meeting}", rank=start.rank, world_size=family.ranks
    )
    return f"rank{start.rank}"


def main(argument: str) -> None:
    """Runs the job of a side."""
    start = msgspec.json.decode(argument, type=Start)
    family = load_family(start.family)
    torch.set_num_threads(family.threads)
    worker = join_ranks(family, start)
    steps = TurnSteps(Connection(start.connection), worker, has_stacks=family.has_stacks)
    steps.begin_turn()
    family.train(frozenset(start.faults), steps)


if __name__ == "__main__":
    main(sys.argv[1])
