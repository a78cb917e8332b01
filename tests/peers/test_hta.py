"""Figures beside HolisticTraceAnalysis', from the same files: the same, or its defect has a name.

Where HTA is wrong, the defect is put into the trace (`_Defects`) and the figures are then the same:
nothing but the defect makes the difference.
"""

import gzip
import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tracebuild
from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from peers import hta_peer
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.devices.annotations import annotation_table, innermost_annotation
from stepscope.analyses.devices.kernel_breakdown import (
    temporal_breakdown,
    type_overlaps,
    type_statistics,
)
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.devices.memory_bandwidth import bandwidth_summary
from stepscope.analyses.devices.queue_length import queue_lengths, queue_series
from stepscope.analyses.idle.idle_kinds import KERNEL_WAIT_NS, idle_kinds
from stepscope.analyses.operators.kernel_runs import ARROW, LONGEST, operator_sequences
from stepscope.dialects import COLLECTIVE_NAME, Kind
from stepscope.model.trace import Trace

pytestmark = [pytest.mark.peer, pytest.mark.slow]

US = 1000
CLOSE = 1e-3
DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
NO_DEVICE = (
    "hta/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz",
    "hta/distributed_info_unavailable/distributed_info_not_found.json.gz",
    "hta/rank_non_gpu/rank_non_gpu.json.gz",
)
"""HTA loads these, and then raises an IndexError where it looks for the first kernel."""
CONTROL = "hta/trace_diff/control/control.json.gz"
SYNCS = "hta/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"
MTIA = "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"
QWEN = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
WRONGLY_LAUNCHED = (QWEN, MTIA)
"""In these HTA takes another event for the launch: the file's first, or one around the launch."""
TRITON = "hta/triton_example/triton_example.json.gz"
B200 = "tracelens/b200/eager_trace.json.gz"
NAMES = [name for name in shared_trace_names() if name not in NO_DEVICE]
TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY"}
LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"} | {
    "runFunction - job_prep_and_submit_for_execution"
}
"""All launching calls that HTA's launch statistics know."""
COLLECTIVE, NCCL = re.compile(COLLECTIVE_NAME, re.IGNORECASE), re.compile("nccl.*Kernel")
ONLY_DEVICE = "the only device"
QUEUED = LAUNCHES | {"cuLaunchKernel", "hipLaunchKernel", "hipExtModuleLaunchKernel"}
QUEUED |= {"hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream"}
"""All that its queues know."""
Event = dict[str, Any]


# --- what HTA gets wrong -------------------------------------------------------------------------


def _works_by_its_stream(event: Event) -> Event:
    """Whatever has a `stream` argument works: waits, and the host's calls of Triton kernels."""
    stream = (event.get("args") or {}).get("stream", -1)
    if event.get("ph") != "X" or not str(stream).isdigit() or event["cat"] in DEVICE_CATEGORIES:
        return event
    is_neither = "dma" in event["name"] or "Sync" in event["name"]  # computing nor communication
    return {**event, "cat": "gpu_memset" if is_neither else "kernel", "pid": ONLY_DEVICE}


def _knows_nccl_only(event: Event) -> Event:
    """A collective is what matches `^nccl.*Kernel`: vLLM's and MSCCL++'s are computing to it."""
    name = event["name"]
    is_ours = event.get("cat") == "kernel" and COLLECTIVE.search(name)
    return event | {"name": "some_kernel"} if is_ours and not NCCL.match(name) else event


def _waits_of_mtia_work(event: Event) -> Event:
    """`event_wait` and `event_record` are work: all that has the category is."""
    return event | {"cat": "kernel"} if event.get("cat") == "mtia_ccp_events" else event


def _knows_few_launches(known: set[str]) -> Callable[[Event], Event]:
    """Work that other calls launched is left out: cuLaunchKernelEx, graphs, all of HIP's."""

    def without(event: Event) -> Event:
        is_call = str(event.get("cat")).lower().endswith(("runtime", "driver"))
        return event | {"cat": "left out"} if is_call and event["name"] not in known else event

    return without


