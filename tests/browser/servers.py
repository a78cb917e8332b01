"""Real servers for the browser to open, as subprocesses on free loopback ports."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from stepscope.api.messages import Overview, Runs, Table
from stepscope.base.report import RunReport
from waiting import LONG_SECONDS, until

READ_SECONDS = 600
"""For all samples, beside others that are busy."""
END_SECONDS = 5
TURN_SECONDS, REST_SECONDS = 0.02, 0.3
"""How long a reader is at work, and then is not, where a server reads in slow motion."""
ADDRESS = re.compile(r"http://[^/\s]+:(\d+)/")
Message = TypeVar("Message", Runs, RunReport, Overview, Table)


@dataclass(frozen=True)
class Server:
    """One that runs. `page` is what the user opens: TensorBoard's root, or our own document."""

    page: str
    api: str
    log: Path
    at_full_speed: Callable[[], None]
    """End the slow motion in which it reads, if it does."""

    def get(self, path: str, kind: type[Message]) -> Message:
        """Ask the API as the page does."""
        with urllib.request.urlopen(f"{self.api}{path}", timeout=LONG_SECONDS) as response:  # noqa: S310
            return msgspec.json.decode(response.read(), type=kind)

    def cancel(self, run: str) -> None:
        """Cancel the reading of a run's files as the page does."""
        headers = {"X-Stepscope": "test"}
        [found] = [each for each in self.get("runs", Runs).runs if each.name == run]
        address = f"{self.api}runs/{found.id}/cancel"
        request = urllib.request.Request(address, method="POST", headers=headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=LONG_SECONDS) as response:  # noqa: S310
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
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            answer = None
        if answer is not None and is_done(answer):
            return answer
        time.sleep(0.2)
    msg = f"no such answer within {limit} s"
    raise TimeoutError(msg)


PEER = """
from tensorboard.plugins import base_plugin
class TorchProfilerPlugin(base_plugin.TBPlugin):
    plugin_name = "pytorch_profiler"
    def is_active(self): return False
    def get_plugin_apps(self): return {}
"""


def idle_peer(folder: Path) -> dict[str, str]:
    """Return variables by which torch-tb-profiler reads nothing: it starts a process for each run.

    Beside dozens of runs nobody else is given the processor for minutes.
    """
    package = folder / "torch_tb_profiler"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "plugin.py").write_text(PEER)
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    }


@contextmanager
def _running(
    command: list[str], log: Path, variables: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(variables or {})},
            # torch-tb-profiler takes `name:path` of --logdir_spec for a path below the working
            # folder, and reads every trace that it finds there.
            cwd=log.parent,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            _end(process)


def _root(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """Return the root of a server's addresses, as soon as it says which port it was given."""

    def said() -> str:
        return log.read_text(errors="replace")

    until(lambda: ADDRESS.search(said()) or process.poll() is not None)
    found = ADDRESS.search(said())
    assert found, said()
    return f"http://localhost:{found[1]}"


@contextmanager
def _slowed(process: "subprocess.Popen[bytes]", *, is_slow: bool) -> Iterator[Callable[[], None]]:
    """Let what a server reads with work now and then only, so that reading can be watched.

    Yields what ends that.
    """
    is_over = threading.Event()

    def slow() -> None:
        while not is_over.wait(TURN_SECONDS):
            stopped = _children(process.pid)
            _signal(stopped, signal.SIGSTOP)
            is_over.wait(REST_SECONDS)
            _signal(stopped, signal.SIGCONT)

    slowing = threading.Thread(target=slow)
    if is_slow:
        slowing.start()
    try:
        yield is_over.set
    finally:
        is_over.set()
        if is_slow:
            slowing.join()


def _children(process_id: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):  # it ends, or a thread of it, in the meantime
        for thread in Path(f"/proc/{process_id}/task").iterdir():
            found += map(int, (thread / "children").read_text().split())
    return found


def _signal(process_ids: list[int], number: signal.Signals) -> None:
    for process_id in process_ids:
        with suppress(ProcessLookupError):
            os.kill(process_id, number)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a server as a user does; torch-tb-profiler's readers would go on for minutes."""
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def tensorboard(
    log: Path,
    *flags: str,
    prefix: str = "",
    has_busy_peer: bool = False,
    is_slow: bool = False,
) -> Iterator[Server]:
    """Start TensorBoard as a user does; torch-tb-profiler beside us may do what it does."""
    variables = None if has_busy_peer else idle_peer(log.parent / "peer")
    command = [sys.executable, "-m", "tensorboard.main", "--port", "0", *flags]
    if prefix:
        command += ["--path_prefix", prefix]
    page, api = f"{prefix}/", f"{prefix}/data/plugin/stepscope/api/"
    with (
        _running(command, log, variables) as process,
        _slowed(process, is_slow=is_slow) as at_full_speed,
    ):
        root = _root(process, log)
        yield _scanned(Server(root + page, root + api, log, at_full_speed))


@contextmanager
def stand_alone(log: Path, folder: Path, *options: str, is_slow: bool = False) -> Iterator[Server]:
    """Start `stepscope serve`."""
    command = [sys.executable, "-m", "stepscope", "serve", str(folder), "--port", "0", *options]
    with _running(command, log) as process, _slowed(process, is_slow=is_slow) as at_full_speed:
        root = _root(process, log)
        yield _scanned(Server(f"{root}/index.html", f"{root}/api/", log, at_full_speed))


def _scanned(server: Server) -> Server:
    """Wait until a server knows its runs."""
    waited(lambda: server.get("runs", Runs), lambda runs: not runs.scanning, LONG_SECONDS)
    return server
