"""The number of generated examples of a test."""

from typing import Any

from hypothesis import settings


def examples(most: int, **others: Any) -> settings:
    """At most so many examples, with other settings; fewer in `make test` (see conftest)."""
    usual = settings().max_examples
    count = most if usual >= 100 else min(most, usual)
    return settings(max_examples=count, deadline=None, **others)