@dataclass(frozen=True)
class Compared:
    """One file as both read it."""

    name: str
    document: dict[str, Any]
    ours: Trace
    theirs: dict[str, Any]

    def with_defects(self, *defects: Callable[[Event], Event]) -> Trace:
        """The trace as HTA takes it."""
        events = before = self.document["traceEvents"]
        for defect in defects:
            events = [defect(event) for event in events]
        if all(map(operator.is_, events, before)):
            return self.ours
        device = int(self.ours.device_events["device"].iloc[0])
        events = [_on_device(event, device) for event in events]
        return trace_of(document={**self.document, "traceEvents": events})


def _on_device(event: Event, device: int) -> Event:
    if event.get("pid") != ONLY_DEVICE:
        return event
    return {**event, "pid": device, "args": {**event["args"], "device": device}}


@cache
def _theirs(name: str) -> hta_peer.Figures:
    (found,) = hta_peer.figures((SHARED_TRACES / name,)).values()
    return found


def _theirs_as_it_comes(name: str) -> hta_peer.Figures:
    (found,) = hta_peer.figures((SHARED_TRACES / name,), exact=False).values()
    return found


def _document(name: str) -> dict[str, Any]:
    with gzip.open(SHARED_TRACES / name) as file:
        found: dict[str, Any] = json.load(file)
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=() if name == CONTROL else pytest.mark.every)
        for name in NAMES or [""]
    ],
)
def compared(request: pytest.FixtureRequest) -> Compared:
    return _compared(request.param)


def _compared(name: str) -> Compared:
    if not name:
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    document = _document(name)
    return Compared(name, document, trace_of(document=document), _theirs(name))


def _close(expected: object, *, least: float = 0.005) -> Any:
    """Within 0.1 %, or half of what HTA rounds to."""
    return pytest.approx(expected, rel=CLOSE, abs=least, nan_ok=True)


def _or_nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _device(table: pd.DataFrame) -> Any:
    (row,) = rows_of(table[table["span"] == "device"])
    return row


# --- the same ------------------------------------------------------------------------------------


def test_the_device_computed_moved_and_stood_still_for_as_long(compared: Compared) -> None:
    taken = compared.with_defects(_works_by_its_stream, _knows_nccl_only)
    ours, theirs = _device(temporal_breakdown(taken)), compared.theirs["temporal"]
    moved = ours.exposed_communication_ns + ours.exposed_memory_ns
    assert ours.duration_ns / US == _close(theirs["kernel_time(us)"])
    assert ours.idle_ns / US == _close(theirs["idle_time(us)"])
    assert ours.compute_ns / US == _close(theirs["compute_time(us)"])
    assert moved / US == _close(theirs["non_compute_time(us)"])


def test_as_much_communication_was_hidden(compared: Compared) -> None:
    ours = _device(temporal_breakdown(compared.with_defects(_knows_nccl_only)))
    theirs = _or_nan(compared.theirs["overlap"]["comp_comm_overlap_pctg"])
    assert ours.overlap_share * 100 == _close(theirs)


def test_types_of_work_ran_at_once_for_as_long(compared: Compared) -> None:
    """HTA cuts every stretch of time to whole microseconds before it sums them."""
    taken = compared.with_defects(_works_by_its_stream, _knows_nccl_only)
    theirs = {row["kernel_type"]: row["sum"] for row in compared.theirs["types"]}
    ours = type_overlaps(taken)
    whole = not (taken.device_events["start_ns"] % US).any()
    cut_us = 0 if whole else len(taken.device_events)
    for row in rows_of(ours):
        if compared.name in (SYNCS, MTIA) or row.types not in ("compute", *theirs):
            continue  # waits are of no type to it, but here they are memory
        them = theirs[" overlapping ".join(TYPES[each] for each in row.types.split(" + "))]
        assert them - CLOSE * them <= row.duration_ns / US <= them * (1 + CLOSE) + cut_us


def test_kernels_of_each_type_took_as_long(compared: Compared) -> None:
    taken = compared.with_defects(_works_by_its_stream, _knows_nccl_only)
    theirs: dict[str, float] = {}
    for row in compared.theirs["kernels"]:
        theirs[row["kernel_type"]] = theirs.get(row["kernel_type"], 0) + row["sum (us)"]
    for row in rows_of(type_statistics(taken)):
        if row.type != "memory" or compared.name not in (SYNCS, MTIA):
            assert row.total_ns / US == _close(theirs.get(TYPES[row.type], 0), least=10), row.type


