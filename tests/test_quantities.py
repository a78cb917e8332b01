"""Numbers as words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepscope.base import formatting
from stepscope.base.formatting import count, duration, duration_range, share, significant, size

OF_THE_PAGE: dict[str, Callable[..., str]] = {
    "duration": formatting.duration,
    "bytes": formatting.size,
    "rate": formatting.rate,
    "share": formatting.share,
    "significant": formatting.significant,
    "durationRange": formatting.duration_range,
    "shareRange": formatting.share_range,
}
"""The functions of `frontend/src/core/format.ts` by name."""
PAGE_TEXTS = json.loads((Path(__file__).parent / "formatted_numbers.json").read_bytes())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [(name, value, text) for name, texts in PAGE_TEXTS.items() for value, text in texts],
)
def test_a_number_reads_as_on_the_page(name: str, value: Any, text: str) -> None:
    values = value if isinstance(value, list) else [value]
    assert OF_THE_PAGE[name](*values) == text


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (59_261_833, "59.3 ms"),
        (999_400, "999 µs"),
        (999_900, "1.00 ms"),
        (999_999_999, "1.00 s"),
        (12_900_000_000, "12.9 s"),
        (1_234_000_000_000, "1,234 s"),
        (-1500, "-1.50 µs"),
    ],
)
def test_a_duration_has_three_digits_and_its_unit(time_ns: float, text: str) -> None:
    assert duration(time_ns) == text


@pytest.mark.parametrize(
    ("low_ns", "high_ns", "text"),
    [
        (44_475_000, 59_300_000, "44.5–59.3 ms"),
        (900_000, 1_200_000, "0.900–1.20 ms"),
        (5_000_000, 5_000_000, "5.00 ms"),
        (3, 40, "3–40 ns"),
        (0, 5_000_000, "0–5.00 ms"),
    ],
)
def test_a_range_is_in_one_unit(low_ns: int, high_ns: int, text: str) -> None:
    assert duration_range(low_ns, high_ns) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (4096, "4.00 KiB"),
        (19_267_584, "18.4 MiB"),
        (1_073_500_000, "1.00 GiB"),
        (85_018_279_936, "79.2 GiB"),
        (2e12, "1.82 TiB"),
    ],
)
def test_an_amount_is_in_powers_of_1024(amount: float, text: str) -> None:
    assert size(amount) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0.0 %"),
        (0.0005, "< 0.1 %"),
        (0.001, "0.1 %"),
        (0.339, "33.9 %"),
        (1, "100.0 %"),
    ],
)
def test_a_share_is_in_percent_and_never_hides_what_is_there(fraction: float, text: str) -> None:
    assert share(fraction) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 copies"), (1, "1 copy"), (2, "2 copies"), (1462, "1,462 copies")],
)
def test_a_count_agrees_with_its_noun(number: int, text: str) -> None:
    assert count(number, "copy", "copies") == text
    assert count(2, "step") == "2 steps"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.0123, "0.0123"),
        (0.00001, "< 0.0001"),
        (0.5, "0.500"),
        (0.9999, "1.00"),
        (9.996, "10.0"),
        (99.96, "100"),
        (1, "1.00"),
        (59.26, "59.3"),
        (1204.4, "1,204"),
    ],
)
def test_three_significant_digits_without_an_exponent(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(999, "999 B"), (1_000_000, "1.00 MB"), (5_000_000, "5.00 MB"), (10**12, "1,000 GB")],
)
def test_a_file_has_the_units_of_its_limit(size_bytes: int, text: str) -> None:
    assert formatting.file_size(size_bytes) == text
