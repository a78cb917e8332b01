"""Whatever a file holds, every check gets through it, and what it yields can be sent and shown."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import columns_of
from stepscope.advice import file_health
from stepscope.analyses.health import health
from stepscope.base.report import FileHealth, HealthReport
from stepscope.model.trace import trace_from_columns
from stepscope.render import health_report

NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-10, 400),
    st.integers(-(2**64), 2**64),
    st.floats(allow_nan=False, width=32),
    st.sampled_from([None, "12.5", "x", [], 1e300]),
)
IDS: st.SearchStrategy[Any] = st.one_of(
    st.integers(-1, 4), st.sampled_from([2**63, -1.5, "7", None, [1]])
)
KINDS = st.sampled_from(
    [
        ("cpu_op", "aten::mm"),
        ("user_annotation", "ProfilerStep#1"),
        ("user_annotation", "ProfilerStep#2"),
        ("cuda_runtime", "cudaLaunchKernel"),
        ("cuda_runtime", "cudaGraphLaunch"),
        ("cuda_runtime", "cudaStreamBeginCapture"),
        ("cuda_runtime", "cudaStreamEndCapture"),
        ("kernel", "gemm"),
        ("kernel", "ncclDevKernel_AllReduce"),
        ("gpu_memcpy", "Memcpy HtoD"),
        ("cpu_instant_event", "[memory]"),
        ("python_function", "train.py(1): main"),
        ("kernel", None),
        ("odd \x1b[31m", "odd \u202e\n"),
    ]
)


@st.composite
def events(draw: st.DrawFn) -> dict[str, Any]:
    category, name = draw(KINDS)
    arguments = st.fixed_dictionaries(
        {},
        optional={
            "correlation": IDS,
            "stream": IDS,
            "device": IDS,
            "graph id": IDS,
            "Device Type": IDS,
            "Total Allocated": IDS,
        },
    )
    return {
        "ph": draw(st.sampled_from(["X", "X", "X", "i", "M"])),
        "cat": category,
        "name": name,
        "pid": draw(IDS),
        "tid": draw(IDS),
        "ts": draw(NUMBERS),
        "dur": draw(NUMBERS),
        "args": draw(arguments),
    }


HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "baseTimeNanoseconds": NUMBERS,
        "distributedInfo": st.sampled_from([None, [], {"rank": "x"}, {"rank": 0, "world_size": 2}]),
        "deviceProperties": st.sampled_from([None, {}, [1], [{"id": 0}]]),
        "with_flops": st.sampled_from([1, True, "yes", [1]]),
    },
)


@pytest.mark.slow
@examples(300)
@given(st.lists(events(), min_size=1, max_size=25), HEADERS)
def test_every_check_gets_through(rows: list[dict[str, Any]], header: dict[str, Any]) -> None:
    content = json.dumps({**header, "traceEvents": rows})
    trace = trace_from_columns(columns_of(content), worker="w")
    kinds = [item.kind for item in health(trace)]
    assert "failed-check" not in kinds
    assert len(kinds) == len(set(kinds))
    file = file_health(trace, run="run", file_bytes=1)
    assert msgspec.json.decode(msgspec.json.encode(file), type=FileHealth) == file
    for item in file.health:
        assert item.of_count is None or 0 < item.count <= item.of_count
        for example in item.examples:
            assert 0 <= example.offset_bytes <= len(content.encode())
    report = HealthReport((file,))
    assert health_report.text(report)
    assert health_report.markdown(report)
