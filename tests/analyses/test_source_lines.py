"""The user's line behind each device event, beside asking for one after the other."""

import numpy as np
import pytest

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.event_references import lines_of_device_events, source_line, user_line
from stepscope.analyses.core.links import links
from stepscope.model.trace import Trace

SOME = 150


def _line(trace: Trace, row: int) -> str | None:
    """One event's line, the slow way."""
    owner = int(links(trace).owner_of_device_event[row])
    stack = trace.host_calls["call_stack"].iloc[owner] if owner >= 0 else None
    if isinstance(stack, str) and (listed := user_line(stack.split(";"))):
        return listed
    launch = int(links(trace).call_of_device_event[row])
    if launch < 0:
        return None
    call = trace.runtime_calls.iloc[launch]
    start_ns, end_ns = int(call["start_ns"]), int(call["end_ns"])
    return source_line(trace, str(call["thread"]), start_ns, end_ns) or None


@pytest.mark.parametrize("name", shared_trace_names())
def test_lines_are_those_of_asking_for_one_after_the_other(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    count = len(trace.device_events)
    rows = np.arange(count)[:: max(1, count // SOME)]
    found = lines_of_device_events(trace, rows)
    expected = [_line(trace, row) for row in rows.tolist()]
    assert [line if isinstance(line, str) else None for line in found] == expected


def test_the_innermost_of_the_users_functions_is_the_line() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(30): main", 0, 100],
            ["python_function", "model.py(5): forward", 10, 50],
            ["python_function", "torch/nn/functional.py(1): linear", 12, 40],
            ["cuda_runtime", "cudaLaunchKernel", 20, 5, {"correlation": 1}],
            ["cuda_runtime", "cudaLaunchKernel", 70, 5, {"correlation": 2}],
            ["cuda_runtime", "cudaLaunchKernel", 200, 5, {"correlation": 3}],
            *(["kernel", "k", 300 + n, 1, {"correlation": n}] for n in range(5)),
        ]
    )
    lines = lines_of_device_events(trace, np.arange(5))
    assert lines.tolist()[1:3] == ["model.py(5): forward", "train.py(30): main"]
    assert lines.isna().tolist() == [True, False, False, True, True]
