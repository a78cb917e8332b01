"""The critical path: what each kind of wait looks like, and that nothing of a step is left out."""

from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from generated import examples
from loading import ROOT, rows_of, trace_at, trace_of
from stepscope.analyses.idle import device_waits, host_waits
from stepscope.analyses.idle.critical_path import NAMES, critical_path
from stepscope.analyses.idle.critical_path_tables import (
    critical_path_hotspots,
    critical_path_segments,
    critical_path_summary,
)
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

US = 1000
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
Part = tuple[str, str | None, float]


def path_of(rows: list[list[Any]]) -> list[Part]:
    """The segments in time's order: what bounds them, the name, and how long (us)."""
    table = critical_path_segments(trace_of(rows))
    return [(row.bound_by, row.name, row.duration_ns / US) for row in rows_of(table)]


def launch(number: int, start: float, kernel: list[Any], **more: Any) -> list[list[Any]]:
    name, begin, duration = kernel
    call = ["cuda_runtime", "cudaLaunchKernel", start, 2, {"correlation": number}]
    category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
    return [call, [category, name, begin, duration, {"correlation": number, **more}]]


def step(start: float, duration: float, number: int = 1) -> list[Any]:
    return ["user_annotation", f"ProfilerStep#{number}", start, duration]


def test_a_device_that_is_never_idle_bounds_the_step() -> None:
    rows = [
        step(0, 10),
        *launch(1, 1, ["a", 5, 40]),
        *launch(2, 3, ["b", 46, 50]),
    ]
    assert path_of(rows) == [
        ("cpu", "cudaLaunchKernel", 1),
        ("launch", "a", 4),
        ("compute", "a", 40),
        ("kernel_gap", "b", 1),
        ("compute", "b", 50),
    ]


def test_a_host_that_is_late_bounds_the_step() -> None:
    rows = [
        step(0, 60),
        ["cpu_op", "aten::slow", 2, 48],
        *launch(1, 4, ["a", 10, 5]),
        *launch(2, 45, ["b", 55, 25]),
    ]
    assert path_of(rows) == [
        ("cpu", "aten::slow", 2),  # until it begins
        ("cpu", "aten::slow", 43),
        ("launch", "b", 10),
        ("compute", "b", 25),
    ]


def test_a_wait_leads_from_the_host_to_what_it_waited_for() -> None:
    rows = [
        step(0, 100),
        *launch(1, 2, ["a", 10, 50]),
        ["cuda_runtime", "cudaDeviceSynchronize", 6, 57, {"correlation": 9}],
        ["cpu_op", "aten::later", 70, 20],
    ]
    assert path_of(rows) == [
        ("cpu", "cudaLaunchKernel", 2),
        ("launch", "a", 8),
        ("compute", "a", 50),
        ("sync_wait", "cudaDeviceSynchronize", 3),
        ("cpu", "aten::later", 7),
        ("cpu", "aten::later", 20),
        ("cpu", "aten::later", 10),  # until the step's end
    ]


def test_a_wait_for_what_had_ended_leads_nowhere() -> None:
    rows = [
        step(0, 100),
        *launch(1, 2, ["a", 5, 10]),
        ["cuda_runtime", "cudaDeviceSynchronize", 40, 30, {"correlation": 9}],
    ]
    assert {part[0] for part in path_of(rows)} == {"cpu"}


def test_a_copy_that_blocks_waits_for_itself() -> None:
    copy = ["Memcpy DtoH (Device -> Pageable)", 50, 10]
    [_, device] = launch(2, 8, copy)
    call = ["cuda_runtime", "cudaMemcpyAsync", 8, 55, {"correlation": 2}]
    rows = [step(0, 70), *launch(1, 2, ["a", 10, 38]), call, device]
    assert path_of(rows)[-4:] == [
        ("kernel_gap", copy[0], 2),
        ("copy", copy[0], 10),
        ("sync_wait", "cudaMemcpyAsync", 3),
        ("cpu", "cudaMemcpyAsync", 7),
    ]


