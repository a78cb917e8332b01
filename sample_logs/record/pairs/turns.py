"""A pair in turns: the job with its faults and without them, alternately, then recorded.

Both jobs stay in memory, and only one runs at any time. Turns alternate, and their order is
reversed every other time, so that a slow change of the machine affects both sides alike. The
first steps of a turn are dropped: workers have prefetched their batches during the other's turn.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import msgspec

from pairs.family import Pair
from pairs.result import FILE_NAME, PairResult
from pairs.side import RECORDED, WARMUP, Start, Turn

TURN_COUNT = 5
TURN_S = 0.4
FEWEST_STEPS = 8
"""A turn takes both at least."""
DROPPED = 4
WARM_S = 0.6
FIRST_STEPS = 4
UNRECORDED_S = 0.4
FEWEST_UNRECORDED = 12
"""Steps before the recorded ones, whose times the recorder writes into the trace."""
MOST_ATTEMPTS = 3
PAUSE_S = 0.05
"""Between turns, in which workers fill their queues."""
REPLY_S = 90.0
MOST_BYTES = 8_000_000
MS = 1e-6
TRACES = "*.pt.trace.json.gz"
QUIET = {"TORCH_CPP_LOG_LEVEL": "ERROR"}


class Side:
    """The processes of one side of a pair."""

    def __init__(self, connections: Sequence[Connection], log: Path) -> None:
        self._connections = connections
        self._log = log
        self.step_s = 0.0
        """Median step of the warm-up."""

    def begin(self, turn: Turn) -> None:
        """Start a turn, whose `times_ns` must be read before the next."""
        with suppress(OSError):  # the job ended: reading its times says so
            for connection in self._connections:
                connection.send(turn)

    def times_ns(self) -> tuple[float, ...]:
        """Wait for the end of a turn; returns the times of its steps: of several ranks, the means.

        Raises:
            RuntimeError: the job failed, or takes too long.
        """
        try:
            durations_ns = [self._reply(connection) for connection in self._connections]
        except (EOFError, OSError) as error:
            lines = self._log.read_text(errors="replace").strip().splitlines()[-5:]
            message = f"the job ended: {' | '.join(lines)}"
            raise RuntimeError(message) from error
        return tuple(map(statistics.fmean, zip(*durations_ns, strict=True)))

    def run(self, turn: Turn) -> tuple[float, ...]:
        """Runs a turn and returns the times of its steps."""
        self.begin(turn)
        return self.times_ns()

    def _reply(self, connection: Connection) -> tuple[int, ...]:
        if not connection.poll(REPLY_S):
            message = f"no answer after {REPLY_S:.0f} s"
            raise RuntimeError(message)
        durations_ns: tuple[int, ...] = connection.recv()
        return durations_ns

    def warm_up(self) -> None:
        """Run steps until they are warm, and estimate the time of one."""
        self.step_s = statistics.median(self.run(Turn(step_count=FIRST_STEPS))) * 1e-9
        steps_ns = self.run(Turn(step_count=max(FIRST_STEPS, self.steps_in(WARM_S))))
        self.step_s = statistics.median(steps_ns) * 1e-9

    def steps_in(self, seconds: float) -> int:
        """Returns the number of steps that take a time, rounded up."""
        return int(seconds / max(self.step_s, 1e-6)) + 1

    @property
    def counted_steps(self) -> int:
        """Number of steps of a turn that count."""
        return max(FEWEST_STEPS, self.steps_in(TURN_S))

    def mean_ms(self) -> float:
        """Runs a turn and returns its mean step."""
        steps_ns = self.run(Turn(step_count=DROPPED + self.counted_steps))
        time.sleep(PAUSE_S)
        return statistics.fmean(steps_ns[DROPPED:]) * MS

    def record(self, folder: Path) -> None:
        """Records the next steps, after some whose times are measured without the profiler.

        Raises:
            RuntimeError: no trace was written, or too large a one.
        """
        wait = max(FEWEST_UNRECORDED, self.steps_in(UNRECORDED_S))
        self.run(Turn(step_count=wait + WARMUP + RECORDED, folder=folder))
        sizes = [path.stat().st_size for path in folder.glob(TRACES)]
        if len(sizes) != len(self._connections) or max(sizes) > MOST_BYTES:
            message = f"{folder}: {len(sizes)} traces, of {max(sizes, default=0):,} bytes"
            raise RuntimeError(message)


@contextmanager
def running_side(pair: Pair, faults: frozenset[str], log: Path) -> Iterator[Side]:
    """Starts the processes of a side, and ends them."""
    processes: list[subprocess.Popen[bytes]] = []
    connections = []
    with tempfile.TemporaryDirectory() as folder, log.open("wb") as output:
        try:
            for rank in range(pair.family.ranks):
                ours, theirs = Pipe()
                start = Start(
                    family=pair.family.name,
                    faults=tuple(sorted(faults)),
                    rank=rank,
                    meeting=f"{folder}/meeting",
                    connection=theirs.fileno(),
                )
                command = [sys.executable, "-m", "pairs.side", msgspec.json.encode(start).decode()]
                process = subprocess.Popen(  # noqa: S603 (a script of this folder)
                    command,
                    env=os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(sys.path)},
                    pass_fds=(theirs.fileno(),),
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
                theirs.close()
                processes.append(process)
                connections.append(ours)
            yield Side(connections, log)
        finally:
            for process in processes:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def alternate(sides: tuple[Side, Side]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Returns the mean steps of both sides' turns, in milliseconds."""
    means_ms: tuple[list[float], list[float]] = ([], [])
    for turn in range(TURN_COUNT):
        for index in (0, 1) if turn % 2 == 0 else (1, 0):
            means_ms[index].append(sides[index].mean_ms())
    return tuple(means_ms[0]), tuple(means_ms[1])


