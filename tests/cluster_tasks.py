"""What tests have a cluster's workers do with a recording; these find the functions by name."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.base.report import FileHealth
from stepscope.model.trace import Trace
from stepscope.readers import tasks
from stepscope.readers.requests import Phase, ReadRequest
from stepscope.storage import discover


def orders_of(folder: str | Path, *tasks: Callable[[Trace], Any]) -> list[ReadRequest]:
    """Return the orders to do this with each recording below a folder."""
    phases: tuple[Phase, ...] = ("analysing", "advising")
    steps = tuple(zip(phases, tasks, strict=False))
    files = discover.at(str(folder))
    return [
        ReadRequest(file=file, stamp=file.listed, steps=steps, returns_trace=False)
        for file in files
    ]


def judged(trace: Trace) -> FileHealth:
    """Do some small work."""
    return tasks.judge(trace, run="run", file_bytes=1)


def named(trace: Trace) -> tuple[str, int]:
    """Tell which recording it is, and who read it."""
    return trace.worker, os.getpid()


def killing(trace: Trace, *, worker: str) -> str:
    """Kill whoever reads the recording of one worker."""
    if trace.worker == worker:
        os.kill(os.getpid(), signal.SIGKILL)
    return trace.worker


def waiting(trace: Trace, *, folder: str) -> str:
    """Say that the reading of a recording has begun, and wait for a word that it may end."""
    Path(folder, f"{trace.worker}.{os.getpid()}").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.01)
    return trace.worker


def marking(trace: Trace, *, folder: str) -> None:
    """Say that what follows a wait was done, too."""
    Path(folder, f"{trace.worker}.second").touch()


def again(trace: Trace) -> FileHealth:
    """Do the same work once more."""
    return judged(trace)