def test_the_backward_pass_follows_the_forward_pass_and_the_optimizer_follows_it() -> None:
    other = {"tid": 200}
    rows = [
        step(0, 100),
        ["user_annotation", "backward", 22, 50],
        ["cpu_op", "aten::forward", 0, 20],
        ["cpu_op", "AddmmBackward0", 25, 20, other],
        ["cpu_op", "MulBackward0", 46, 24, other],
        ["cpu_op", "aten::optimizer", 75, 25],
    ]
    table = critical_path_segments(trace_of(rows))
    assert [(row.name, row.thread, row.duration_ns / US) for row in rows_of(table)] == [
        ("aten::forward", "100/100", 20),
        ("AddmmBackward0", "100/200", 5),
        ("AddmmBackward0", "100/200", 20),
        ("MulBackward0", "100/200", 1),
        ("MulBackward0", "100/200", 24),
        ("aten::optimizer", "100/100", 5),
        ("aten::optimizer", "100/100", 25),
    ]


def test_a_thread_without_operators_hands_nothing_over() -> None:
    watchdog = ["cuda_runtime", "cudaEventQuery", 11, 2, {"tid": 300}]
    rows = [step(0, 30), ["cpu_op", "aten::a", 0, 10], watchdog, ["cpu_op", "aten::b", 15, 15]]
    assert path_of(rows) == [("cpu", "aten::a", 10), ("cpu", "aten::b", 5), ("cpu", "aten::b", 15)]


def test_time_in_the_loader_is_told_apart_from_the_rest_of_the_host() -> None:
    rows = [
        step(0, 100),
        ["user_annotation", LOADER, 5, 40],
        ["cpu_op", "aten::stack", 30, 10],
        ["cpu_op", "aten::mm", 60, 40],
    ]
    assert path_of(rows) == [
        ("cpu", "aten::stack", 5),
        ("data_loading", "aten::stack", 25),
        ("data_loading", "aten::stack", 10),
        ("data_loading", "aten::mm", 5),
        ("cpu", "aten::mm", 15),
        ("cpu", "aten::mm", 40),
    ]


def _two_streams(*records: list[Any]) -> list[list[Any]]:
    return [
        step(0, 20),
        *launch(1, 0, ["a", 5, 500], stream=7),
        ["cuda_runtime", "cudaEventRecord", 3, 1, {"correlation": 50}],
        ["cuda_runtime", "cudaStreamWaitEvent", 5, 1, {"correlation": 51}],
        *launch(2, 7, ["ncclDevKernel_AllReduce", 507, 100], stream=20),
        *records,
    ]


def test_a_stream_waits_for_an_event_of_another() -> None:
    record = ["cuda_sync", "Stream Wait Event", 5, 1]
    told = {
        "stream": 20,
        "wait_on_stream": 7,
        "wait_on_cuda_event_record_corr_id": 50,
        "correlation": 51,
        "device": 0,
    }
    expected: list[Part] = [
        ("launch", "a", 5),
        ("compute", "a", 500),
        ("kernel_gap", "ncclDevKernel_AllReduce", 2),
        ("communication", "ncclDevKernel_AllReduce", 100),
    ]
    assert path_of(_two_streams([*record, told])) == expected
    assert not critical_path(trace_of(_two_streams([*record, told]))).is_inferred.any()


def test_without_records_a_long_delay_is_taken_for_a_wait_between_streams() -> None:
    path = critical_path(trace_of(_two_streams()))
    assert [NAMES[bound] for bound in path.bound] == [
        "launch",
        "compute",
        "kernel_gap",
        "communication",
    ]
    assert path.is_inferred.tolist() == [False, False, True, False]


def test_a_recording_that_tells_waits_is_believed_where_it_tells_none() -> None:
    record = ["cuda_sync", "Context Sync", 900, 1, {"correlation": 77, "device": 0}]
    rows = [row for row in _two_streams(record) if row[1] != "cudaStreamWaitEvent"]
    assert "launch" in {part[0] for part in path_of(rows)[-2:]}


def test_a_host_that_waits_for_one_stream_does_not_wait_for_another() -> None:
    def waits(records: list[list[Any]]) -> list[str]:
        rows = [
            step(0, 100),
            *launch(1, 0, ["mine", 5, 30], stream=7),
            *launch(2, 3, ["other", 6, 33], stream=20),
            ["cuda_runtime", "cudaStreamSynchronize", 6, 36, {"correlation": 9}],
            *records,
        ]
        return [str(name) for bound, name, _ in path_of(rows) if bound == "compute"]

    def told(stream: int) -> list[list[Any]]:
        more = {"stream": stream, "correlation": 9, "device": 0}
        return [["cuda_sync", "Stream Sync", 6, 36, more]]

    assert waits([]) == ["other"], "what ended last"
    assert waits(told(7)) == ["mine"]
    assert waits(told(33)) == [], "a stream that had no work"


