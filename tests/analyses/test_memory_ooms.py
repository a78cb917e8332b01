"""Running out of memory while recording: what was asked for, and what lay unused."""

from typing import Any

import pytest

from loading import rows_of, trace_of
from memorybuild import memory
from stepscope.analyses.memory.memory_report import SCHEMA, memory_ooms
from stepscope.base.errors import MissingDataError


def _oom(start: float, asked: int, **totals: int) -> list[Any]:
    arguments = {"Bytes": asked, "Device Type": 1, "Device Id": 0}
    told = {f"Total {name.title()}": total for name, total in totals.items()}
    return ["cpu_instant_event", "[OutOfMemory]", start, None, {**arguments, **told}]


@pytest.mark.parametrize(
    ("totals", "cause"),
    [
        ({"allocated": 600, "reserved": 800}, "fragmented"),
        ({"allocated": 700, "reserved": 799}, "full"),
        ({}, "unknown"),
    ],
)
def test_it_says_who_asked_and_why_there_was_not_enough(totals: dict[str, int], cause: str) -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 10], _oom(5, 100, **totals)])
    (row,) = rows_of(memory_ooms(trace))
    assert (row.time_ns, row.device_type, row.device) == (5000, "CUDA", 0)
    assert (row.asked_bytes, row.operator, row.cause) == (100, "aten::mm", cause)


def test_there_is_no_cause_where_what_was_asked_for_is_not_told() -> None:
    row = _oom(5, 100, allocated=600, reserved=800)
    del row[4]["Bytes"]
    table = memory_ooms(trace_of([["cpu_op", "aten::mm", 0, 10], row]))
    assert rows_of(table[["asked_bytes", "unused_bytes", "cause"]]) == [(-1, 200, "unknown")]


def test_outside_operators_nobody_asked() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 1], _oom(5, 100)])
    assert memory_ooms(trace)["operator"].tolist() == [None]


def test_a_trace_that_never_ran_out_has_no_rows_but_all_columns() -> None:
    table = memory_ooms(trace_of([["cpu_op", "aten::mm", 0, 1], memory(0, "+8@1")]))
    assert len(table) == 0
    assert {str(name): str(kind) for name, kind in table.dtypes.items()} == {
        column.name: column.dtype for column in SCHEMA
    }


def test_where_no_memory_was_recorded_nobody_can_tell() -> None:
    with pytest.raises(MissingDataError, match="no memory was recorded"):
        memory_ooms(trace_of([["cpu_op", "aten::mm", 0, 1]]))
