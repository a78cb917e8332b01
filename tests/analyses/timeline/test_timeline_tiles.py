"""Tiles: what is wide is shown itself, what is short by pixel, and nothing is lost."""

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.timeline import tiles
from stepscope.analyses.timeline.detail_levels import COARSEST
from stepscope.analyses.timeline.slices import LATEST_NS
from stepscope.analyses.timeline.tiles import TILE_PIXELS, Tile, tile
from stepscope.base.errors import UsageError
from timelinebuild import ROW, ROWS, Row, Span, slices_of, spans

LEVELS = st.integers(0, 12)
Item = tuple[int, int, int, int, int]
"""Start, end, busy time, count, and the longest slice's length."""


def slow_row(row: Row, level: int, number: int) -> list[Item]:
    """The items of a row, one slice after the other."""
    pixel = 1 << level
    first, behind = number * TILE_PIXELS * pixel, (number + 1) * TILE_PIXELS * pixel

    def is_wide(span: Span) -> bool:
        return span[1] - span[0] >= pixel

    def is_in(span: Span) -> bool:
        return first <= span[0] < behind or (is_wide(span) and span[0] < behind and span[1] > first)

    def key(place_and_span: tuple[int, Span]) -> tuple[int, int]:
        place, span = place_and_span
        return (span[0] >> level, place if is_wide(span) else -1)

    found = []
    inside = [(place, span) for place, span in enumerate(row) if is_in(span)]
    for _, group in groupby(inside, key):
        own = [span for _, span in group]
        lengths = [end - start for start, end in own]
        found.append((own[0][0], own[-1][1], sum(lengths), len(own), max(lengths)))
    return found


def items(found: Tile, slices: object) -> list[Item]:
    lengths = slices.times.duration_ns(found.longest)  # type: ignore[attr-defined]
    columns = (found.start_ns, found.end_ns, found.busy_ns, found.count, lengths)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@given(ROWS, LEVELS, st.integers(0, 3))
def test_a_tile_is_what_one_finds_going_through_the_slices(
    gaps: list[list[tuple[int, int]]], level: int, number: int
) -> None:
    rows = [spans(row) for row in gaps]
    slices = slices_of(rows)

    found = tile(slices, [0], level, number)

    expected = [slow_row(row, level, number) for row in rows]
    assert items(found, slices) == [item for row in expected for item in row]
    assert found.rows == tuple(
        (0, number_of_row, len(row)) for number_of_row, row in enumerate(expected) if row
    )


