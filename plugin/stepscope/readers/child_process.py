"""A reader process: started, given requests, ended."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from io import RawIOBase
from typing import Any, cast

from stepscope.readers import pipe_messages
from stepscope.readers.requests import ReadRequest

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from importlib import import_module; import_module(sys.argv[2]).main()"
)
"""The process uses this process's `sys.path`, including changes to it."""
SAFE_PATH = "-P"
"""Excludes the user's current folder, which may contain a `json.py`, from `sys.path`."""
PLAIN_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""pyarrow's default pool would reserve 1 GiB, which counts against the limit."""
PIPE_BYTES = 1 << 20
"""Pipe capacity, if it can be set: a quarter of the default's transfer time."""


def program(module: str) -> list[str]:
    """Return the command that calls `main` of a module in another process.

    Raises:
        OSError: There is no interpreter to start.
    """
    if not sys.executable or getattr(sys, "frozen", False):
        msg = "there is no Python interpreter to start"
        raise OSError(msg)
    path = json.dumps([str(entry) for entry in sys.path])
    return [sys.executable, SAFE_PATH, "-c", START, path, module]


class GoneError(Exception):
    """The process ended during a request; `status` is that of `subprocess.Popen`."""

    def __init__(self, status: int) -> None:
        super().__init__(_describe(status))
        self.status = status


class ReaderProcess:
    """One process, which reads one file after another."""

    def __init__(self) -> None:
        """Start the process.

        Raises:
            OSError: The system cannot start processes.
        """
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            program("stepscope.readers.child"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=os.environ | PLAIN_MEMORY,
            # Ctrl-C reaches only this process, which ends the other
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self._input = cast("RawIOBase", self._process.stdin)
        self._output = cast("RawIOBase", self._process.stdout)
        _widen(self._output)

    @property
    def id(self) -> int:
        """The process id."""
        return self._process.pid

    def messages(self, request: ReadRequest) -> Iterator[Any]:
        """Send a request; yield the process's messages, without end.

        Raises:
            GoneError: The process has ended.
        """
        try:
            pipe_messages.send(self._input, request)
            while True:
                yield pipe_messages.receive(self._output)
        except (EOFError, OSError) as error:
            self.kill()  # otherwise `end` might block forever
            raise GoneError(self.end()) from error

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()

    def end(self) -> int:
        """Close its input, wait for its end, and return its status."""
        for stream in (self._input, self._output):
            with suppress(OSError):
                stream.close()
        return self._process.wait()


def _widen(pipe: RawIOBase) -> None:
    if sys.platform == "linux":
        from fcntl import F_SETPIPE_SZ, fcntl

        with suppress(OSError):  # the user's limit may be lower
            fcntl(pipe.fileno(), F_SETPIPE_SZ, PIPE_BYTES)


def _describe(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status}, {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
