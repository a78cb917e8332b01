"""Memory at any moment: what is drawn of a curve, who held it, and how long allocations live."""

from typing import Any

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from memorybuild import in_turn, memory, with_totals
from stepscope.analyses.memory.allocations import allocation_events, lifetimes, memory_allocations
from stepscope.analyses.memory.at_peak import latest_at, live_at, memory_at_peak, peak_between
from stepscope.analyses.memory.curve import decimated_indices
from stepscope.analyses.memory.holders import NAMES, holders_of

US = 1000


@st.composite
def _curves(draw: st.DrawFn) -> tuple[Any, ...]:
    count = draw(st.integers(0, 300))
    steps = draw(st.lists(st.integers(0, 40), min_size=count, max_size=count))
    level = st.one_of(st.integers(-50, 50).map(float), st.just(np.nan))
    levels = [draw(st.lists(level, min_size=count, max_size=count)) for _ in range(2)]
    start = draw(st.integers(-20, 3000))
    end = start + draw(st.integers(1, 5000))
    pixels = draw(st.integers(1, 12))
    return np.cumsum(steps, dtype=np.int64), [np.array(each) for each in levels], start, end, pixels


def _extremes(values: Any) -> tuple[float, float] | None:
    known = [value for value in values if not np.isnan(value)]
    return (min(known), max(known)) if known else None


@given(_curves())
def test_every_pixel_keeps_its_first_least_most_and_last(curve: tuple[Any, ...]) -> None:
    time_ns, levels, start, end, pixels = curve
    kept = decimated_indices(time_ns, levels, start, end, pixels)
    inside = [place for place, time in enumerate(time_ns) if start <= time <= end]
    assert set(kept.tolist()) <= set(inside)
    assert kept.tolist() == sorted(set(kept.tolist()))
    for pixel in range(pixels):
        own = [p for p in inside if (time_ns[p] - start) * pixels // (end - start + 1) == pixel]
        chosen = [place for place in own if place in kept]
        assert chosen[:1] == own[:1]
        assert chosen[-1:] == own[-1:]
        for level in levels:
            assert _extremes(level[chosen]) == _extremes(level[own])


def test_a_curve_of_few_events_is_drawn_whole_and_one_of_many_is_not() -> None:
    time_ns, level = np.arange(10_000), np.sin(np.arange(10_000.0))
    assert len(decimated_indices(time_ns, [level], 0, 9_999, 5000)) == 10_000
    assert len(decimated_indices(time_ns, [level], 0, 9_999, 100)) <= 400


def _grown() -> Any:
    return trace_of(
        [
            ["cpu_op", "aten::mm", 0, 2.5],
            ["cpu_op", "aten::add", 2.5, 10],
            *with_totals(["+512@1", "+256@2", "-512@1", "+64@3", "+8@4", "-8@4"], before=1000),
        ]
    )


def test_who_held_it_at_a_moment_sums_to_what_was_held_then() -> None:
    trace = _grown()
    (peak,) = memory_at_peak(trace)
    expected = {
        -1: (1512, {("aten::mm", 512), (None, 1000)}),
        0: (1512, {("aten::mm", 512), (None, 1000)}),
        1 * US: (1768, {("aten::mm", 768), (None, 1000)}),
        1 * US + 1: (1768, {("aten::mm", 768), (None, 1000)}),
        2 * US: (1256, {("aten::mm", 256), (None, 1000)}),
        4 * US: (1328, {("aten::mm", 256), ("aten::add", 72), (None, 1000)}),
        99 * US: (1320, {("aten::mm", 256), ("aten::add", 64), (None, 1000)}),
    }
    for moment_ns, (level, holders) in expected.items():
        at = latest_at(peak.curve, moment_ns)
        found = holders_of(live_at(peak.curve, peak.pairs, at), NAMES["operator"](trace))
        assert peak.curve.level_bytes[at] == level
        assert set(zip(found["holder"], found["held_bytes"], strict=True)) == holders
        assert found["held_bytes"].sum() == level


def test_the_most_within_a_time_counts_what_that_began_with() -> None:
    (peak,) = memory_at_peak(_grown())
    level = peak.curve.level_bytes
    # 1512 1768 1256 1320 1328 1320
    assert level[peak_between(peak.curve, 0, 6 * US)] == 1768
    assert level[peak_between(peak.curve, 2 * US, 6 * US)] == 1768  # held until then
    assert level[peak_between(peak.curve, 3 * US, 6 * US)] == 1328
    assert level[peak_between(peak.curve, 50 * US, 60 * US)] == 1320
    assert level[peak_between(peak.curve, -9, -5)] == 1512  # before all events: the first


def test_allocations_live_within_a_step_beyond_it_or_to_the_end() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 10],
            ["user_annotation", "ProfilerStep#2", 10, 10],
            memory(1, "+1@1"),
            memory(2, "-1@1"),
            memory(3, "+2@2"),
            memory(12, "-2@2"),
            memory(13, "+3@3"),
            memory(14, "+4@4"),
            memory(15, "+5@4"),
            memory(25, "+6@5"),
            memory(26, "-6@5"),
            memory(27, "-7@9"),
        ]
    )
    table = trace.memory
    names = pd.Series(lifetimes(trace))
    found = {int(size): name for size, name in zip(table["bytes"], names, strict=True) if size > 0}
    assert found == {
        1: "freed in the step that allocated it",
        2: "freed in a later step",
        3: "held to the recording's end",
        4: "release not recorded",
        5: "held to the recording's end",
        6: "freed while recording",
    }
    assert names[(table["bytes"] < 0).to_numpy()].isna().all()


def test_without_steps_a_release_is_just_that() -> None:
    names = lifetimes(trace_of(in_turn(["+8@1", "-8@1"]))).astype(object)
    assert names[0] == "freed while recording"


def test_each_allocation_knows_its_call_its_release_and_the_curve_there() -> None:
    trace = trace_of(
        [["cpu_op", "aten::mm", 0, 2.5], *with_totals(["+8@1", "+4@2", "-8@1", "-3@9"], before=90)]
    )
    events, table = allocation_events(trace), memory_allocations(trace)
    call = trace.host_calls["event"].iloc[0]
    at = {
        (row.bytes, row.state): (
            int(events.owner_event[place]),
            float(events.allocated_level_bytes[place]),
            float(events.freed_level_bytes[place]),
        )
        for place, row in enumerate(table.itertuples())
    }
    assert at[8, "freed"] == (call, 98, 94)
    assert at[4, "held"][:2] == (call, 102)
    assert np.isnan(at[4, "held"][2])
    assert at[3, "earlier"][0] == -1
    assert np.isnan(at[3, "earlier"][1])
    assert at[3, "earlier"][2] == 91
    freed = dict(zip(table["bytes"].tolist(), events.freed_event.tolist(), strict=True))
    order = trace.memory["event"].tolist()
    assert freed == {8: order[2], 4: -1, 3: order[3]}
