"""Idle time by cause, step, stream and source line: whole tables, and what each sums to."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import rows_of, trace_of
from stepscope.analyses.core.device_activity import device_activity
from stepscope.analyses.core.host_activity import main_thread_stacks
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.idle_tables import (
    RECORD_STACKS,
    idle_by_cause,
    idle_by_source_line,
    idle_by_step,
    idle_by_stream,
)
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.model import intervals
from stepscope.model.trace import Trace

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def work(number: int, launch: float, start: float, duration: float, **more: Any) -> list[list[Any]]:
    """A launch at a time, and what it launches."""
    return [
        ["cuda_runtime", "cudaLaunchKernel", launch, 1, {"correlation": number}],
        ["kernel", f"k{number}", start, duration, {"correlation": number, **more}],
    ]


TWO_STEPS: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 100],
    ["user_annotation", "ProfilerStep#2", 110, 90],
    *work(1, 10, 20, 70),
    ["user_annotation", LOADER, 95, 5],
    *work(2, 115, 120, 30),
    *work(3, 125, 160, 40),
]


def test_idle_by_cause() -> None:
    assert rows_of(idle_by_cause(trace_of(TWO_STEPS))) == [
        (0, "dispatch", 3, 45 * US, 20 * US, 45 / 60, 45 / 200),
        (0, "queued", 1, 10 * US, 10 * US, 10 / 60, 10 / 200),
        (0, "dataloader", 1, 5 * US, 5 * US, 5 / 60, 5 / 200),
    ]


def test_idle_by_step() -> None:
    table = idle_by_step(trace_of(TWO_STEPS))
    rows = table.astype(object).where(table.notna(), None)
    assert rows_of(rows) == [
        (0, "ProfilerStep#1", "dataloader", 5 * US, pytest.approx(5 / 110)),
        (0, "ProfilerStep#1", "dispatch", 35 * US, pytest.approx(35 / 110)),
        (0, "ProfilerStep#2", "dispatch", 10 * US, pytest.approx(10 / 90)),
        (0, "ProfilerStep#2", "queued", 10 * US, pytest.approx(10 / 90)),
    ]


def test_idle_by_stream_counts_what_runs_on_others() -> None:
    rows = [
        ["user_annotation", "ProfilerStep#1", 0, 100],
        *work(1, 0, 0, 80, stream=7),
        *work(2, 5, 80, 20, stream=20),
    ]
    assert rows_of(idle_by_stream(trace_of(rows))) == [
        (0, 7, "tail", 1, 20 * US, 20 * US, 0, 0.2),
        (0, 20, "dispatch", 1, 80 * US, 80 * US, 0, 0.8),
    ]


def _python(name: str, start: float, duration: float) -> list[Any]:
    return ["python_function", name, start, duration, {"Python id": 1}]


def test_idle_by_source_line_says_where_the_host_was() -> None:
    rows = [
        ["user_annotation", "ProfilerStep#1", 0, 400],
        _python("train.py(1): main", 0, 400),
        _python("train.py(9): prepare", 110, 60),
        _python("torch/nn/modules/linear.py(5): forward", 172, 10),
        *work(1, 0, 0, 100),
        ["cpu_op", "aten::linear", 173, 10],
        *work(2, 175, 180, 220),
    ]
    table = idle_by_source_line(trace_of(rows))
    shown = table[["cause", "operator", "source_line", "remedy", "gap_count", "idle_ns"]]
    assert rows_of(shown) == [
        ("dispatch", "aten::linear", "train.py(9): prepare", None, 1, 60 * US),
        ("dispatch", "aten::linear", "train.py(1): main", None, 1, 20 * US),
    ]


def test_idle_time_behind_a_wait_is_the_waiting_lines() -> None:
    rows = [
        ["user_annotation", "ProfilerStep#1", 0, 400],
        _python("train.py(1): main", 0, 400),
        _python("train.py(5): log", 20, 90),
        ["cpu_op", "aten::item", 30, 75],
        ["cuda_runtime", "cudaStreamSynchronize", 35, 68, {"correlation": 9}],
        *work(1, 0, 0, 100),
        ["cpu_op", "aten::mm", 145, 10],
        *work(2, 146, 150, 250),
    ]
    [row] = rows_of(idle_by_source_line(trace_of(rows)))
    assert (row.cause, row.operator, row.source_line, row.idle_ns) == (
        "post-sync",
        "aten::item",
        "train.py(5): log",
        50 * US,
    )


def test_queued_work_is_where_it_was_launched() -> None:
    rows = [
        ["user_annotation", "ProfilerStep#1", 0, 400],
        _python("train.py(5): early", 10, 20),
        *work(1, 0, 0, 100),
        *work(2, 15, 150, 250),
    ]
    [row] = rows_of(idle_by_source_line(trace_of(rows)))
    assert (row.cause, row.source_line) == ("queued", "train.py(5): early")


def test_without_stacks_it_says_how_to_record_them() -> None:
    table = idle_by_source_line(trace_of(TWO_STEPS))
    assert set(table["remedy"]) == {RECORD_STACKS}
    assert set(table["source_line"]) == {None}
    assert "enumerate(DataLoader)" in next(
        str(name) for cause, name in zip(table["cause"], table["annotation"], strict=True)
        if cause == "dataloader"
    )  # fmt: skip


def test_stacks_that_the_file_holds_as_text_are_read() -> None:
    stack = "torch/nn/functional.py(9): linear;model.py(7): forward;train.py(1): <module>"
    rows = [
        *work(1, 0, 0, 100),
        ["cpu_op", "aten::linear", 140, 10, {"Call stack": stack}],
        *work(2, 146, 150, 250),
    ]
    [row] = rows_of(idle_by_source_line(trace_of(rows)))
    assert row.source_line == "model.py(7): forward"


@pytest.mark.parametrize(
    "table", [idle_by_cause, idle_by_step, idle_by_stream, idle_by_source_line]
)
def test_without_a_device_there_is_no_idle_time(table: Any) -> None:
    with pytest.raises(NotApplicableError, match="a machine without a device"):
        table(trace_of([["cpu_op", "aten::mm", 0, 5]]))
    with pytest.raises(MissingDataError, match="no device event"):
        table(trace_of([["cpu_op", "aten::mm", 0, 5]], deviceProperties=[{"id": 0}]))


HOST = st.tuples(
    st.sampled_from(
        ["cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMalloc", LOADER, "a.py(1): f"]
    ),
    st.integers(0, 3000),
    st.integers(0, 1500),
    st.integers(0, 6),
)
DEVICE = st.tuples(
    st.integers(0, 6),
    st.integers(0, 3000),
    st.integers(0, 40),
    st.sampled_from([7, 20]),
    st.sampled_from([0, 1]),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rows: list[list[Any]] = [["kernel", "always", 1500, 10]]
    for name, start, duration, number in draw(st.lists(HOST)):
        if name.startswith("cuda"):
            rows.append(["cuda_runtime", name, start, duration, {"correlation": number}])
        else:
            category = "user_annotation" if name == LOADER else "python_function"
            rows.append([category, name, start, duration])
    for number, start, duration, stream, device in draw(st.lists(DEVICE)):
        more = {"correlation": number, "stream": stream, "device": device}
        rows.append(["kernel", "k", start, duration, more])
    if draw(st.booleans()):
        rows += [["user_annotation", f"ProfilerStep#{n}", 900 * n, 800] for n in (1, 2, 3)]
    return trace_of(rows)


@examples(40)
@given(traces())
def test_every_table_sums_to_the_idle_time(trace: Trace) -> None:
    span = window(trace)
    for activity in device_activity(trace):
        idle_ns = span.duration_ns - intervals.duration_ns(activity.busy)
        for table in (idle_by_cause, idle_by_step, idle_by_source_line):
            found = table(trace)
            assert found[found["device"] == activity.device]["idle_ns"].sum() == idle_ns
    events = trace.device_events
    for (device, stream), mine in events.groupby(["device", "stream"]):
        busy = intervals.union(mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy())
        busy = intervals.clip(busy, span.device_start_ns, span.device_end_ns)
        found = idle_by_stream(trace)
        found = found[(found["device"] == device) & (found["stream"] == stream)]
        assert found["idle_ns"].sum() == span.duration_ns - intervals.duration_ns(busy)
        [whole] = [each for each in device_activity(trace) if each.device == device]
        if found["idle_ns"].sum():
            idle_ns = span.duration_ns - intervals.duration_ns(whole.busy)
            assert found["device_idle_ns"].sum() == idle_ns


@examples(40)
@given(traces(), st.lists(st.integers(0, 5_000_000), min_size=1))
def test_places_are_the_innermost_at_each_moment(trace: Trace, moments: list[int]) -> None:
    places = main_thread_stacks(trace)
    stretch = places.at(np.array(moments))
    calls = trace.host_calls
    for moment, row in zip(moments, stretch, strict=True):
        around = calls[
            (calls["start_ns"] <= moment) & (calls["end_ns"] > moment) & ~calls["is_operator"]
        ]
        names = [str(name) for name in around["name"] if not str(name).startswith("ProfilerStep")]
        code = places.annotation[row]
        found = None if code < 0 else str(calls["name"].cat.categories[code])
        assert found == (names[-1] if names else None)