def test_streams_stood_still_for_as_long_and_why(compared: Compared) -> None:
    """With HTA's defects (`_hta_gaps`) all are the same; without, those that show none of them."""
    taken = compared.with_defects(_waits_of_mtia_work)
    theirs = {
        (row["stream"], row["idle_category"]): row["idle_time"] for row in compared.theirs["idle"]
    }
    with_defect = _hta_gaps(taken, compared.document)
    for row in rows_of(idle_kinds(taken)):
        key = (row.stream, row.kind)
        if compared.name != MTIA:
            assert with_defect.get(key, 0) / US == _close(theirs.get(key, 0), least=0.01)
        if not _has_overlap(taken, row.stream) and compared.name not in WRONGLY_LAUNCHED:
            assert row.idle_ns / US == _close(theirs.get(key, 0), least=0.01)
    for stream in {stream for stream, _ in theirs}:
        summed = sum(of for (where, _), of in with_defect.items() if where == stream)
        them = sum(of for (where, _), of in theirs.items() if where == stream)
        assert summed / US == _close(them, least=0.03)


def test_as_much_work_was_launched_with_the_same_delays(compared: Compared) -> None:
    ours = launches(compared.with_defects(_knows_few_launches(LAUNCHES)))
    theirs = compared.theirs["launches"]
    assert len(ours.row) == len(theirs)
    host, device = (sum(row[key] for row in theirs) for key in ("cpu_duration", "gpu_duration"))
    assert ours.host_ns.sum() / US == _close(host)
    assert ours.device_ns.sum() / US == _close(device)
    assert ours.delay_ns.sum() / US == _close(sum(row["launch_delay"] for row in theirs))
    assert ours.is_slow.sum() == sum(row["cpu_duration"] > 50 for row in theirs)
    assert ours.is_late.sum() == sum(row["launch_delay"] > 100 for row in theirs)
    assert ours.is_short.sum() == sum(
        row["gpu_duration"] < row["cpu_duration"] <= 50 for row in theirs
    )


QUEUE_COLUMNS = {
    "change_count": "count",
    "length_mean": "mean",
    "length_standard_deviation": "std",
    "length_min": "min",
    "length_p25": "25%",
    "length_p50": "50%",
    "length_p75": "75%",
    "length_max": "max",
}


def test_queues_are_as_long(compared: Compared) -> None:
    taken = compared.with_defects(_knows_few_launches(QUEUED))
    theirs = {row["stream"]: row for row in compared.theirs["queue"]}
    ours = rows_of(queue_lengths(taken))
    assert {row.stream for row in ours} == set(theirs)
    for row in ours:
        # HTA does not say what comes first of a launch and a beginning in the same microsecond
        close = 0.02 if _has_ties(taken, row.stream) else CLOSE
        for column, key in QUEUE_COLUMNS.items():
            them = theirs[row.stream][key]
            assert getattr(row, column) == pytest.approx(them, rel=close, abs=1e-9), column


def test_no_queue_is_full(compared: Compared) -> None:
    assert not queue_lengths(compared.ours)["full_ns"].any()
    assert compared.theirs["queue_full"] == []


def test_a_full_queue_is_full_for_as_long(tmp_path: Path) -> None:
    rows: list[list[Any]] = [["cpu_op", "aten::mm", 0, 5000]]
    for number in range(1100):
        rows.append(["cuda_runtime", "cudaLaunchKernel", 1 + number, 1, {"correlation": number}])
        rows.append(["kernel", "gemm", 3000 + 4 * number, 2, {"correlation": number}])
    path = tracebuild.write(tracebuild.document(rows=rows), tmp_path / "full.json")
    (theirs,) = hta_peer.figures((path,)).values()
    (ours,) = rows_of(queue_lengths(trace_at(path)))
    (full,) = theirs["queue_full"]
    assert ours.full_ns / US == full["duration_at_max_queue_length"] > 0
    assert ours.length_max == 1100


