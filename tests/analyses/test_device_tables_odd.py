"""Tables of kernels, copies, counters and the roofline on events that make no sense."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from stepscope.base.errors import MissingDataError
from stepscope.tables import all_tables

TABLES = (
    "kernels",
    "kernels-by-launch",
    "copies",
    "copies-by-owner",
    "memory-sets",
    "counters",
    "counter-samples",
    "roofline",
)
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "x", -1, 0, 1, 2**31, 2**62, -(2**62), 1e300, "1e400", "N/A", True, [], [1], {}, 0.5]
)
TIME = st.sampled_from([0, 1, 5, 40.5, -3, 10**12, 10**15])
CATEGORY = st.sampled_from(["kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime", ""])
NAME = st.sampled_from(
    [
        "",
        "aten::mm",
        "nvjet_tst",
        "Memcpy HtoD (Pinned -> Device)",
        "_Z",
        "_ZN9",
        "a<b",
        "cudaGraphLaunch",
    ]
)
ARGUMENT = st.sampled_from(
    [
        *("bytes", "correlation", "stream", "device", "memory bandwidth (GB/s)", "blocks per SM"),
        *("est. achieved occupancy %", "grid", "Input Dims", "Input type", "kernel_backend", "v"),
        *("shared memory", "registers per thread", "Call stack", "ph"),
    ]
)
ROW = st.builds(
    lambda category, name, start, length, given: [
        category,
        name,
        start,
        length,
        given | ({"ph": "C"} if "ph" in given else {}),
    ],
    CATEGORY,
    NAME,
    TIME,
    TIME,
    st.dictionaries(ARGUMENT, ODD, max_size=5),
)
PROPERTIES = st.lists(st.dictionaries(st.sampled_from(["id", "name", "numSms"]), ODD), max_size=2)


@examples(60)
@given(st.lists(ROW, min_size=1, max_size=12), st.one_of(PROPERTIES, ODD))
def test_odd_events_give_tables_of_the_right_form(rows: list[Any], properties: Any) -> None:
    trace = trace_of(rows, deviceProperties=properties)
    for name in TABLES:
        table: Any = all_tables()[name]
        try:
            frame = table.build(trace)
        except MissingDataError:
            continue
        found = {column: str(dtype) for column, dtype in frame.dtypes.items()}
        assert found == {column.name: column.dtype for column in table.schema}, name


@pytest.mark.parametrize("name", [name for name in TABLES if name != "roofline"])
def test_a_recording_of_nothing_but_a_span_has_no_rows(name: str) -> None:
    trace = trace_of([["Trace", "PyTorch Profiler (0)", 0, 10]])
    table: Any = all_tables()[name]
    assert len(table.build(trace)) == 0
