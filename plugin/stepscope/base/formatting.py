"""Numbers as text for users: durations, bytes, fractions, counts; three significant digits.

All of Python's number formatting is here; `frontend/src/core/format.ts` is its counterpart.
"""

import math
from collections.abc import Iterable

_DURATIONS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def significant(value: float) -> str:
    """Return a number with three significant digits and no exponent: `0.0123`, `59.3`, `1,204`."""
    size = abs(value)
    if not size:
        return "0"
    if size < 1e-4:
        return "< 0.0001"
    return f"{value:,.0f}" if size >= 99.95 else f"{value:#.3g}"


def six_digits(value: float) -> str:
    """Return a number with at least six digits: `0.123457`, `1.5`, `29659095`, `1e+20`."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def duration(time_ns: float) -> str:
    """Return a duration with its unit: `59.3 ms`."""
    for size, unit in _DURATIONS:
        if abs(time_ns) >= size * 0.9995:
            return f"{significant(time_ns / size)} {unit}"
    return f"{time_ns:.0f} ns"


def cost_range(low_ns: float, high_ns: float) -> str:
    """Return a cost in one unit: `44.5–59.3 ms`; `up to 59.3 ms` if it may be nothing."""
    if low_ns <= 0:
        return f"up to {duration(high_ns)}"
    high, unit = duration(high_ns).split()
    low = significant(low_ns / next((size for size, name in _DURATIONS if name == unit), 1))
    return f"{high} {unit}" if low == high else f"{low}–{high} {unit}"


def clock(time_ns: float) -> str:
    """Return a waiting time in minutes and seconds: `1:05`, `1:00:05`."""
    minutes, seconds = divmod(math.ceil(time_ns / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def size(count_bytes: float) -> str:
    """Return an amount of memory in powers of ten: `19.3 MB`."""
    for unit_bytes, unit in _BYTES:
        if abs(count_bytes) >= unit_bytes * 0.9995:
            return f"{significant(count_bytes / unit_bytes)} {unit}"
    return f"{count_bytes:.0f} B"


def share(fraction: float) -> str:
    """Return a fraction in percent: `33.9 %`, `< 0.1 %`."""
    if 0 < fraction < 0.001:
        return "< 0.1 %"
    return f"{fraction * 100:.1f} %"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 copy`, `25 copies`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def number_ranges(numbers: Iterable[int], most: int = 12) -> str:
    """Return whole numbers as ranges: `3-9, 12`; `…` stands for those beyond `most` ranges."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def quantity_range(texts: Iterable[str]) -> str:
    """Return one quantity, or two with their common unit once: `8.66 to 9.15 ms`."""
    first, *rest = dict.fromkeys(texts)
    if not rest:
        return first
    number, _, unit = first.rpartition(" ")
    return f"{number if rest[0].endswith(' ' + unit) else first} to {rest[0]}"


def capitalized(text: str) -> str:
    """Return a text with a capital first letter, and the others as they are."""
    return text[:1].upper() + text[1:]
