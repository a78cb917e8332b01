"""The Python call around each operator, against the search that serves any calls."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_of
from stepscope.analyses.core.call_paths import python_callers
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans

SPANS = st.tuples(st.integers(0, 12), st.integers(0, 8), st.integers(1, 2))


def _rows(category: str, found: list[tuple[int, int, int]]) -> list[list[Any]]:
    return [
        [category, f"{category}{n}", start, length, {"tid": tid}]
        for n, (start, length, tid) in enumerate(found)
    ]


@given(st.lists(SPANS, min_size=1, max_size=12), st.lists(SPANS, max_size=6))
def test_it_is_the_innermost_python_call_around_the_start(
    python: list[tuple[int, int, int]], calls: list[tuple[int, int, int]]
) -> None:
    trace = trace_of([*_rows("python_function", python), *_rows("cpu_op", calls)])
    thread, start_ns, _ = spans(trace.host_calls)
    wanted = call_tree.enclosing(spans(trace.python_calls), (thread, start_ns, start_ns))
    found = python_callers(trace).caller
    # of calls that began and ended together, either is the innermost
    span = np.append(np.stack(spans(trace.python_calls), axis=1), [[-1, -1, -1]], axis=0)
    assert span[found].tolist() == span[wanted].tolist()


def test_calls_nested_deeper_than_it_climbs_are_found_too() -> None:
    deep = [["python_function", f"f{n}", n, 1000 - n] for n in range(100)]
    ended = [["python_function", f"g{n}", 200 + n, 200 - 2 * n] for n in range(90)]
    trace = trace_of([*deep, *ended, ["cpu_op", "aten::mm", 500, 1]])
    (row,) = python_callers(trace).caller
    assert trace.python_calls["name"].astype(str)[row] == "f99"