@given(ROW, LEVELS)
def test_tiles_together_hold_every_slice_once_and_wide_ones_wherever_they_reach(
    gaps: list[tuple[int, int]], level: int
) -> None:
    row = spans(gaps)
    slices = slices_of([row])
    end = max((end for _, end in row), default=0)
    width = TILE_PIXELS << level

    found = [tile(slices, [0], level, number) for number in range(end // width + 1)]

    whole = Counter[int]()
    for each in found:
        for place, count in zip(each.longest.tolist(), each.count.tolist(), strict=True):
            whole[place] += count
    times_shown = [
        1 if stop - start < 1 << level else (max(stop - 1, start) // width) - start // width + 1
        for start, stop in row
    ]
    assert sum(whole.values()) == sum(times_shown)


@given(ROW, LEVELS)
def test_time_in_which_something_ran_is_the_same_at_every_level(
    gaps: list[tuple[int, int]], level: int
) -> None:
    row = spans(gaps)
    slices = slices_of([row])
    end = max((end for _, end in row), default=0)

    total = 0
    for number in range(end // (TILE_PIXELS << level) + 1):
        found = tile(slices, [0], level, number)
        begins_here = found.start_ns >= found.first_ns
        total += int(found.busy_ns[begins_here].sum())

    assert total == sum(stop - start for start, stop in row)


@given(ROW, LEVELS)
def test_a_coarser_tile_never_holds_more_items_than_the_two_finer_ones(
    gaps: list[tuple[int, int]], level: int
) -> None:
    slices = slices_of([spans(gaps)])

    coarse = tile(slices, [0], level + 1, 0)
    fine = [tile(slices, [0], level, number) for number in (0, 1)]

    assert len(coarse.start_ns) <= sum(len(each.start_ns) for each in fine)


@given(ROW, LEVELS)
def test_no_slice_of_a_pixel_or_more_is_merged(gaps: list[tuple[int, int]], level: int) -> None:
    row = spans(gaps)
    slices = slices_of([row])

    found = tile(slices, [0], level, 0)

    shown = set(found.longest[found.count == 1].tolist())
    wide = {
        place
        for place, (start, end) in enumerate(row)
        if end - start >= 1 << level and start < TILE_PIXELS << level
    }
    assert wide <= shown


def test_many_short_slices_are_kept_at_coarser_levels_that_together_take_little() -> None:
    row = [(100 * place, 100 * place + 40) for place in range(10_000)]

    slices = slices_of([row])

    assert next(each.level for each in slices.levels) == 8
    assert sum(map(len, slices.levels)) < 2.4 * len(row)
    coarse = tile(slices, [0], 10, 0)
    assert int(coarse.count.sum()) == 10_000
    assert int(coarse.busy_ns.sum()) == 400_000


def test_a_level_is_kept_where_only_a_part_of_the_slices_is_dense() -> None:
    dense = [(2 * place, 2 * place + 1) for place in range(5000)]
    sparse = [(10**6 * place, 10**6 * place + 1) for place in range(1, 5000)]

    slices = slices_of([dense + sparse])

    assert next(each.level for each in slices.levels) == 4
    assert len(slices.levels[0]) == 5000 / 8 + 4999


def test_of_equally_long_ones_a_merged_item_is_the_first() -> None:
    slices = slices_of([[(0, 2), (4, 9), (10, 15)]])

    found = tile(slices, [0], 4, 0)

    assert (found.count.tolist(), found.longest.tolist()) == ([3], [1])


def test_a_slice_that_reaches_over_many_tiles_is_in_all_of_them() -> None:
    slices = slices_of([[(5, 10_000)]])

    assert [len(tile(slices, [0], 0, number).start_ns) for number in range(11)] == [1] * 10 + [0]


def test_nothing_is_in_tiles_of_no_slices_and_behind_the_end() -> None:
    assert tile(slices_of([]), [0], 3, 0).rows == ()
    assert tile(slices_of([[(0, 5)]]), [0], 3, 10**18).rows == ()
    assert tile(slices_of([[(0, 5)]]), [7], 3, 0).rows == ()


def test_the_coarsest_tile_holds_all_that_can_be_drawn() -> None:
    slices = slices_of([[(0, 5), (LATEST_NS - 5, LATEST_NS)]])

    assert tile(slices, [0], COARSEST, 0).count.tolist() == [1, 1]
    assert tile(slices, [0], 0, (LATEST_NS - 5) // TILE_PIXELS).count.tolist() == [1]


@pytest.mark.parametrize(("level", "number"), [(-1, 0), (COARSEST + 1, 0), (10**9, 0), (3, -1)])
def test_tiles_that_cannot_be_are_refused(level: int, number: int) -> None:
    with pytest.raises(UsageError):
        tile(slices_of([[(0, 5)]]), [0], level, number)


def test_rows_beyond_what_one_answer_holds_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tiles, "MOST_ITEMS", 5)
    slices = slices_of([[(0, 1), (2, 3)], [(0, 1), (2, 3)], [(0, 1), (2, 3)]])

    found = tile(slices, [0], 0, 0)

    assert found.rows == ((0, 0, 2), (0, 1, 2))
    assert (len(found.start_ns), found.left_out_row_count) == (4, 1)


def test_thousands_of_rows_are_one_tile() -> None:
    slices = slices_of([[(row, row + 5)] for row in range(900)])

    found = tile(slices, [0], 0, 0)

    assert len(found.rows) == 900
    assert np.array_equal(found.start_ns, np.arange(900))
