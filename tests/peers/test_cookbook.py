"""The recipe's tour: our tables and stacks against what torch said of the same spans, as kept.

`sample_logs/record/cookbook.py` wrote torch's own answers beside its traces, so that this needs no
torch. What the profiles of today's torch hold besides is in `test_key_averages.py`.
"""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loading import SAMPLE_LOGS, rows_of, trace_at
from stepscope.analyses.host.call_stacks import call_stacks
from stepscope.analyses.operators.operator_table import Grouping, operator_table
from stepscope.model.trace import Trace
from stepscope.render import stack_file

US = 1000
SPANS = (("long_job", 1), ("long_job", 2), ("with_stacks", 1))
Key = tuple[str, str]
Figures = tuple[int, ...]


@cache
def torch_said(run: str, span: int) -> dict[str, list[Any]]:
    path = SAMPLE_LOGS / "cookbook" / run / f"torch.span{span}.json"
    found: dict[str, list[Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


@cache
def trace_of_span(run: str, span: int) -> Trace:
    return trace_at(traces(run)[span - 1])


def traces(run: str) -> list[Path]:
    return sorted((SAMPLE_LOGS / "cookbook" / run).glob("*.pt.trace.json.gz"))


def theirs(run: str, span: int, table: str) -> dict[Key, Figures]:
    """By name and group: calls, total and self ns, total and self bytes."""
    found = {}
    for name, group, calls, total_us, self_us, *sizes in torch_said(run, span)[table]:
        if name != "[memory]":  # what is allocated outside of all calls is in no row of ours
            times = (round(total_us * US), round(self_us * US))
            found[name, _text(group)] = (calls, *times, *sizes)
    return found


def ours(run: str, span: int, by: Grouping) -> dict[Key, Figures]:
    """The same of our own table; rows that torch does not tell apart are put together."""
    found: dict[Key, list[int]] = defaultdict(lambda: [0] * 5)
    for row in rows_of(operator_table(trace_of_span(run, span), by=by)):
        figures = (
            row.call_count,
            row.host_total_ns,
            row.host_self_ns,
            row.host_total_bytes,
            row.host_self_bytes,
        )
        for place, figure in enumerate(figures):
            found[row.name, _group(row, by)][place] += int(figure)
    return {key: tuple(sums) for key, sums in found.items()}


def _group(row: Any, by: Grouping) -> str:
    if by == "shape":
        inputs = json.loads(row.input_dims) if row.input_dims is not None else []
        return _text([[] if dims and isinstance(dims[0], list) else dims for dims in inputs])
    if by == "stack":
        return _text(row.stack.split(";") if row.stack else [])
    return _text(None)


def _text(group: Any) -> str:
    return json.dumps(group, separators=(",", ":"))


@pytest.mark.parametrize(("run", "span"), SPANS[:2])
@pytest.mark.parametrize(("by", "table"), [("name", "by_name"), ("shape", "by_shape")])
def test_each_span_of_the_long_job_has_the_figures_that_torch_gave_it(
    run: str, span: int, by: Grouping, table: str
) -> None:
    said = theirs(run, span, table)
    assert ours(run, span, by) == said
    labels = [figures for (name, _), figures in said.items() if name == "model_inference"]
    assert sum(calls for calls, *_ in labels) == 5
    assert max(figures[3] for figures in said.values()) > 0  # memory was recorded


def test_the_spans_of_the_long_job_are_those_of_its_schedule() -> None:
    # skip 10, then twice: wait 5, warm up 1, record 5
    assert [trace_of_span("long_job", span).steps["number"].tolist() for span in (1, 2)] == [
        list(range(16, 21)),
        list(range(27, 32)),
    ]
    settings = (theirs("long_job", 1, "by_name"), theirs("long_job", 2, "by_name"))
    assert settings[0].keys() == settings[1].keys()
    assert settings[0] != settings[1]  # so that the test above cannot pass with spans exchanged


def test_by_stack_calls_and_totals_are_those_that_torch_gave() -> None:
    """Self time and own memory differ there: torch takes the Python functions within off."""
    frames = torch_said("with_stacks", 1)["frames"]
    said: dict[Key, list[int]] = defaultdict(lambda: [0, 0])
    for name, numbers, calls, total_us, *_ in torch_said("with_stacks", 1)["by_stack"]:
        if name != "[memory]":
            figures = said[name, _text([frames[number] for number in numbers])]
            figures[0] += calls
            figures[1] += round(total_us * US)
    found = ours("with_stacks", 1, "stack")
    assert {key: list(figures[:2]) for key, figures in found.items()} == said
    assert len(found) > 100


def test_the_flame_graph_of_own_time_is_that_of_export_stacks() -> None:
    """torch cuts each line down to whole microseconds, and from a float: one less may be lost."""
    said = torch_said("with_stacks", 1)
    theirs_us = {
        ";".join(said["frames"][number] for number in numbers): (lines, us)
        for numbers, lines, us in said["by_whole_stack"]
    }
    stacks = call_stacks(trace_of_span("with_stacks", 1))
    ours_us: dict[str, list[int]] = defaultdict(list)
    for stack, self_ns in zip(stacks.stack.tolist(), stacks.host_self_ns.tolist(), strict=True):
        functions = ";".join(stack_file.collapsed_frames(stacks.frames(stack)))
        if functions and self_ns >= US:
            ours_us[functions].append(self_ns // US)
    assert theirs_us.keys() <= ours_us.keys()
    for functions, values in ours_us.items():
        lines, us = theirs_us.get(functions, (0, 0))
        assert sum(values) - len(values) <= us <= sum(values), functions
        assert lines <= len(values)
    assert len(theirs_us) > 200
