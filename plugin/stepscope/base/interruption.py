"""Ends a computation of this thread at its next analysis, when its result is no longer needed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_state = threading.local()


class InterruptedComputation(BaseException):
    """Ends a computation; not an `Exception`, so that no analysis or rule counts as failed."""


@contextmanager
def interruptible(is_needed: Callable[[], bool]) -> Iterator[None]:
    """Let `check` end computations of this thread within the block, once they are not needed."""
    _state.is_needed = is_needed
    try:
        yield
    finally:
        _state.is_needed = None


def is_interruptible() -> bool:
    """Return whether this thread is in a block of `interruptible`."""
    return getattr(_state, "is_needed", None) is not None


def check() -> None:
    """End the computation if its result is no longer needed.

    Raises:
        InterruptedComputation: nobody needs it.
    """
    is_needed = getattr(_state, "is_needed", None)
    if is_needed is not None and not is_needed():
        raise InterruptedComputation
