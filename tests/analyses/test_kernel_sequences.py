"""Recurring sequences of kernels, beside a search through all of them."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.devices.kernel_sequences import ARROW, kernel_sequences, without_overlaps

US = 1000
NAMES = st.lists(st.sampled_from("abcd|"), max_size=30)


def _events(names: str | list[str], stream: int = 7) -> list[list[Any]]:
    """A kernel of 2 us a letter, 1 us apart; `|` is a copy."""
    return [
        ["gpu_memcpy", "Memcpy DtoD", 1 + 3 * place, 2, {"stream": stream}]
        if name == "|"
        else ["kernel", name, 1 + 3 * place, 2, {"stream": stream}]
        for place, name in enumerate(names)
    ]


def _found(names: str) -> list[tuple[str, int]]:
    table = kernel_sequences(trace_of(_events(names)))
    return [(row.sequence.replace(ARROW, ""), row.occurrence_count) for row in rows_of(table)]


def test_a_sequence_that_recurs_is_found_whole() -> None:
    assert _found("abcxabcyabcz") == [("abc", 3)]
    (row,) = rows_of(kernel_sequences(trace_of(_events("abcxabcyabcz"))))
    assert (row.kernel_count, row.saved_launch_count) == (3, 6)
    assert (row.kernel_ns, row.gap_ns) == (18 * US, 6 * US)
    assert (row.mean_kernel_ns, row.kernel_share) == (2 * US, 18 / 24)
    assert row.operators == ARROW.join("???")


def test_a_kernel_is_in_one_sequence_only() -> None:
    assert _found("aaaa") == [("aa", 2)]
    assert _found("aaaaa") == [("aa", 2)]


def test_no_sequence_goes_over_a_copy_a_collective_or_another_stream() -> None:
    assert _found("a|b|a|b") == []
    nccl = [["kernel", "ncclDevKernel_AllReduce", 6 * n + 4, 2] for n in range(4)]
    others = [["kernel", "ab"[n % 2], 6 * n + 1, 2] for n in range(4)]
    assert kernel_sequences(trace_of([*nccl, *others])).empty
    assert kernel_sequences(trace_of([*_events("ab"), *_events("ba", stream=8)])).empty


def test_the_operators_that_launched_it_are_named() -> None:
    rows: list[list[Any]] = []
    for number, name in enumerate(["mul", "add"] * 2):
        at = 1 + 10 * number
        rows += [["cpu_op", f"aten::{name}", at, 5]]
        rows += [["cuda_runtime", "cudaLaunchKernel", at + 1, 1, {"correlation": number}]]
        rows += [["kernel", name, at + 4, 2, {"correlation": number}]]
    (row,) = rows_of(kernel_sequences(trace_of(rows)))
    assert row.operators == ARROW.join(["aten::mul", "aten::add"])


@given(NAMES)
def test_what_is_found_is_there_and_takes_no_kernel_twice(names: list[str]) -> None:
    text = "".join(names)
    table = kernel_sequences(trace_of([["cpu_op", "aten::mm", 0, 1], *_events(names)]))
    for row in rows_of(table):
        sequence = row.sequence.replace(ARROW, "")
        assert 2 <= row.occurrence_count <= text.count(sequence)  # str.count leaves out overlaps
        assert 2 <= row.kernel_count == len(sequence) <= 8
    kernels = sum(name != "|" for name in names)
    assert (table["kernel_count"] * table["occurrence_count"]).sum() <= kernels
    assert table["kernel_share"].sum() <= 1 + 1e-9


@given(NAMES)
def test_the_first_saves_as_much_as_any(names: list[str]) -> None:
    """The oracle: every text of two to eight letters, counted by Python."""
    text = "".join(names)
    table = kernel_sequences(trace_of([["cpu_op", "aten::mm", 0, 1], *_events(names)]))
    pieces = {
        text[at : at + length] for length in range(2, 9) for at in range(len(text) - length + 1)
    }
    saved = [
        (len(piece) - 1) * text.count(piece)
        for piece in pieces
        if "|" not in piece and text.count(piece) > 1
    ]
    assert bool(saved) == (not table.empty)
    if saved:
        overlapping = max(saved) / 2  # order is by what overlaps too, which at most doubles it
        assert table["saved_launch_count"].max() >= overlapping


@given(st.lists(st.integers(0, 60), unique=True, max_size=30), st.integers(1, 9))
def test_overlaps_are_left_out_from_the_first_on(places: list[int], length: int) -> None:
    expected: list[int] = []
    for place in sorted(places):
        if not expected or place >= expected[-1] + length:
            expected.append(place)
    assert without_overlaps(np.array(sorted(places), dtype=np.int64), length).tolist() == expected


def test_without_kernels_there_are_none() -> None:
    assert kernel_sequences(trace_of([["cpu_op", "aten::mm", 0, 1]])).empty