def measure(pair: Pair, sides: tuple[Side, Side]) -> PairResult:
    """Runs the turns of a pair, again if they are disturbed; returns the steadiest series."""
    for side in sides:  # both make their data and models
        side.begin(Turn(step_count=FIRST_STEPS))
    for side in sides:
        side.times_ns()
    for side in sides:
        side.warm_up()
    results: list[PairResult] = []
    while not results or (results[-1].is_disturbed and len(results) < MOST_ATTEMPTS):
        results.append(result_of(pair, sides, alternate(sides)))
    steadiest = min(results, key=lambda result: result.error_ms)
    return msgspec.structs.replace(steadiest, attempt_count=len(results))


def result_of(
    pair: Pair,
    sides: tuple[Side, Side],
    means_ms: tuple[tuple[float, ...], tuple[float, ...]],
) -> PairResult:
    """Returns the result of a series of turns."""
    family = pair.family
    faults = [family.faults[name] for name in pair.faults]
    before, after = (family.samples(faults) for faults in pair.sides)
    return PairResult(
        family=family.name,
        faults=pair.faults,
        behind=tuple(sorted(pair.behind)),
        kinds=tuple(fault.kind for fault in faults),
        rules=tuple(dict.fromkeys(rule for fault in faults for rule in fault.rules)),
        samples=(1, 1) if before == after else (before, after),
        fault_ms=means_ms[0],
        fix_ms=means_ms[1],
        turn_step_counts=(sides[0].counted_steps, sides[1].counted_steps),
        attempt_count=1,
        torch=version("torch"),
        processor=processor(),
        core_count=os.cpu_count() or 0,
        ranks=family.ranks,
        threads=family.threads,
    )


def processor() -> str:
    """Returns the processor's name, as Linux reports it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def record_pair(pair: Pair, folder: Path) -> PairResult:
    """Measures and records a pair into its folder, whose earlier traces are replaced.

    Raises:
        RuntimeError: a side failed.
    """
    runs = [folder / name for name in ("fault", "fix")]
    for run in runs:
        run.mkdir(parents=True, exist_ok=True)
        for earlier in run.iterdir():
            earlier.unlink()
    (folder / FILE_NAME).unlink(missing_ok=True)
    fault, fix = pair.sides
    with (
        running_side(pair, fault, folder / "fault.log") as before,
        running_side(pair, fix, folder / "fix.log") as after,
    ):
        result = measure(pair, (before, after))
        for side, run in zip((before, after), runs, strict=True):
            side.record(run)
    (folder / FILE_NAME).write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    return result
