"""One job on local processes and on a Dask cluster with a scheduler and real workers.

Everything runs on this machine, so the scheduler and the client share its cores with the workers.
"""

import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from benchmarks.job import job as made
from benchmarks.process_tree import descendants, pss_bytes
from benchmarks.scale_figures import Figure, condition
from benchmarks.scale_runs import SIZE_MB, advise
from benchmarks.scaled import FOLDER
from dask_cluster import LocalCluster, local_cluster
from logs import write_run
from stepscope.base import formatting
from stepscope.readers.batch import read_all
from stepscope.readers.cluster import Cluster
from stepscope.readers.pool import InProcessReader
from stepscope.readers.requests import ReadRequest
from stepscope.storage import discover

RANKS = KILLED_RANKS = 64
KILLS = 10
TURNS = 3
SMALL_FILES = 400
MOST_OVERHEAD_MS, LEAST_SPEED_UP = 5.0, 1.6
WORKER = ("--memory-limit", "0")
PROCESSES = {
    "pool": ("local process", "local processes"),
    "dask": ("Dask worker", "Dask workers"),
}


def compared(most_ranks: int) -> Iterator[Figure]:
    """Yield the times of one and two workers, compared with as many local processes."""
    ranks = min(RANKS, most_ranks)
    path = made(ranks, SIZE_MB)
    count = sum(1 for _ in path.iterdir())
    wall: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, _cluster(1) as one, _cluster(2) as two:
        ways = {
            ("pool", 1): ("--jobs", "1"),
            ("pool", 2): ("--jobs", "2"),
            ("dask", 1): ("--scheduler", one.address),
            ("dask", 2): ("--scheduler", two.address),
        }
        for turn in range(TURNS + 1):  # in the first, the workers import their modules
            for way, options in ways.items():
                output = Path(folder, f"{way[0]}-{way[1]}-{turn}.json")
                wall.setdefault(way, []).append(advise(path, output, *options).seconds)
        texts = {output.read_bytes() for output in Path(folder).glob("*.json")}
        yield condition(
            "dask/same",
            f"{ranks} ranks: the same JSON on 1 and 2 processes and on 1 and 2 workers",
            holds=len(texts) == 1,
        )
        yield from handed_out(one)
    usual = {way: statistics.median(seconds[1:]) for way, seconds in wall.items()}
    for (kind, workers), seconds in usual.items():
        singular, plural = PROCESSES[kind]
        who = formatting.count(workers, singular, plural)
        text = f"{ranks} ranks of {SIZE_MB:g} MB: wall time, {who}, median of {TURNS}"
        yield Figure(key=f"dask/{kind}{workers}", text=text, value=seconds, unit="s")
    yield Figure(
        key="dask/speed-up",
        text="Speed-up of two Dask workers over one",
        value=usual["dask", 1] / usual["dask", 2],
        least=LEAST_SPEED_UP,
    )
    yield Figure(
        key="dask/pool-speed-up",
        text="Speed-up of two local processes over one",
        value=usual["pool", 1] / usual["pool", 2],
    )
    yield Figure(
        key="dask/overhead",
        text="Overhead per file of two Dask workers over two local processes",
        value=1000 * (usual["dask", 2] - usual["pool", 2]) / count,
        unit="ms",
    )


def handed_out(cluster: LocalCluster) -> Iterator[Figure]:
    """Yield the overhead per file of a worker with minimal work, over the same work locally."""
    with (
        tempfile.TemporaryDirectory(dir=FOLDER) as folder,
        closing(Cluster(cluster.address)) as reader,
    ):
        write_run(Path(folder, "run"), *(f"w{number}" for number in range(SMALL_FILES)))
        requests = [
            ReadRequest(
                file=file, stamp=file.listed, steps=(("analysing", len),), returns_trace=False
            )
            for file in discover.in_folder(folder)
        ]
        remote = _median_seconds(lambda: reader.read_all(requests))
        local = _median_seconds(lambda: read_all(requests, InProcessReader(), jobs=1))
    yield Figure(
        key="dask/trivial",
        text="Overhead per file of one worker over reading locally",
        value=1000 * (remote - local) / SMALL_FILES,
        unit="ms",
        most=MOST_OVERHEAD_MS,
    )


def _median_seconds(work: Callable[[], object]) -> float:
    """Return the median time of work, after one warm-up, s."""
    seconds = []
    for _ in range(TURNS + 1):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def killed(most_ranks: int) -> Iterator[Figure]:
    """Yield the number of runs, out of ten, with a complete report despite a killed worker."""
    path = made(min(KILLED_RANKS, most_ranks), SIZE_MB)
    chance = random.Random(0)  # noqa: S311 (the same moments each time)
    complete = 0
    was_killed: list[bool] = []
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder, _cluster(2) as cluster:
        whole, output = Path(folder, "whole.json"), Path(folder, "advice.json")
        advise(path, whole, "--scheduler", cluster.address)
        usual = advise(path, whole, "--scheduler", cluster.address).seconds
        for _ in range(KILLS):
            after = chance.uniform(0.15, 0.85) * usual
            timer = threading.Timer(after, lambda: was_killed.append(_kill_one(cluster, chance)))
            timer.start()
            advise(path, output, "--scheduler", cluster.address)
            timer.join()
            complete += output.read_bytes() == whole.read_bytes()
    done = sum(was_killed)
    yield Figure(key="kill/done", text="Workers killed with kill -9", value=done, least=KILLS)
    yield Figure(
        key="kill/complete",
        text="Runs with an identical report, byte for byte",
        value=complete,
        least=KILLS,
    )


def _kill_one(cluster: LocalCluster, chance: random.Random) -> bool:
    """Kill the worker of one of the nannies, which starts another."""
    nanny = chance.choice(cluster.workers).pid
    worker = max(descendants(nanny), key=pss_bytes, default=None)
    if worker is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
        return True
    return False


@contextmanager
def _cluster(workers: int) -> Iterator[LocalCluster]:
    with (
        tempfile.TemporaryDirectory(dir=FOLDER, ignore_cleanup_errors=True) as folder,
        local_cluster(Path(folder), *[WORKER] * workers) as cluster,
    ):
        yield cluster
