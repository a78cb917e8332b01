"""A command as a process of its own: how long it took, and the most memory that it held."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scaled import FOLDER, ROOT

KIBIBYTE = 1024


class FailedError(Exception):
    """A process ended with an error; the message is the last that it wrote."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run. `seconds` holds the phases that the process told of, and `whole`."""

    seconds: Mapping[str, float]
    cpu_seconds: float
    peak_bytes: int
    """The most that the process held, or any one of its own children."""


def measured(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end. Its last line may be JSON: seconds by the name of a phase.

    Raises:
        FailedError: it ended with an error.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdout=output, stderr=errors, env=_environment(environment or {})
        )
        _, status, usage = os.wait4(process.pid, 0)
        whole = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        lines = output.read().splitlines()
        if process.returncode:
            said = errors.read().decode(errors="replace").strip().splitlines()
            raise FailedError(said[-1] if said else f"exit status {process.returncode}")
    return Measured(
        seconds={**_phases(lines[-1] if lines else b""), "whole": whole},
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        peak_bytes=usage.ru_maxrss * KIBIBYTE,
    )


def _phases(line: bytes) -> dict[str, float]:
    return json.loads(line) if line.startswith(b'{"') and line.endswith(b"}") else {}


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that finds these modules and keeps what it compiles."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = [str(ROOT / "tests"), *filter(None, [more.get("PYTHONPATH")])]
    return {
        **kept,
        "PYTHONPYCACHEPREFIX": str(FOLDER / "bytecode"),
        **more,
        "PYTHONPATH": os.pathsep.join(path),
    }


def of_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]
