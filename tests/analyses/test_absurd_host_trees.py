"""Traces of absurd values: modules, stacks, functions and cuts of them fail in no other way."""

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from generated import examples
from stepscope.analyses.core.trace_cut import cut
from stepscope.analyses.host.call_stacks import call_stacks
from stepscope.analyses.host.function_costs import function_costs
from stepscope.analyses.host.host_call_tree import host_flame
from stepscope.analyses.host.module_table import class_table, module_table
from stepscope.analyses.host.python_time import python_time
from stepscope.base.errors import MissingDataError, UnreadableError
from stepscope.model.read import read_trace
from stepscope.render import speedscope, stack_file, trace_excerpt
from stepscope.storage import discover

TIMES = st.sampled_from([0, 1, 5.5, -7, 10**13, -(10**13), 4.6e15, "12", "N/A", None, 1e300])
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "Sequence number": st.sampled_from([-1, 0, 3, 2**62, "x"]),
        "Fwd thread id": st.sampled_from([0, 1, -5, 2**62, None]),
        "Call stack": st.sampled_from(["", ";;", "a.py(3): f;b.py(4): g", "x"]),
        "correlation": st.sampled_from([-1, 0, 1, 2**62]),
        "Python id": st.sampled_from([0, 1, 1, -1]),
        "Bytes": st.sampled_from([0, 512, -512, 2**62]),
        "Device Type": st.sampled_from([0, 1, 77]),
    },
)
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from(["X", "X", "X", "i", "s", "f", "M", "C"]),
            "cat": st.sampled_from(
                ["cpu_op", "python_function", "user_annotation", "cuda_runtime", "kernel", "fwdbwd"]
            ),
            "ts": TIMES,
            "dur": TIMES,
        },
        optional={
            "name": st.sampled_from(
                [
                    "nn.Module: Linear_0",
                    "nn.Module: ",
                    "a.py(3): f",
                    "autograd::engine::evaluate_function: AddBackward0",
                    "AddBackward0",
                    "[pl][module]X: y",
                    "[memory]",
                    "ProfilerStep#1",
                    "<built-in method run_backward of x>",
                    "",
                ]
            ),
            "pid": st.sampled_from([1, "x", None]),
            "tid": st.sampled_from([1, 2, ""]),
            "id": st.sampled_from([1, 2, None]),
            "args": ARGUMENTS,
        },
    ),
    min_size=1,
    max_size=14,
)


@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_nothing_else_goes_wrong(tmp_path: Path, events: list[dict[str, Any]]) -> None:
    path = tmp_path / "worker.1.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    (file,) = discover.at(str(path))
    try:
        trace = read_trace(file)
    except UnreadableError:
        return
    for table in (module_table, class_table, function_costs, python_time):
        with suppress(MissingDataError):
            table(trace)
    flame = host_flame(trace)
    assert json.loads("".join(speedscope.parts(flame, "self-cpu", "worker")))
    with suppress(MissingDataError):
        assert all(
            line.endswith("\n")
            for line in stack_file.collapsed_lines(call_stacks(trace), "self-cpu")
        )
    sink = io.BytesIO()
    trace_excerpt.write_events(trace, cut(trace, -(10**18), 10**18), sink)
    assert len(json.loads(sink.getvalue())["traceEvents"]) <= len(events)
