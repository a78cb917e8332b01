"""Real servers for the browser to open, as subprocesses on free loopback ports."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from stepscope.api.messages import Overview, Runs, Table
from stepscope.report import RunReport

START_SECONDS = 60
READ_SECONDS = 120
END_SECONDS = 5
Message = TypeVar("Message", Runs, RunReport, Overview, Table)


@dataclass(frozen=True, kw_only=True)
class Server:
    """One that runs. `page` is what the user opens: TensorBoard's root, or our own document."""

    page: str
    api: str
    log: Path

    def get(self, path: str, kind: type[Message]) -> Message:
        """Ask the API as the page does."""
        with urllib.request.urlopen(f"{self.api}{path}", timeout=30) as response:  # noqa: S310
            return msgspec.json.decode(response.read(), type=kind)

    def cancel(self, run: str) -> None:
        """Cancel the reading of a run's files as the page does."""
        headers = {"X-Stepscope": "test"}
        [found] = [each for each in self.get("runs", Runs).runs if each.name == run]
        address = f"{self.api}runs/{found.id}/cancel"
        request = urllib.request.Request(address, method="POST", headers=headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            assert response.status == 200

    def runs(self) -> Runs:
        """Wait until every file is read."""
        return waited(
            lambda: self.get("runs", Runs),
            lambda runs: not (runs.loading or runs.scanning),
            READ_SECONDS,
        )

    def complaints(self) -> list[str]:
        """Return what the server's log says against our pages."""
        lines = self.log.read_text(errors="replace").splitlines()
        bad = re.compile(r"will become an error|security_validator|Content-Security|stepscope\.")
        return [line for line in lines if bad.search(line)]


def waited(ask: Callable[[], Message], is_done: Callable[[Message], bool], limit: int) -> Message:
    """Return an answer once it is what is waited for."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        try:
            answer = ask()
        except (urllib.error.URLError, ConnectionError):
            answer = None
        if answer is not None and is_done(answer):
            return answer
        time.sleep(0.2)
    msg = f"no such answer within {limit} s"
    raise TimeoutError(msg)


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[None]:
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            # torch-tb-profiler takes `name:path` of --logdir_spec for a path below the working
            # folder, and reads every trace that it finds there.
            cwd=log.parent,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield
        finally:
            _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a server as a user does; torch-tb-profiler's readers would go on for minutes."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def tensorboard(log: Path, *flags: str, prefix: str = "") -> Iterator[Server]:
    """Start TensorBoard as a user does; torch-tb-profiler is installed beside us."""
    port = free_port()
    command = [sys.executable, "-m", "tensorboard.main", "--port", str(port), *flags]
    if prefix:
        command += ["--path_prefix", prefix]
    root = f"http://localhost:{port}{prefix}"
    server = Server(page=f"{root}/", api=f"{root}/data/plugin/stepscope/api/", log=log)
    with _running(command, log):
        waited(lambda: server.get("runs", Runs), lambda runs: not runs.scanning, START_SECONDS)
        yield server


@contextmanager
def stand_alone(log: Path, folder: Path, *options: str) -> Iterator[Server]:
    """Start `stepscope serve`."""
    port = free_port()
    command = [sys.executable, "-m", "stepscope", "serve", str(folder), "--port", str(port)]
    command += options
    root = f"http://localhost:{port}/"
    server = Server(page=f"{root}index.html", api=f"{root}api/", log=log)
    with _running(command, log):
        waited(lambda: server.get("runs", Runs), lambda runs: not runs.scanning, START_SECONDS)
        yield server