def test_work_that_takes_no_time_may_wait_for_itself() -> None:
    rows = [
        step(0, 100),
        ["cuda_runtime", "cudaMemcpy", 50, 10, {"correlation": 1}],
        ["gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 60, 0, {"correlation": 1}],
    ]
    assert sum(part[2] for part in path_of(rows)) == 100


def edges_of(rows: list[list[Any]]) -> list[tuple[str, str | None, str | None]]:
    """Of each activity on the path in time's order: its name, its edge, and what it awaited."""
    trace = trace_of(rows)
    names = [str(row[1]) for row in rows]
    table = critical_path_segments(trace)
    found = [
        (row.name, row.edge, names[row.awaited_event] if row.awaited_event >= 0 else None)
        for row in rows_of(table)
    ]
    return [edge for at, edge in enumerate(found) if at == 0 or found[at - 1] != edge]


def test_each_activity_names_what_it_waited_for() -> None:
    rows = [
        step(0, 100),
        *launch(1, 2, ["a", 10, 20]),
        *launch(2, 4, ["b", 31, 29]),
        ["cuda_runtime", "cudaDeviceSynchronize", 6, 57, {"correlation": 9}],
        ["cpu_op", "aten::later", 70, 20],
    ]
    assert edges_of(rows) == [
        ("cudaLaunchKernel", None, None),
        ("a", "launch", "cudaLaunchKernel"),
        ("b", "stream", "a"),
        ("cudaDeviceSynchronize", "sync", "b"),
        ("aten::later", "thread", "cudaDeviceSynchronize"),
    ]


def test_a_call_names_the_call_of_another_thread_that_it_follows() -> None:
    rows = [
        step(0, 100),
        ["cpu_op", "aten::forward", 0, 20],
        ["cpu_op", "AddmmBackward0", 25, 20, {"tid": 200}],
        ["cpu_op", "MulBackward0", 46, 24, {"tid": 200}],
    ]
    assert edges_of([*rows, ["cpu_op", "aten::optimizer", 75, 25]])[1:] == [
        ("AddmmBackward0", "other_thread", "aten::forward"),
        ("MulBackward0", "thread", "AddmmBackward0"),
        ("aten::optimizer", "other_thread", "MulBackward0"),
    ]


def test_a_wait_between_streams_is_recorded_or_inferred() -> None:
    record = ["cuda_sync", "Stream Wait Event", 5, 1]
    told = {"stream": 20, "wait_on_stream": 7, "correlation": 51, "device": 0}
    told["wait_on_cuda_event_record_corr_id"] = 50
    assert edges_of(_two_streams([*record, told]))[-1] == ("ncclDevKernel_AllReduce", "event", "a")
    assert edges_of(_two_streams())[-1] == ("ncclDevKernel_AllReduce", "inferred", "a")


@pytest.mark.parametrize(
    "run", ["synthetic_dataloader/fault", "synthetic_item_sync/fault", "ranks/balanced"]
)
def test_the_awaited_event_is_the_one_before_on_the_path(run: str) -> None:
    """Or within it: on the host, segments name the outermost call."""
    trace = trace_at(next((ROOT / "sample_logs" / run).glob("*.json.gz")))
    table, columns = critical_path_segments(trace), trace.columns
    end_ns = columns.start_ns + np.maximum(columns.duration_ns, 0)
    before, after = table.iloc[:-1], table.iloc[1:]
    event, awaited = before["event"].to_numpy(), after["awaited_event"].to_numpy()
    keys = ["edge", "awaited_event", "thread", "stream"]
    is_other = (before[keys].to_numpy() != after[keys].to_numpy()).any(axis=1)
    is_hop = is_other & (awaited >= 0) & (before["step"].to_numpy() == after["step"].to_numpy())
    assert is_hop.sum() > 50
    event, awaited = event[is_hop], awaited[is_hop]
    assert (columns.start_ns[event] <= columns.start_ns[awaited]).all()
    assert (end_ns[awaited] <= end_ns[event]).all()


def test_the_summary_counts_every_step_and_all_together() -> None:
    rows = [
        step(0, 10, 1),
        *launch(1, 1, ["a", 5, 35]),
        step(40, 10, 2),
        *launch(2, 41, ["a", 45, 3]),
    ]
    table = critical_path_summary(trace_of(rows))
    assert len(table) == 3 * len(NAMES)
    some = table[table["total_ns"] > 0]
    assert [(row.step, row.bound_by, row.total_ns / US) for row in rows_of(some)] == [
        ("ProfilerStep#1", "cpu", 1),
        ("ProfilerStep#1", "compute", 35),
        ("ProfilerStep#1", "launch", 4),
        ("ProfilerStep#2", "cpu", 10),
        (None, "cpu", 11),
        (None, "compute", 35),
        (None, "launch", 4),
    ]
    assert some["step_share"].to_numpy() == pytest.approx([0.025, 0.875, 0.1, 1, 0.22, 0.7, 0.08])


def test_hot_spots_are_innermost_calls_and_device_work() -> None:
    rows = [
        step(0, 60),
        ["cpu_op", "aten::linear", 10, 40],
        ["cpu_op", "aten::addmm", 20, 28],
        *launch(1, 45, ["gemm", 55, 25]),
    ]
    table = critical_path_hotspots(trace_of(rows))
    assert [(row.name, row.bound_by, row.count, row.path_ns / US) for row in rows_of(table)] == [
        ("aten::addmm", "cpu", 1, 25),
        ("gemm", "compute", 1, 25),
        (None, "cpu", 1, 10),
        ("aten::linear", "cpu", 1, 10),
        ("gemm", "launch", 1, 10),
    ]
    assert table["path_share"].sum() == pytest.approx(1)


def test_a_recording_of_nothing_has_no_path() -> None:
    with pytest.raises(MissingDataError):
        critical_path_segments(trace_of([["Trace", "PyTorch Profiler (0)", 0, 10]]))


@pytest.mark.parametrize(
    ("log", "bounds", "least", "most"),
    [
        ("synthetic_dataloader", ("data_loading",), 0.4, 0.01),
        ("synthetic_item_sync", ("cpu", "launch", "sync_wait"), 0.1, 0.01),
        ("synthetic_tiny_batch", ("cpu",), 0.9, 0.1),
    ],
)
def test_a_fault_stands_on_the_path_and_its_fix_does_not(
    log: str, bounds: tuple[str, ...], least: float, most: float
) -> None:
    def share(half: str) -> float:
        [path] = (ROOT / "sample_logs" / log / half).glob("*.gz")
        table = critical_path_summary(trace_at(path))
        whole = table[table["step"].isna() & table["bound_by"].isin(bounds)]
        return float(whole["step_share"].sum())

    assert share("fault") > least
    assert share("fix") < most


# Laws

HOST = st.tuples(
    st.sampled_from(["op", "launch", "cudaDeviceSynchronize", "cudaStreamSynchronize"]),
    st.integers(0, 120),
    st.integers(0, 30),
    st.sampled_from([100, 200]),
    st.integers(0, 6),
)
DEVICE = st.tuples(
    st.integers(0, 6), st.integers(0, 200), st.integers(0, 40), st.sampled_from([7, 20])
)
RECORD = st.tuples(
    st.sampled_from(["Stream Wait Event", "Stream Sync", "Event Sync", "Context Sync"]),
    st.integers(0, 6),
    st.integers(-1, 6),
    st.sampled_from([7, 20]),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rows: list[list[Any]] = []
    for place, (kind, start, duration, thread, number) in enumerate(draw(st.lists(HOST))):
        more: dict[str, Any] = {"tid": thread}
        name = {"op": f"aten::op{place}", "launch": "cudaLaunchKernel"}.get(kind, kind)
        if kind != "op":
            more["correlation"] = number
        rows.append(["cpu_op" if kind == "op" else "cuda_runtime", name, start, duration, more])
    for number, start, duration, stream in draw(st.lists(DEVICE)):
        rows.append(["kernel", "k", start, duration, {"correlation": number, "stream": stream}])
    for name, number, recorded, stream in draw(st.lists(RECORD, max_size=4)):
        told = {"correlation": number, "stream": stream, "wait_on_stream": 27 - stream}
        told |= {"wait_on_cuda_event_record_corr_id": recorded, "device": 0}
        rows.append(["cuda_sync", name, 0, 1, told])
    if draw(st.booleans()):
        rows += [step(0, 60, 1), step(60, 60, 2)]
    return trace_of([*rows, ["cpu_op", "aten::always", 30, 5]])


@examples(40)
@given(traces())
def test_the_segments_of_a_step_are_the_step(trace: Trace) -> None:
    path, steps = critical_path(trace), step_breakdown(trace)
    assert (path.duration_ns > 0).all()
    for number, (start, duration) in enumerate(zip(steps.start_ns, steps.duration_ns, strict=True)):
        mine = np.flatnonzero(path.step == number)
        bounds = [start, *path.end_ns[mine]]
        assert path.start_ns[mine].tolist() == bounds[:-1]
        assert bounds[-1] == start + duration
    if len(path.step):
        summary = critical_path_summary(trace)
        assert summary["total_ns"].sum() == 2 * steps.duration_ns.sum()


@examples(40)
@given(traces())
def test_running_segments_lie_within_what_runs(trace: Trace) -> None:
    path = critical_path(trace)
    events = trace.device_events
    on_device = (path.device_event >= 0) & path.is_running
    row = path.device_event[on_device]
    assert (path.start_ns[on_device] >= events["start_ns"].to_numpy()[row]).all()
    assert (path.end_ns[on_device] <= events["end_ns"].to_numpy()[row]).all()
    host = host_waits.host_waits(trace)
    on_host = (path.stretch >= 0) & path.is_running
    stretch = path.stretch[on_host]
    assert (path.start_ns[on_host] >= host.start_ns[stretch]).all()
    assert (path.end_ns[on_host] <= host.end_ns[stretch]).all()


@examples(40)
@given(traces())
def test_work_on_a_device_waits_for_the_last_of_its_predecessors(trace: Trace) -> None:
    """Against a search of everything, where no synchronization is recorded."""
    if len(trace.synchronization_events):
        return
    waits = device_waits.device_waits(trace)
    events, calls = trace.device_events, trace.runtime_calls
    for row, event in enumerate(events.itertuples()):
        launches = calls[(calls["correlation"] == event.correlation)]["start_ns"].tolist()[:1]
        before = events.iloc[:row]
        ends = before[before["stream"] == event.stream]["end_ns"].tolist()
        done = [min(moment, event.start_ns) for moment in (*launches, *ends)]
        ready = max(done, default=event.start_ns)
        assert waits.ready_ns[row] >= ready
        if waits.edge[row] != device_waits.INFERRED:
            assert waits.ready_ns[row] == ready


def _slow_activities(trace: Trace) -> list[tuple[int, int, int]]:
    """Each thread's outermost operators and runtime calls: thread, start and end, in order."""
    host, calls = trace.operators, trace.runtime_calls
    found = []
    for thread in sorted({*host["thread"].cat.codes, *calls["thread"].cat.codes}):
        spans = [
            (row.start_ns, row.end_ns)
            for frame in (host, calls)
            for row in rows_of(frame[frame["thread"].cat.codes == thread])
        ]
        united: list[list[int]] = []
        for start, end in sorted(spans, key=itemgetter(0)):  # of equal ones, as they came
            if united and start < united[-1][1]:
                united[-1][1] = max(united[-1][1], end)
            else:
                united.append([start, end])
        found += [(thread, start, end) for start, end in united]
    return found


@examples(40)
@given(traces())
def test_an_activity_begins_after_the_one_that_ended_last(trace: Trace) -> None:
    """Against a search of everything."""
    waits = host_waits.host_waits(trace)
    active = waits.activities
    slow = _slow_activities(trace)
    ordered = list(
        zip(active.thread.tolist(), active.start_ns.tolist(), active.end_ns.tolist(), strict=True)
    )
    assert ordered == slow
    with_operators = set(trace.operators["thread"].cat.codes)
    first = np.flatnonzero(waits.edge != host_waits.SYNC)
    assert waits.activity[first].tolist() == list(range(len(slow)))
    for place, (row, (thread, start, _)) in enumerate(zip(first, slow, strict=True)):
        before = slow[place - 1] if place and slow[place - 1][0] == thread else None
        idle_since = before[2] if before else -1
        # the last to end on any thread with operators, if it ran while this thread did nothing
        ended = [each for each in slow if each[0] in with_operators and each[2] < start]
        last = max((end for _, _, end in ended), default=-1)
        handed = last > idle_since and any(
            end == last and begin >= idle_since for _, begin, end in ended
        )
        if waits.edge[row] == host_waits.NOTHING:
            assert before is None
            assert not handed
        else:
            # of several that ended at once, any may be taken: it may be one that began too early
            assert waits.end_ns[waits.awaited[row]] in {last if handed else idle_since, idle_since}


@examples(40)
@given(traces())
def test_an_edge_has_an_awaited_event(trace: Trace) -> None:
    try:
        table = critical_path_segments(trace)
    except MissingDataError:  # a trace without activity
        assume(False)  # noqa: FBT003
    assert (table["edge"].isna() == (table["awaited_event"] < 0)).all()
