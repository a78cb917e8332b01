"""What frames are built from, against the events as they were written."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import columns_of
from stepscope.dialects import Kind
from stepscope.model.frames.source import source

pytestmark = pytest.mark.frames

NAMES = st.sampled_from(["aten::mm", "aten::add", "ProfilerStep#1", "[memory]"])
NUMBERS = st.integers(0, 3)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {"ph": st.just("X"), "ts": NUMBERS, "dur": NUMBERS},
        optional={
            "cat": st.sampled_from(["cpu_op", "kernel", "python_function", "ac2g"]),
            "name": NAMES,
            "pid": st.sampled_from([1, 12, "a"]),
            "tid": st.sampled_from([1, 2, "2/1"]),
            "args": st.fixed_dictionaries(
                {},
                optional={
                    "correlation": st.integers(0, 2**40),
                    "bytes": st.sampled_from([0, 2.5, "7", "none"]),
                    "grid": st.sampled_from([[1, 1, 1], "wide", 5]),
                },
            ),
        },
    ),
    min_size=1,
    max_size=8,
)
Events = list[dict[str, Any]]
TIMED = (Kind.OPERATOR, Kind.KERNEL, Kind.PYTHON_CALL)


def _argument(event: dict[str, Any], key: str) -> Any:
    return event.get("args", {}).get(key)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"))


def _texts(found: pd.Categorical) -> list[str | None]:
    return [text if isinstance(text, str) else None for text in found]


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


@given(EVENTS)
def test_rows_are_the_events_of_a_kind_in_the_order_they_began(events: Events) -> None:
    found = source(columns_of(json.dumps(events)))
    rows = found.rows(*TIMED)
    wanted = [
        row
        for row, event in enumerate(events)
        if found.kinds[row] in TIMED and not (event["ts"] == 0 and event["dur"] == 0)
    ]
    assert rows.tolist() == sorted(wanted, key=lambda row: (events[row]["ts"], row))


@given(EVENTS)
def test_what_is_told_of_each_event_is_what_was_written(events: Events) -> None:
    found = source(columns_of(json.dumps(events)))
    rows = np.arange(len(events))[::-1]
    written = events[::-1]
    names = found.text(found.columns.name[rows])
    grids = found.label("grid", rows)
    assert _texts(names) == [event.get("name") for event in written]
    assert _texts(grids) == [_text(_argument(event, "grid")) for event in written]
    assert set(names.categories) == {event["name"] for event in events if "name" in event}
    assert found.whole("correlation", rows).tolist() == [
        -1 if (value := _argument(event, "correlation")) is None else value for event in written
    ]
    numbers = [_number(_argument(event, "bytes")) for event in written]
    np.testing.assert_array_equal(found.number("bytes", rows), numbers)


@given(EVENTS)
def test_two_events_are_on_one_thread_if_they_say_so(events: Events) -> None:
    found = source(columns_of(json.dumps(events)))
    codes = found.thread(np.arange(len(events))).codes.tolist()
    said = [(event.get("pid"), event.get("tid")) for event in events]
    assert len(set(codes)) == len(set(said)) == len(set(zip(codes, said, strict=True)))
