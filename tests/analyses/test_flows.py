"""Flows lead from operators to tasks; those that lead nowhere, or are of another kind, do not."""

import json
from typing import Any

import pytest

from loading import columns_of
from stepscope.analyses.core.links import owner_by_flow
from stepscope.model.trace import trace_from_columns

HOST = {"pid": 700, "tid": 700}
DEVICE = {"pid": 5, "tid": 2}
TASK = {"Task Type": "AI_CORE", "Physic Stream Id": 2}
BEGIN = {"cat": "async_npu", "name": "torch_to_npu", "ph": "s", "id": 1, "ts": 10, **HOST}
END = {"cat": "async_npu", "name": "torch_to_npu", "ph": "f", "id": 1, "ts": 100, **DEVICE}
OTHER_BEGIN, OTHER_END = BEGIN | {"id": 2, "ts": 60}, END | {"id": 2, "ts": 200}


def _owners(*flows: dict[str, Any]) -> list[str | None]:
    """The operator of each of two tasks that begin at 100 and 200 µs, as the flows say."""
    host = {"ph": "X", "cat": "cpu_op", **HOST}
    events = [
        {**host, "name": "aten::linear", "ts": 5, "dur": 50},
        {**host, "name": "aten::mm", "ts": 10, "dur": 20},
        {**host, "name": "aten::t", "ts": 11.5, "dur": 2},
        {**host, "name": "aten::add", "ts": 60, "dur": 20},
        {"ph": "X", "name": "MatMulV2", "ts": 100, "dur": 50, "args": TASK, **DEVICE},
        {"ph": "X", "name": "Add", "ts": 200, "dur": 50, "args": TASK, **DEVICE},
        *flows,
    ]
    trace = trace_from_columns(columns_of(json.dumps(events)), worker="w")
    names = trace.host_calls["name"]
    return [names[row] if row >= 0 else None for row in owner_by_flow(trace)]


@pytest.mark.parametrize(
    ("flows", "owners"),
    [
        ([], [None, None]),
        ([BEGIN, END], ["aten::mm", None]),
        ([END, BEGIN], ["aten::mm", None]),
        # one operator, two tasks
        ([BEGIN, END, END | {"ts": 200}], ["aten::mm", "aten::mm"]),
        ([BEGIN, END, OTHER_BEGIN, OTHER_END], ["aten::mm", "aten::add"]),
        # a float holds an absolute stamp to 250 ns
        ([BEGIN | {"ts": 9.75}, END | {"ts": 100.25}], ["aten::mm", None]),
        ([BEGIN | {"ts": 30}, END], [None, None]),
        ([BEGIN, END | {"ts": 90}], [None, None]),
        ([BEGIN], [None, None]),
        ([END], [None, None]),
        ([BEGIN, END | {"id": 2}], [None, None]),
        ([BEGIN | {"tid": 701}, END], [None, None]),
        ([BEGIN, END | {"tid": 3}], [None, None]),
        ([BEGIN | {"cat": "ac2g"}, END | {"cat": "ac2g"}], [None, None]),
        ([BEGIN | {"ph": "X", "dur": 1}, END], [None, None]),
        ([BEGIN | {"id": None}, END | {"id": None}], [None, None]),
    ],
)
def test_a_task_belongs_to_where_its_flow_begins(
    flows: list[dict[str, Any]], owners: list[str | None]
) -> None:
    assert _owners(*flows) == owners


def test_a_trace_of_nothing_but_flows_has_no_owners() -> None:
    trace = trace_from_columns(columns_of(json.dumps([BEGIN, END])), worker="w")
    assert list(owner_by_flow(trace)) == []
