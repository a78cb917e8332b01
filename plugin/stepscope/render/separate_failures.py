"""Items of a list that a form fails to show, among those that it shows."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def with_errors(items: Sequence[T], error: Callable[[Sequence[T]], str]) -> Iterator[tuple[T, str]]:
    """Yield items with the reason that each fails alone, by halves; few fail.

    `error` returns the reason that some items fail together; empty where they do not.
    """
    reason = error(items) if items else ""
    if not reason or len(items) == 1:
        yield from ((item, reason) for item in items)
        return
    middle = len(items) // 2
    yield from with_errors(items[:middle], error)
    yield from with_errors(items[middle:], error)
