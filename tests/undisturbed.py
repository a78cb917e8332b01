"""Recordings of this machine, of which one that something else got in the way of tells nothing."""

from collections.abc import Callable
from typing import TypeVar

TRIES = 6
Said = TypeVar("Said")


def undisturbed(record: Callable[[], Said], is_meant: Callable[[Said], bool]) -> Said:
    """Record until it shows what is meant, or often enough that it never will; return the last.

    Where others take the processor for a second in the midst of a step of some milliseconds, what
    the step's time is made of is their affair. That happens now and then, not each time.
    """
    for _ in range(TRIES - 1):
        if is_meant(said := record()):
            return said
    return record()
