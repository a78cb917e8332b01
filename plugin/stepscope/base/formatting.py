"""Numbers as text for users: durations, bytes, fractions, counts; three significant digits.

All of Python's number formatting is here; `frontend/src/core/format.ts` is its counterpart, and
`tests/formatted_numbers.json` holds the texts that both give.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Context, Decimal

_Units = tuple[tuple[float, str], ...]
"""Units, the largest first; the last is 1."""
_DURATIONS: _Units = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_BYTES: _Units = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))
_FILE_SIZES: _Units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1, "B"))
_RATES: _Units = ((1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s"))
_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)
"""Halves are rounded up, as in JavaScript."""


def significant(value: float) -> str:
    """Return a number with three significant digits and no exponent: `0.0123`, `59.3`, `1,204`."""
    size = abs(value)
    if not size or not math.isfinite(value):
        return f"{size:.0f}"
    if size < 1e-4:
        return "< 0.0001"
    if size >= 99.95:
        return f"{_rounded(value, 0):,}"
    digits = _THREE_DIGITS.create_decimal_from_float(value)
    return f"{digits:.{2 - digits.adjusted()}f}"


def _rounded(value: float, decimals: int) -> Decimal:
    """Return a number with this many decimals, halves rounded up."""
    return Decimal(value).quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP)


def _unit_of(value: float, units: _Units) -> tuple[float, str]:
    """Return the largest unit in which the rounded value is at least one."""
    return next((unit for unit in units if abs(value) >= unit[0] * 0.9995), units[-1])


def _in_unit(value: float, unit_size: float) -> str:
    """Return a value in a unit; of the smallest, a whole number."""
    is_whole = unit_size == 1 and math.isfinite(value)
    return f"{_rounded(value, 0)}" if is_whole else significant(value / unit_size)


def _scaled(value: float, units: _Units) -> str:
    unit_size, unit = _unit_of(value, units)
    return f"{_in_unit(value, unit_size)} {unit}"


def _scaled_range(low: float, high: float, units: _Units) -> str:
    unit_size, unit = _unit_of(high, units)
    least, most = _in_unit(low, unit_size), _in_unit(high, unit_size)
    return f"{most} {unit}" if least == most else f"{least}–{most} {unit}"


def six_digits(value: float) -> str:
    """Return a number with at least six digits: `0.123457`, `1.5`, `29659095`, `1e+20`."""
    return f"{value:.0f}" if 1e6 <= abs(value) < 1e15 else f"{value:.6g}"


def duration(time_ns: float) -> str:
    """Return a duration with its unit: `59.3 ms`."""
    return _scaled(time_ns, _DURATIONS)


def duration_range(low_ns: float, high_ns: float) -> str:
    """Return two durations in one unit: `44.5–59.3 ms`; `0–59.3 ms`."""
    return _scaled_range(low_ns, high_ns, _DURATIONS)


def clock(time_ns: float) -> str:
    """Return a waiting time in minutes and seconds: `1:05`, `1:00:05`."""
    minutes, seconds = divmod(math.ceil(time_ns / 1e9), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def size(count_bytes: float) -> str:
    """Return a size of memory or of a file in powers of 1024: `18.4 MiB`."""
    return _scaled(count_bytes, _BYTES)


def file_size(count_bytes: float) -> str:
    """Return the size of a file in powers of ten, as its limit is given: `5.00 MB`."""
    return _scaled(count_bytes, _FILE_SIZES)


def size_range(low_bytes: float, high_bytes: float) -> str:
    """Return two sizes in one unit: `4.88–30.0 MiB`."""
    return _scaled_range(low_bytes, high_bytes, _BYTES)


def rate(bytes_per_second: float) -> str:
    """Return a bandwidth in powers of ten, as data sheets give it: `12.3 GB/s`."""
    return _scaled(bytes_per_second, _RATES)


ROUNDING = 1e-9
"""Sums of fractions differ by less from the whole, as floats are."""


def share(fraction: float) -> str:
    """Return a fraction in percent: `33.9 %`, `< 0.1 %`, `> 99.9 %`."""
    percent = 100.0 if abs(fraction - 1) < ROUNDING else fraction * 100
    if 0 < percent < 0.1:
        return "< 0.1 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{_rounded(percent, 1)} %" if math.isfinite(percent) else f"{percent} %"


def share_range(low: float, high: float) -> str:
    """Return two fractions in percent: `24.1–72.6 %`, `0–72.6 %`."""
    least, most = _percent(low), _percent(high)
    if least == most:
        return share(high)
    return f"{least if float(least) else '0'}–{most} %"


def _percent(fraction: float) -> str:
    """Return a fraction in percent; only a whole is 100."""
    percent = _rounded(fraction * 100, 1)
    return "99.9" if fraction < 1 and percent == 100 else f"{percent}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 copy`, `25 copies`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


RANGES_SHOWN = 12
Ranges = tuple[tuple[int, int], ...]
"""First and last number of each range, ordered and disjoint."""


def ranges_of(numbers: Iterable[int]) -> Ranges:
    """Return whole numbers as ranges."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)


def shown_ranges(ranges: Ranges, most: int = RANGES_SHOWN) -> str:
    """Return ranges as a text: `3-9, 12`; `…` stands for those beyond the first `most`."""
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges]
    return ", ".join(texts[:most]) + (", …" if len(texts) > most else "")


def number_ranges(numbers: Iterable[int], most: int = RANGES_SHOWN) -> str:
    """Return whole numbers as ranges in a text, see `shown_ranges`."""
    return shown_ranges(ranges_of(numbers), most)


def capitalized(text: str) -> str:
    """Return a text with a capital first letter, and the others as they are."""
    return text[:1].upper() + text[1:]
