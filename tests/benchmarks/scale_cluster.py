"""The same job on this machine's processes and on a Dask cluster: a scheduler and real workers.

Everything runs on this machine, so the scheduler and who asks share its cores with the workers.
"""

import operator
import os
import random
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.job import job as made
from benchmarks.process_tree import descendants, pss_bytes
from benchmarks.scale_figures import Figure, told
from benchmarks.scale_runs import SIZE_MB, advise
from benchmarks.scaled import FOLDER
from dask_cluster import LocalCluster, local_cluster

RANKS, KILLED_RANKS = 128, 64
KILLS = 10
TRIVIAL_TASKS = 2000
MOST_OVERHEAD_MS, LEAST_SPEED_UP = 5.0, 1.6
WORKER = ("--memory-limit", "0")


def compared(most_ranks: int) -> Iterator[Figure]:
    """Yield what one and two workers take beside as many of our own processes."""
    ranks = min(RANKS, most_ranks)
    path = made(ranks, SIZE_MB)
    count = sum(1 for _ in path.iterdir())
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        outputs, wall = Path(folder), {}
        for jobs in (1, 2):
            wall["pool", jobs] = advise(
                path, outputs / f"pool-{jobs}.json", "--jobs", str(jobs)
            ).seconds
        for workers in (1, 2):
            with _cluster(workers) as cluster:
                for turn in range(2):  # the first makes the workers import what they need
                    output = outputs / f"dask-{workers}-{turn}.json"
                    found = advise(path, output, "--scheduler", cluster.address)
                    wall["dask", workers] = found.seconds
                if workers == 2:
                    yield from trivial(cluster)
        texts = {output.read_bytes() for output in outputs.glob("*.json")}
        yield told(
            "dask/same",
            f"{ranks} ranks: the same JSON on 1 and 2 processes and on 1 and 2 workers",
            holds=len(texts) == 1,
        )
    for (what, workers), seconds in wall.items():
        where = "our own processes" if what == "pool" else "Dask workers"
        text = f"{ranks} ranks of {SIZE_MB:g} MB: wall, {workers} of {where}"
        yield Figure(key=f"dask/{what}{workers}", text=text, value=seconds, unit="s")
    yield Figure(
        key="dask/speed-up",
        text="Two Dask workers over one",
        value=wall["dask", 1] / wall["dask", 2],
        least=LEAST_SPEED_UP,
    )
    yield Figure(
        key="dask/pool-speed-up",
        text="Two of our own processes over one",
        value=wall["pool", 1] / wall["pool", 2],
    )
    yield Figure(
        key="dask/overhead",
        text="Dask over our own processes, a file, two of each",
        value=1000 * (wall["dask", 2] - wall["pool", 2]) / count,
        unit="ms",
        most=MOST_OVERHEAD_MS,
    )


def trivial(cluster: LocalCluster) -> Iterator[Figure]:
    """Yield what Dask takes for a task that does nothing."""
    from distributed import Client  # slow to import

    seconds = []
    file = cluster.address.removeprefix("file://")
    with Client(scheduler_file=file) as client:  # type: ignore[no-untyped-call]
        for turn in range(4):
            start = time.perf_counter()
            client.gather(client.map(operator.pos, range(TRIVIAL_TASKS), key=f"nothing-{turn}"))
            seconds.append(time.perf_counter() - start)
    yield Figure(
        key="dask/trivial",
        text="Dask, a task that does nothing",
        value=1000 * statistics.median(seconds[1:]) / TRIVIAL_TASKS,
        unit="ms",
        most=MOST_OVERHEAD_MS,
    )


def killed(most_ranks: int) -> Iterator[Figure]:
    """Yield in how many of ten runs all was answered though a worker was killed in the middle."""
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
        text="Runs that answered all the same, byte for byte",
        value=complete,
        least=KILLS,
    )


def _kill_one(cluster: LocalCluster, chance: random.Random) -> bool:
    """Kill what works under one of the nannies, which starts another."""
    nanny = chance.choice(cluster.workers).pid
    own = max(descendants(nanny), key=pss_bytes, default=None)
    if own is None:
        return False
    with suppress(ProcessLookupError):
        os.kill(own, signal.SIGKILL)
        return True
    return False


@contextmanager
def _cluster(workers: int) -> Iterator[LocalCluster]:
    with (
        tempfile.TemporaryDirectory(dir=FOLDER, ignore_cleanup_errors=True) as folder,
        local_cluster(Path(folder), *[WORKER] * workers) as cluster,
    ):
        yield cluster
