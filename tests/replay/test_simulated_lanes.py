"""One step as recorded and as simulated: its rows, its merged events, its bounds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.timeline.slice_categories import CODES
from stepscope.base.errors import UnknownNameError
from stepscope.model.trace import Trace
from stepscope.replay.simulated_events import Span
from stepscope.replay.simulated_lanes import (
    Blocks,
    Stretch,
    _blocks,
    step_lanes,
)
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import WhatIf, changes_of

LAUNCH = {"correlation": 1}
ROWS: Any = (
    ["user_annotation", "ProfilerStep#1", 0, 100],
    ["user_annotation", "forward", 10, 40],
    ["cpu_op", "aten::mm", 20, 20],
    ["cuda_runtime", "cudaLaunchKernel", 25, 5, LAUNCH],
    ["kernel", "gemm", 30, 40, LAUNCH],
    ["cuda_runtime", "cudaDeviceSynchronize", 60, 20, {"correlation": 2}],
    ["user_annotation", "ProfilerStep#2", 100, 50],
    ["cpu_op", "aten::add", 110, 10],
    ["cuda_runtime", "cudaLaunchKernel", 112, 2, {"correlation": 3}],
    ["kernel", "add", 120, 10, {"correlation": 3}],
)


def lanes_of(trace: Trace, what_if: WhatIf, **arguments: Any) -> dict[str, Any]:
    """Return each lane's events as (name, start, end, change) of both versions, in µs."""
    content = step_lanes(trace, simulate(trace, changes_of(trace, what_if)), **arguments)
    return {
        lane.label: [
            [
                (lane.names[name], start / 1000, end / 1000, change / 1000)
                for name, start, end, change in zip(
                    blocks.name, blocks.start_ns, blocks.end_ns, blocks.change_ns, strict=True
                )
            ]
            for blocks in (lane.recorded, lane.simulated)
        ]
        for lane in content.lanes
    }


def test_a_faster_kernel_ends_the_wait_earlier_and_only_those_change() -> None:
    assert lanes_of(trace_of(ROWS), WhatIf(device=0.5), step=1) == {
        "host": [[("forward", 10, 50, 0)], [("forward", 10, 50, 0)]],
        "host, inside": [[("aten::mm", 20, 40, 0)], [("aten::mm", 20, 40, 0)]],
        "waits": [
            [("cudaDeviceSynchronize", 60, 80, -10)],
            [("cudaDeviceSynchronize", 60, 70, -10)],
        ],
        "stream 7": [[("gemm", 30, 70, -20)], [("gemm", 30, 50, -20)]],
    }


def test_a_later_step_begins_where_the_simulated_one_does() -> None:
    trace = trace_of(ROWS)
    content = step_lanes(trace, simulate(trace, changes_of(trace, WhatIf(host=0.5))), step=2)
    assert (content.steps, content.step, content.start_ns) == ((1, 2), 2, 100_000)
    assert (content.recorded_ns, content.simulated_ns) == (50_000, 25_000)
    lane = content.lanes[0]
    assert lane.names == ("aten::add",)
    assert (lane.recorded.start_ns.tolist(), lane.simulated.start_ns.tolist()) == ([10_000], [5000])


def test_without_steps_the_window_of_device_work_is_shown() -> None:
    trace = trace_of(ROWS[1:6])
    content = step_lanes(trace, simulate(trace, []))
    assert (content.step, content.steps) == (None, ())
    assert content.recorded_ns == content.simulated_ns > 0
    assert [lane.label for lane in content.lanes][-2:] == ["waits", "stream 7"]


def test_an_unknown_step_is_refused() -> None:
    trace = trace_of(ROWS)
    with pytest.raises(UnknownNameError, match="no complete step 9"):
        step_lanes(trace, simulate(trace, []), step=9)


def test_categories_are_those_of_the_timeline() -> None:
    trace = trace_of(ROWS)
    lanes = {lane.label: lane for lane in step_lanes(trace, simulate(trace, []), step=1).lanes}
    assert lanes["stream 7"].recorded.category.tolist() == [CODES["kernel"]]
    assert lanes["host"].recorded.category.tolist() == [CODES["annotation"]]


def slowly_merged(rows: list[tuple[int, int]], length: int, pixel: int) -> list[list[int]]:
    """Return start, end and count of each block: the obvious way."""
    blocks: list[list[int]] = []
    joinable, last = False, 0
    for start, end in sorted(rows, key=lambda row: row[0]):
        if end <= max(start, 0) or start >= length:
            continue
        is_short = end - start < pixel
        if joinable and is_short and last // pixel == start // pixel:
            blocks[-1][1] = max(blocks[-1][1], end)
            blocks[-1][2] += 1
        else:
            blocks.append([start, end, 1])
        joinable, last = is_short, start
    return blocks


@given(
    st.lists(st.tuples(st.integers(-50, 300), st.integers(0, 60)), max_size=40),
    st.integers(1, 40),
    st.integers(1, 200),
)
def test_short_neighbours_are_merged_and_none_is_lost(
    events: list[tuple[int, int]], pixel: int, length: int
) -> None:
    rows = [(start, start + duration) for start, duration in events]
    starts, ends = (np.array([row[at] for row in rows], dtype=np.int64) for at in (0, 1))
    columns = np.stack([np.ones(len(rows), dtype=np.int64)] * 3)
    times = Span(starts + 1000, ends + 1000)
    merged: Blocks = _blocks(times, columns, Stretch(1000, 1000 + length), pixel)
    triples = zip(merged.start_ns, merged.end_ns, merged.event_count, strict=True)
    assert [[int(value) for value in block] for block in triples] == slowly_merged(
        rows, length, pixel
    )
    assert merged.change_ns.tolist() == merged.event_count.tolist()
