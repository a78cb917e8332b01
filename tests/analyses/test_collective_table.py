"""What collectives cost: bandwidths, what computing hides, groups, steps."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import ROOT, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.communication.collective_events import collective_events
from stepscope.analyses.communication.collective_table import SCHEMA, collective_table
from stepscope.analyses.core.collective_bandwidth import bus_factor, bytes_per_second
from stepscope.analyses.core.exposed_communication import computing_times, exposure
from stepscope.analyses.devices.kernel_breakdown import temporal_breakdown
from stepscope.model.trace import Trace

US = 1000
GLOO = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("sample_logs/ranks/*/*.gz"))
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
TOLD = {
    "Collective name": "allreduce",
    "In msg nelems": 1_000_000,
    "Out msg nelems": 1_000_000,
    "dtype": "Float",
    "Group size": 4,
    "Process Group Name": "0",
    "stream": 20,
}


def _reduce(start: int, duration: int, **more: Any) -> list[Any]:
    return ["kernel", REDUCE, start, duration, {**TOLD, **more}]


def _trace() -> Trace:
    return trace_of(
        [
            ["user_annotation", "ProfilerStep#5", 0, 100],
            ["user_annotation", "ProfilerStep#6", 100, 300],
            ["cpu_op", "record_param_comms", 40, 10],
            ["cuda_runtime", "cudaLaunchKernel", 42, 5, {"correlation": 1}],
            ["kernel", "gemm", 90, 60],
            _reduce(100, 100, correlation=1),
            _reduce(300, 50),
            _reduce(360, 10, **{"In msg nelems": 10, "Out msg nelems": 10}),
        ]
    )


def test_each_collective_has_its_bandwidth_its_hidden_time_and_its_step() -> None:
    first, second, third = collective_events(_trace()).to_dict("records")
    assert (first["step"], second["step"], third["step"]) == (5, 6, 6)
    assert (first["overlap_ns"], first["exposed_ns"]) == (50 * US, 50 * US)
    assert (second["overlap_ns"], second["exposed_ns"]) == (0, 50 * US)
    assert first["launch_to_start_ns"] == 60 * US
    assert np.isnan(second["launch_to_start_ns"])
    assert first["algorithm_bytes_per_second"] == pytest.approx(4e6 / 100e-6)
    assert first["bus_bytes_per_second"] == pytest.approx(1.5 * 4e6 / 100e-6)


def test_a_group_a_size_a_row_and_the_longest_first() -> None:
    large, small = collective_table(_trace()).to_dict("records")
    assert (large["message_bytes"], small["message_bytes"]) == (4e6, 40)
    assert (large["call_count"], large["timed_count"], large["total_ns"]) == (2, 2, 150 * US)
    assert (large["mean_ns"], large["min_ns"], large["max_ns"]) == (75 * US, 50 * US, 100 * US)
    assert large["p95_ns"] == pytest.approx(97.5 * US)
    assert large["algorithm_bytes_per_second"] == pytest.approx(8e6 / 150e-6)
    assert large["best_bus_bytes_per_second"] == pytest.approx(1.5 * 4e6 / 50e-6)
    assert (large["overlap_ns"], large["exposed_ns"]) == (50 * US, 100 * US)
    assert large["overlap_share"] == pytest.approx(1 / 3)
    assert large["window_share"] == 0.5  # the window is step 5 with its work: step 6 was cut


def test_collectives_of_which_only_the_call_was_recorded_are_counted_without_time() -> None:
    rows = [
        ["user_annotation", "nccl:all_reduce", 0, 50, {"Input Dims": [[8]], "Input type": ["int"]}]
    ]
    [only] = collective_table(trace_of(rows)).to_dict("records")
    assert (only["call_count"], only["timed_count"], only["total_ns"]) == (1, 0, 0)
    assert np.isnan([only["mean_ns"], only["algorithm_bytes_per_second"]]).all()
    assert only["message_bytes"] == 32


@pytest.mark.parametrize(
    ("kind", "size", "factor"),
    [  # the summary of nccl-tests' PERFORMANCE.md
        ("all_reduce", 8, 2 * 7 / 8),
        ("reduce_scatter", 8, 7 / 8),
        ("all_gather", 8, 7 / 8),
        ("all_to_all", 8, 7 / 8),
        ("broadcast", 8, 1),
        ("reduce", 8, 1),
        ("send", 2, 1),
        ("barrier", 8, np.nan),
        ("all_reduce", np.nan, np.nan),
        ("all_reduce", 0, np.nan),
        ("broadcast", np.nan, 1),
    ],
)
def test_bus_bandwidth_has_nccl_tests_factors(kind: str, size: float, factor: float) -> None:
    kinds = np.array([kind], dtype=object)
    assert bus_factor(kinds, np.array([size], dtype=float)) == pytest.approx(factor, nan_ok=True)


def test_no_time_and_no_size_give_no_bandwidth() -> None:
    rates = bytes_per_second(np.array([8.0, np.nan, 8.0]), np.array([0.0, 5.0, np.nan]))
    assert np.isnan(rates).all()


TIMES = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 20), st.booleans()), min_size=1, max_size=12
)


@given(times=TIMES)
def test_exposed_is_communication_minus_computing(times: list[tuple[int, int, bool]]) -> None:
    rows = [
        _reduce(start, length) if is_collective else ["kernel", "gemm", start, length]
        for start, length, is_collective in times
    ]
    rows = [["kernel", "gemm", 0, 1], *rows]  # the times count from the first event
    trace = trace_of(rows)
    marks = {True: np.zeros(100, dtype=bool), False: np.zeros(100, dtype=bool)}
    marks[False][0] = True
    for start, length, is_collective in times:
        marks[is_collective][start : start + length] = True
    found = exposure(trace, 0, 10**9)
    assert found.communication_ns == marks[True].sum() * US
    assert found.exposed_ns == (marks[True] & ~marks[False]).sum() * US
    events = collective_events(trace)
    together = events["overlap_ns"] + events["exposed_ns"]
    assert (together == events["duration_ns"]).all()


def test_without_a_device_it_is_the_hosts_operators_that_hide_communication() -> None:
    rows = [
        ["cpu_op", "aten::mm", 0, 40],
        ["cpu_op", "c10d::allreduce_", 50, 30],
        ["user_annotation", "gloo:all_reduce", 20, 100, {"tid": 9}],
    ]
    found = exposure(trace_of(rows), 0, 10**9)
    assert (found.communication_ns, found.exposed_ns) == (100 * US, 80 * US)
    assert found.overlap_share == pytest.approx(0.2)


def test_each_device_hides_its_own_communication() -> None:
    rows = [_reduce(0, 100, device=0), ["kernel", "gemm", 0, 100, {"device": 1}]]
    trace = trace_of(rows)
    assert list(collective_events(trace)["exposed_ns"]) == [100 * US]
    assert sorted(computing_times(trace)) == [-1, 0, 1]


@pytest.mark.parametrize("name", [*shared_trace_names(), *GLOO])
def test_figures_of_real_traces_agree_with_each_other(name: str) -> None:
    trace = trace_at(ROOT / name if name in GLOO else SHARED_TRACES / name)
    table, events = collective_table(trace), collective_events(trace)
    assert {c: str(t) for c, t in table.dtypes.items()} == {c.name: c.dtype for c in SCHEMA}
    assert table["call_count"].sum() == len(events)
    assert table["total_ns"].sum() == events["duration_ns"].sum()
    assert (table["overlap_ns"] + table["exposed_ns"] == table["total_ns"]).all()
    whole = exposure(trace, -(2**62), 2**62)
    spans = temporal_breakdown(trace)
    of_devices = spans[spans["span"] == "device"].sort_values("communication_ns")
    if len(of_devices):
        most = of_devices.iloc[-1]
        assert whole.communication_ns == most["communication_ns"]
        assert whole.exposed_ns == most["exposed_communication_ns"]
    assert whole.exposed_ns <= whole.communication_ns <= events["duration_ns"].sum()
