"""Memory of traces that nobody should write: absurd values cost nothing but themselves."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loading import trace_of
from memorybuild import memory
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace
from stepscope.tables import Table, all_tables

TABLES = (
    "memory-allocations",
    "memory-by-step",
    "memory-curve",
    "memory-fragmentation",
    "memory-growth",
    "memory-holders",
    "memory-holders-by-module",
    "memory-holders-by-stack",
    "memory-leaks",
    "memory-ooms",
    "memory-peak",
    "memory-statistics",
)
ODD = st.one_of(
    st.none(),
    st.sampled_from(
        [0, -1, 1, 2**31, 2**63 - 1, -(2**63), 2**64, 1e308, -1.5, "7", "", "x", [], {}]
    ),
)
KEYS = ("Bytes", "Addr", "Device Type", "Device Id", "Total Allocated", "Total Reserved")


def _checked(trace: Trace) -> None:
    for name in TABLES:
        table = all_tables()[name]
        assert isinstance(table, Table)
        try:
            frame = table.build(trace)
        except MissingDataError:
            continue
        found = {str(column): str(dtype) for column, dtype in frame.dtypes.items()}
        assert found == {column.name: column.dtype for column in table.schema}, name


events = st.lists(
    st.tuples(st.integers(0, 60), st.dictionaries(st.sampled_from(KEYS), ODD), st.integers(1, 3)),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(events)
def test_absurd_events_do_no_harm(odd: list[tuple[int, dict[str, Any], int]]) -> None:
    rows: list[Any] = [
        ["user_annotation", "ProfilerStep#0", 0, 20],
        ["user_annotation", "ProfilerStep#1", 20, 20],
        ["cpu_op", "aten::mm", 5, 10],
        ["cpu_op", "", 5, 0],
        ["python_function", "nn.Module: A_0", 0, 50],
        ["python_function", "a.py(1): f", 30, 5],
        memory(8, "+8@1"),
    ]
    rows += [
        ["cpu_instant_event", name, time, None, {**arguments, "tid": thread}]
        for time, arguments, thread in odd
        for name in ("[memory]", "[OutOfMemory]")
    ]
    _checked(trace_of(json.loads(json.dumps(rows))))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [memory(0, "+8@1")],
        [memory(0, "-8@1")],
        [memory(0, "+8")],
        [memory(5, "+8@1"), ["user_annotation", "ProfilerStep#1", 5, 0]],
        [memory(5, "+8@1"), ["user_annotation", "ProfilerStep#1", 5, 1]],
        [memory(5, "+8@1"), ["user_annotation", "ProfilerStep#1", 900, 1]],
        [memory(5, "+8@1"), *(["user_annotation", "ProfilerStep#1", 3 * n, 9] for n in range(5))],
        [memory(5, "+8@1"), ["cpu_op", "aten::mm", 5, 0]],
    ],
)
def test_traces_of_little_give_tables_of_little(rows: list[Any]) -> None:
    _checked(trace_of([["cpu_op", "aten::add", 0, 1], *rows]))


def test_memory_events_of_the_python_exporter_are_instants_whatever_their_duration() -> None:
    event = memory(5, "+8@1")
    event = [*event[:3], 12_000, event[4]]  # ph X, with a duration that means nothing
    trace = trace_of([["cpu_op", "aten::mm", 0, 10], event])
    from stepscope.analyses.memory.operator_memory import memory_statistics

    assert memory_statistics(trace)["operator"].tolist() == ["aten::mm"]
