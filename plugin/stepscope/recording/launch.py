"""Runs a command whose Python processes record themselves, and forwards signals to it."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from stepscope.recording.record_request import ACCOUNTS, VARIABLE, RecordRequest

STARTUP = Path(__file__).parent / "startup"
"""The folder whose `sitecustomize.py` Python runs before the script."""
NOT_FOUND = 127
NOT_EXECUTABLE = 126
SIGNALLED = 128
"""Exit statuses above this value denote a signal, as in shells."""


def run(command: Sequence[str], request: RecordRequest, accounts: str) -> int:
    """Run a command to its end and return its exit status as a shell would.

    Raises:
        OSError: The command does not exist or cannot be run.
    """
    environment = environment_of(os.environ, request, accounts)
    process = subprocess.Popen(_with_interpreter(command), env=environment)  # noqa: S603 (the user's own)
    with _forwarding_signals(process):
        status = process.wait()
    return status if status >= 0 else SIGNALLED - status


def environment_of(
    environment: "os._Environ[str] | dict[str, str]", request: RecordRequest, accounts: str
) -> dict[str, str]:
    """Return the environment in which Python processes record themselves."""
    paths = [str(STARTUP), environment.get("PYTHONPATH", "")]
    return {
        **environment,
        VARIABLE: request.as_text(),
        ACCOUNTS: accounts,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }


def _with_interpreter(command: Sequence[str]) -> list[str]:
    """Return the command; a script without an interpreter is run by this Python."""
    name = command[0]
    if name.endswith(".py") and not (os.access(name, os.X_OK) and os.sep in name):
        return [sys.executable, *command]
    return list(command)


@contextmanager
def _forwarding_signals(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Forward signals, except the terminal's Ctrl-C, which reaches the script directly."""

    def passed_on(number: int, frame: FrameType | None) -> None:
        del frame
        if number != signal.SIGINT or not _is_in_foreground():
            process.send_signal(number)

    numbers = [
        number
        for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
        if (number := getattr(signal, name, None)) is not None
    ]
    before = {number: signal.signal(number, passed_on) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_foreground() -> bool:
    """Return whether the terminal sends Ctrl-C to this process, and so also to the script."""
    if not hasattr(os, "tcgetpgrp"):  # Windows: the console sends it to all its processes
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
