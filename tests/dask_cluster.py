"""A real Dask cluster of processes on this machine, for tests: started, watched, killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from distributed import Client

from waiting import LONG_SECONDS, until

ROOT = Path(__file__).resolve().parents[1]
DASK = (sys.executable, "-m", "dask")
CONFIG = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "1h",
}
"""A file is given up once two workers died of it; a busy machine is nothing to log."""


@dataclass(kw_only=True)
class LocalCluster:
    """A scheduler, and workers of one thread each."""

    folder: Path
    address: str = ""
    scheduler: "subprocess.Popen[bytes] | None" = None
    workers: "list[subprocess.Popen[bytes]]" = field(default_factory=list)

    def start_scheduler(self) -> None:
        """Start it on a free port, and wait until it listens."""
        file = self.folder / "scheduler.json"
        self.scheduler = self._started(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(file),
        )  # fmt: skip
        until(file.exists)
        self.address = f"file://{file}"

    def start_worker(
        self,
        *options: str,
        environment: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
    ) -> "subprocess.Popen[bytes]":
        """Start one more; who waits for it asks the scheduler."""
        worker = self._started(
            "worker", "--scheduler-file", str(self.folder / "scheduler.json"), "--nworkers", "1",
            "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder), *options,
            environment=environment or {}, before=before,
        )  # fmt: skip
        self.workers.append(worker)
        return worker

    def process_ids(self) -> set[int]:
        """Return the processes of the workers that are there now."""
        with self._client() as client:
            return set(client.run(os.getpid).values())

    def has_orders(self) -> bool:
        """Tell whether the scheduler has anything for its workers to do."""
        with self._client() as client:
            return any(client.processing().values())

    def _client(self) -> Client:
        file = str(self.folder / "scheduler.json")
        return Client(scheduler_file=file, timeout=LONG_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call]

    def end(self) -> None:
        """Kill what there is, with what it has started."""
        for process in (*self.workers, self.scheduler):
            if process is not None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _started(
        self,
        *command: str,
        environment: Mapping[str, str] | None = None,
        before: tuple[str, ...] = (),
    ) -> "subprocess.Popen[bytes]":
        places = [str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
        path = {"PYTHONPATH": os.pathsep.join(filter(None, places))}
        with (self.folder / f"{command[0]}.log").open("ab") as log:
            return subprocess.Popen(
                (*before, *DASK, *command),
                env={**os.environ, **CONFIG, **path, **(environment or {})},
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


@contextmanager
def local_cluster(folder: Path, *workers: tuple[str, ...]) -> Iterator[LocalCluster]:
    """Start a scheduler and workers with these options; they are gone after the block."""
    cluster = LocalCluster(folder=folder)
    try:
        cluster.start_scheduler()
        for options in workers:
            cluster.start_worker(*options)
        yield cluster
    finally:
        cluster.end()