def test_memory_was_copied_and_set_as_fast(compared: Compared) -> None:
    if compared.name == MTIA:
        pytest.skip("HTA reads the rate from an argument that MTIA's copies do not have")
    theirs = {
        row["name"].removeprefix("Memcpy ").replace("Memset", "set"): row
        for row in compared.theirs["bandwidth"]
    }
    if not theirs:  # it looks for an argument that copies lack on ROCm 6; their calls have a size
        assert not compared.ours.source.has("memory bandwidth (GB/s)")
        return
    known = [row for row in rows_of(bandwidth_summary(compared.ours)) if row.transfer_count]
    assert {row.kind for row in known} == set(theirs)
    for row in known:
        assert row.max_bytes_per_second / 1e9 == _close(theirs[row.kind]["max"], least=1e-6)
        mean = theirs[row.kind]["mean"]
        assert row.changes_mean_bytes_per_second / 1e9 == _close(mean, least=1e-6)


def test_annotations_took_as_long_on_the_device(compared: Compared) -> None:
    theirs = {row["name"]: row for row in compared.theirs["annotations"]}
    ours = rows_of(annotation_table(compared.ours))
    assert {row.name for row in ours} == set(theirs)
    for row in ours:
        them = theirs[row.name]
        for key in ("mean", "min", "max"):
            assert getattr(row, f"{key}_ns") / US == _close(them[f"{key} (us)"]), row.name
        assert row.total_ns / US == _close(them["sum (us)"])
        assert row.standard_deviation_ns / US == _close(them["stddev"] or float("nan"))


def test_kernels_belong_to_the_same_annotations(compared: Compared) -> None:
    theirs = compared.theirs["annotated"]
    if not theirs:
        return
    events = compared.ours.device_events
    annotation = [*compared.ours.device_annotations["name"].astype(object), ""]
    linked = events["correlation"].to_numpy() >= 0
    ours = [
        (name, annotation[row])
        for name, row in zip(
            events["name"][linked], innermost_annotation(compared.ours)[linked], strict=True
        )
    ]
    assert sorted(ours) == sorted((row["s_name"], row["s_user_annotation"]) for row in theirs)


@pytest.mark.every
def test_operators_run_the_same_kernels_one_after_the_other() -> None:
    """Of one trace: of the others this takes HTA a minute or two each."""
    hta_peer.require()
    name, found = SYNCS, _compared(SYNCS).ours
    (theirs,) = hta_peer.figures((SHARED_TRACES / name,), sequences=True).values()
    ours = {(row.operator, row.sequence): row for row in rows_of(operator_sequences(found))}
    compared = 0
    for asked, rows in theirs["sequences"].items():
        for row in rows:
            operator_name, *kernels = row["pattern"].split("|")
            key = (operator_name, ARROW.join(map(short, kernels)))
            waits = any("Sync" in kernel or "Wait" in kernel for kernel in kernels)
            if operator_name != asked or waits or not 3 <= len(kernels) <= LONGEST:
                continue  # a wait is a kernel to it
            mine = ours[key]
            assert mine.call_count == row["count"], key
            assert mine.device_ns / US == _close(row["GPU kernel duration (us)"])
            assert mine.host_ns / US == _close(row["CPU op duration (us)"])
            compared += 1
    assert compared >= 3


# --- where they differ, and why ------------------------------------------------------------------


def _hta_gaps(trace: Trace, document: dict[str, Any]) -> dict[tuple[int, str], float]:
    """The kinds of idle time as HTA reckons them: with two defects, from our own links.

    A gap begins at the end of the work before, though work before that may go on; and work whose
    launch was not recorded is taken for launched by the first event of the file. A third is not
    here: of several host events with one correlation HTA takes the last in the file, which on MTIA
    is one that encloses the launch.
    """
    events = trace.device_events
    call = links(trace).call_of_device_event
    first_ns = _first_event_ns(trace, document)
    starts = [*trace.runtime_calls["start_ns"].tolist(), first_ns]
    frame = events[["stream", "start_ns", "end_ns"]].assign(launch=[starts[at] for at in call])
    frame["before"] = frame.groupby("stream")["end_ns"].shift(1)
    frame = frame.dropna()
    gap = frame["start_ns"] - frame["before"]
    kind = pd.Series("other", index=frame.index)
    kind[gap < KERNEL_WAIT_NS] = "kernel_wait"
    kind[frame["launch"] > frame["before"]] = "host_wait"
    summed: dict[tuple[int, str], float] = {}
    for stream, which, of in zip(frame["stream"], kind, gap, strict=True):
        summed[stream, which] = summed.get((stream, which), 0) + of
    return summed


