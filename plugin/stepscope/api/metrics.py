"""Numbers for JSON: an unknown value is null."""

from math import isfinite


def whole(value: float) -> int | None:
    """Return a number rounded to an integer; None where it is NaN or infinite."""
    return round(value) if isfinite(value) else None


def finite(value: float) -> float | None:
    """Return a number; None where it is NaN or infinite."""
    return float(value) if isfinite(value) else None
