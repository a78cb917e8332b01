"""The number of generated examples of a test."""

from hypothesis import settings


def examples(most: int) -> settings:
    """At most so many examples; in `make test` as few as other tests have (see conftest)."""
    usual = settings().max_examples
    return settings(max_examples=most if usual >= 100 else min(most, usual), deadline=None)
