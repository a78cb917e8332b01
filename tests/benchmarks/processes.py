"""Duration and peak memory of a command in a separate process."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.scaled import FOLDER, ROOT

KIBIBYTE = 1024
LAUNCHER = Path(__file__).with_name("launcher.py")


class FailedError(Exception):
    """A process ended with an error; the message is its last line."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run. `seconds` holds the phases that the process printed, and `whole`."""

    seconds: Mapping[str, float]
    cpu_seconds: float
    peak_bytes: int
    """Peak memory of the process, or of its largest child."""


def measured(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end. Its last line may be JSON: seconds by the name of a phase.

    Raises:
        FailedError: it ended with an error.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(LAUNCHER), str(report), *command],
            capture_output=True,
            check=False,
            env=variables(environment or {}),
        )
        if done.returncode:
            errors = done.stderr.decode(errors="replace").strip().splitlines()
            raise FailedError(errors[-1] if errors else f"exit status {done.returncode}")
        took = json.loads(report.read_text())
    lines = done.stdout.splitlines()
    return Measured(
        seconds={**_phases(lines[-1] if lines else b""), "whole": took["whole_seconds"]},
        cpu_seconds=took["cpu_seconds"],
        peak_bytes=took["peak_kibibytes"] * KIBIBYTE,
    )


def _phases(line: bytes) -> dict[str, float]:
    return json.loads(line) if line.startswith(b'{"') and line.endswith(b"}") else {}


def variables(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process with these modules and a cache of bytecode."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = [str(ROOT / "tests"), *filter(None, [more.get("PYTHONPATH")])]
    return {
        **inherited,
        "PYTHONPYCACHEPREFIX": str(FOLDER / "bytecode"),
        **more,
        "PYTHONPATH": os.pathsep.join(path),
    }


def of_module(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]
