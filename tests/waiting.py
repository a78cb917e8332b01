"""Waiting for what another thread or process does: until it is done, never for a while."""

import time
from collections.abc import Callable

LONG_SECONDS = 180
"""Longer than anything takes on two busy cores: what has not happened by then never will."""
AGAIN_SECONDS = 0.01


def until(condition: Callable[[], object]) -> None:
    """Return as soon as something holds; fail where it never does."""
    deadline = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"not within {LONG_SECONDS} s"
        time.sleep(AGAIN_SECONDS)
