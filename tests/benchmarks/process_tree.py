"""Duration and peak memory of a command with all its child processes.

Memory is the sum of the processes' proportional set sizes (PSS), sampled every tenth of a second:
shared memory counts once. Linux only.
"""

import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import FailedError, variables

SAMPLE_SECONDS = 0.1
PSS = re.compile(rb"^Pss: +(\d+) kB", re.MULTILINE)
KIBIBYTE = 1024


@dataclass(frozen=True, kw_only=True)
class TreeMeasured:
    """One run."""

    seconds: float
    cpu_seconds: float
    """CPU time of the processes that have ended and were waited for."""
    peak_bytes: int
    first_peak_bytes: int
    """Peak of the first process alone."""


def watched(
    command: Sequence[str], more: Mapping[str, str] | None = None, *, limit_seconds: float = 3600
) -> TreeMeasured:
    """Run a command to its end.

    Raises:
        FailedError: it ended with an error, or exceeded the limit.
    """
    with tempfile.TemporaryFile() as errors:
        start, before = time.perf_counter(), os.times()
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=errors, env=variables(more or {})
        )
        peak = first_peak = 0
        while process.poll() is None:
            shares = [pss_bytes(pid) for pid in (process.pid, *descendants(process.pid))]
            peak, first_peak = max(peak, sum(shares)), max(first_peak, shares[0])
            if time.perf_counter() - start > limit_seconds:
                process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(SAMPLE_SECONDS)
        seconds, after = time.perf_counter() - start, os.times()
        if process.returncode:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            raise FailedError(*last or [f"exit status {process.returncode}"])
    return TreeMeasured(
        seconds=seconds,
        cpu_seconds=sum(after[2:4]) - sum(before[2:4]),
        peak_bytes=peak,
        first_peak_bytes=first_peak,
    )


def descendants(process_id: int) -> Iterator[int]:
    """Yield the descendants of a process."""
    for tasks in _read_all(f"/proc/{process_id}/task", "children"):
        for child in map(int, tasks.split()):
            yield child
            yield from descendants(child)


def pss_bytes(process_id: int) -> int:
    """Return a process's proportional set size, bytes; 0 once it has ended."""
    with suppress(OSError):
        match = PSS.search(Path(f"/proc/{process_id}/smaps_rollup").read_bytes())
        return int(match[1]) * KIBIBYTE if match else 0
    return 0


def _read_all(folder: str, name: str) -> Iterator[bytes]:
    with suppress(OSError):
        for path in Path(folder).iterdir():
            with suppress(OSError):
                yield (path / name).read_bytes()
