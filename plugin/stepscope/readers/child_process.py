"""A process of our own that reads files: started, asked, ended."""

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
    "from stepscope.readers.child import main; main()"
)
"""The same modules are found as here, whatever has been done to the path since we started."""
SAFE_PATH = "-P"
"""A `json.py` in the folder that the user happens to be in is not what is imported."""
PLAIN_MEMORY = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""pyarrow, which pandas uses where it is installed, would set aside 1 GiB, and that counts."""
PIPE_BYTES = 1 << 20
"""What a pipe may hold, where that can be set: a quarter of the time that the default takes."""


class GoneError(Exception):
    """The process ended in the middle; `status` is that of `subprocess.Popen`."""

    def __init__(self, status: int) -> None:
        super().__init__(_how(status))
        self.status = status


class ReaderProcess:
    """One process, which reads one file after another."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: the system does not let us.
        """
        if not sys.executable or getattr(sys, "frozen", False):
            msg = "there is no Python interpreter to start"
            raise OSError(msg)
        path = json.dumps([str(entry) for entry in sys.path])
        self._process = subprocess.Popen(  # noqa: S603 (our own interpreter and program)
            [sys.executable, SAFE_PATH, "-c", START, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=os.environ | PLAIN_MEMORY,
            start_new_session=True,  # Ctrl-C is for us, who end it; it never sees it
        )
        self._input = cast("RawIOBase", self._process.stdin)
        self._output = cast("RawIOBase", self._process.stdout)
        _widen(self._output)

    @property
    def id(self) -> int:
        """The system's number of the process."""
        return self._process.pid

    def asked(self, order: ReadRequest) -> Iterator[Any]:
        """Hand it an order; yield what it says, without end.

        Raises:
            GoneError: it has ended.
        """
        try:
            pipe_messages.send(self._input, order)
            while True:
                yield pipe_messages.receive(self._output)
        except (EOFError, OSError) as error:
            self.kill()  # had it not ended, we would wait for ever
            raise GoneError(self.end()) from error

    def kill(self) -> None:
        """End it now, whatever it does."""
        self._process.kill()

    def end(self) -> int:
        """Let it end, which takes it no time, and return its status."""
        for stream in (self._input, self._output):
            with suppress(OSError):
                stream.close()
        return self._process.wait()


def _widen(pipe: RawIOBase) -> None:
    if sys.platform == "linux":
        from fcntl import F_SETPIPE_SZ, fcntl

        with suppress(OSError):  # a user may have no more of it
            fcntl(pipe.fileno(), F_SETPIPE_SZ, PIPE_BYTES)


def _how(status: int) -> str:
    if status >= 0:
        return f"status {status}"
    try:
        return f"signal {-status}, {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
