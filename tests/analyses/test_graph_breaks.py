"""Calls of compiled code from within compiled code, and what passes between them."""

from typing import Any

from loading import trace_of
from stepscope.analyses.compiled.compiled_regions import graph_breaks
from stepscope.base.findings import SourceLine


def region(name: str, start: float, end: float) -> list[Any]:
    return ["user_annotation", f"Torch-Compiled Region: {name}", start, end - start]


def test_between_two_regions_is_what_follows_the_last_call_but_for_guards() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::ones", 0, 1],
            region("0/0", 10, 100),
            ["cpu_op", "CompiledFunction", 11, 20],
            ["cpu_op", "aten::item", 40, 5],
            ["user_annotation", "TorchDynamo Cache Lookup", 60, 5],
            region("1/0", 70, 90),
            ["cpu_op", "aten::ones", 200, 1],
            ["python_function", "m.py(7): torch_dynamo_resume_in_forward_at_9", 46, 50],
        ]
    )
    found = graph_breaks(trace)
    assert found.times(trace).tolist() == [[45_000, 70_000]]
    assert found.between == ("aten::item",)
    assert found.lines == (SourceLine(path="m.py", line=9, function="forward"),)


def test_what_is_called_first_was_left_when_the_region_began() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::ones", 0, 1],
            region("0/0", 10, 100),
            region("1/0", 30, 90),
            ["cpu_op", "aten::ones", 200, 1],
        ]
    )
    assert graph_breaks(trace).times(trace).tolist() == [[10_000, 30_000]]


def test_regions_beside_each_other_and_outside_of_the_window_are_no_breaks() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 100],
            region("0/0", 10, 20),
            region("1/0", 30, 40),
            region("0/0", 200, 300),
            region("1/0", 210, 220),
        ]
    )
    found = graph_breaks(trace)
    assert not len(found.entered)
    assert (found.between, found.lines) == ((), ())
