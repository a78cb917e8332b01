"""Exact parsing of numbers; times in whole nanoseconds."""

from decimal import Decimal, InvalidOperation

import numpy as np

NO_TIME = int(np.iinfo(np.int64).min)
"""A missing time or duration."""
TIMES_NS = range(-(2**62), 2**62)
"""146 years before and after 1970, so that a difference of two times fits 64 bits."""
_LARGEST_EXPONENT = 30


NumberText = bytes
"""A JSON number with a fraction or exponent as written, not rounded. Text is `str`; `json` makes
these with `str.encode`, at a third of the cost of a class.
"""


def as_written(number: NumberText) -> str:
    """Return the number's text."""
    return number.decode()


def nanoseconds(microseconds: object) -> int:
    """Return a JSON time in microseconds as whole nanoseconds.

    Fractions are parsed from their text, since a float cannot hold an absolute time exactly. Values
    that are not numbers, or exceed 146 years, give `NO_TIME`.
    """
    time_ns = _nanoseconds(microseconds)
    return time_ns if time_ns in TIMES_NS else NO_TIME


def _nanoseconds(microseconds: object) -> int:
    if type(microseconds) is int:
        return microseconds * 1000
    if isinstance(microseconds, NumberText):
        microseconds = microseconds.decode()
    if not isinstance(microseconds, str):
        return NO_TIME
    whole, _, fraction = microseconds.partition(".")
    if len(fraction) <= 3 and fraction.isdecimal() and whole.isdecimal() and len(whole) <= 20:
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))
    return _rounded(microseconds)


def _rounded(microseconds: str) -> int:
    """Parse an unusual time: negative, finer than 1 ns, or with an exponent."""
    try:
        exact = Decimal(microseconds)
    except InvalidOperation:
        return NO_TIME
    if not exact.is_finite() or exact.adjusted() > _LARGEST_EXPONENT:
        return NO_TIME
    return int((exact * 1000).to_integral_value())