def _first_event_ns(trace: Trace, document: dict[str, Any]) -> int:
    first = document["traceEvents"][0]
    return round(float(first["ts"]) * US) - trace.columns.origin_ns


def _has_overlap(trace: Trace, stream: int) -> bool:
    events = trace.device_events
    mine = events[events["stream"] == stream]
    return bool((mine["start_ns"].iloc[1:].to_numpy() < mine["end_ns"].cummax().iloc[:-1]).any())


def _has_ties(trace: Trace, stream: int) -> bool:
    series = queue_series(trace)
    return bool(series[series["stream"] == stream]["time_ns"].duplicated().any())


@pytest.mark.every
@pytest.mark.parametrize("name", NO_DEVICE)
def test_without_device_work_hta_raises_and_we_have_no_rows(name: str) -> None:
    found = _compared(name)
    assert found.theirs["temporal"] == {
        "error": "IndexError: single positional indexer is out-of-bounds"
    }
    assert "ValueError" in found.theirs["idle"]["error"]
    assert temporal_breakdown(found.ours).empty
    assert idle_kinds(found.ours).empty


@pytest.mark.every
def test_as_it_comes_it_leaves_out_the_last_step_and_rounds_work_away() -> None:
    found, plain = _compared(CONTROL), _theirs_as_it_comes(CONTROL)
    assert len(plain["events"]) < 0.84 * len(found.theirs["events"])
    assert len(found.theirs["events"]) == len(found.ours.device_events)
    # a start is rounded up, an end down: what takes less than a microsecond may last below nothing
    plain = _theirs_as_it_comes(QWEN)
    assert min(row["dur"] for row in plain["events"]) < 0
    assert plain["temporal"] == {"error": "AssertionError: "}
    plain, exact = _theirs_as_it_comes(B200)["temporal"], _theirs(B200)["temporal"]
    assert plain["compute_time(us)"] < 0.95 * exact["compute_time(us)"]


@pytest.mark.every
@pytest.mark.parametrize("name", [SYNCS, TRITON])
def test_to_hta_a_wait_and_a_call_of_a_triton_kernel_are_device_work(name: str) -> None:
    found = _compared(name)
    categories = {row["cat"] for row in found.theirs["events"]}
    assert categories & {"cuda_sync", "cpu_op"}
    ours, theirs = _device(temporal_breakdown(found.ours)), found.theirs["temporal"]
    assert ours.duration_ns / US < 0.995 * theirs["kernel_time(us)"]
    assert {Kind(kind) for kind in set(found.ours.device_events["kind"])} <= {
        Kind.KERNEL,
        Kind.COPY,
        Kind.MEMORY_SET,
    }


@pytest.mark.every
def test_to_hta_an_all_reduce_of_vllms_own_is_computing() -> None:
    found = _compared(B200)
    ours = _device(temporal_breakdown(found.ours))
    assert ours.communication_ns / US > 2000
    communication = [row for row in found.theirs["types"] if row["kernel_type"] == "COMMUNICATION"]
    assert communication[0]["sum"] < 30


@pytest.mark.every
def test_to_hta_kernels_that_overlap_make_a_stream_less_idle() -> None:
    found = _compared(B200)  # programmatic dependent launch
    assert _has_overlap(found.ours, 7)
    ours = idle_kinds(found.ours).query("kind == 'kernel_wait'")["idle_ns"].iloc[0] / US
    (theirs,) = (row for row in found.theirs["idle"] if row["idle_category"] == "kernel_wait")
    assert theirs["idle_time"] < 0.9 * ours


@pytest.mark.every
def test_to_hta_what_hip_graphs_and_the_driver_launch_is_not_launched() -> None:
    for name in NAMES:
        found = _compared(name)
        calls = {str(call) for call in set(found.ours.runtime_calls["name"])}
        linked = int((links(found.ours).call_of_device_event >= 0).sum())
        if calls & {"hipLaunchKernel", "hipGraphLaunch", "cuLaunchKernelEx"}:
            assert len(found.theirs["launches"]) < linked, name
