"""Programs that a test starts."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

ENDS_WITHIN_SECONDS = 10
"""Once the test is through with it."""


@contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a program, by `subprocess.Popen`'s options; it does not outlive a test that fails.

    `Popen` itself waits for its end, for ever where the test meant to end it and came not so far.
    """
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDS_WITHIN_SECONDS)
            process.kill()  # nothing where it has ended
