"""Figures as JSON has them: what is not known is null."""

from math import isfinite


def whole(value: float) -> int | None:
    """Return a figure in whole units; None where it is not known."""
    return round(value) if isfinite(value) else None


def finite(value: float) -> float | None:
    """Return a figure; None where it is not known."""
    return float(value) if isfinite(value) else None
