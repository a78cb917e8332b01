"""Which slices lie on which track, in which order, and what the tracks are called."""

from pathlib import Path

import pytest

from loading import SAMPLE_LOGS, trace_at, trace_of
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.analyses.timeline.tiles import tile
from stepscope.analyses.timeline.timeline import timeline
from stepscope.analyses.timeline.tracks import Track
from stepscope.dialects import Kind
from stepscope.model.trace import Trace
from timelinebuild import shown

SAMPLES = sorted(SAMPLE_LOGS.rglob("*.json.gz"))


def tracks_of(trace: Trace, kind: str) -> list[Track]:
    return [track for track in timeline(trace).tracks if track.kind == kind]


def test_calls_of_all_kinds_nest_on_their_thread() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(1): main", 0, 100],
            ["cpu_op", "aten::mm", 10, 50],
            ["cuda_runtime", "cudaLaunchKernel", 20, 5],
            ["user_annotation", "forward", 5, 60],
            ["cpu_op", "aten::add", 0, 10, {"tid": 7}],
        ]
    )

    assert shown(trace) == {
        "Process 100: Main thread": [
            ["train.py(1): main"],
            ["forward"],
            ["aten::mm"],
            ["cudaLaunchKernel"],
        ],
        "Process 100: Thread 7": [["aten::add"]],
    }


def test_streams_of_computing_come_before_those_of_communication_and_copies() -> None:
    trace = trace_of(
        [
            ["gpu_memcpy", "Memcpy HtoD", 0, 5, {"stream": 1}],
            ["kernel", "ncclDevKernel_AllReduce", 0, 5, {"stream": 2}],
            ["kernel", "gemm", 0, 5, {"stream": 10}],
            ["kernel", "gemm", 0, 5, {"stream": 3}],
            ["kernel", "gemm", 0, 5, {"stream": 3, "device": 1}],
        ]
    )

    found = [(track.device, track.label, track.detail) for track in tracks_of(trace, "stream")]
    assert found == [
        (0, "Stream 3", "computation"),
        (0, "Stream 10", "computation"),
        (0, "Stream 2", "communication"),
        (0, "Stream 1", "copies"),
        (1, "Stream 3", "computation"),
    ]


def test_work_that_overlaps_on_a_stream_takes_two_rows() -> None:
    launch = ["cuda_runtime", "cudaLaunchKernel", 0, 1]
    kernels = [["kernel", "a", 0, 10], ["kernel", "b", 8, 10], ["kernel", "c", 20, 5]]
    trace = trace_of([launch, *kernels])

    assert shown(trace)["GPU 0: Stream 7"] == [["a", "c"], ["b"]]


def test_collectives_are_told_apart_from_kernels_and_loading_from_annotations() -> None:
    trace = trace_of(
        [
            ["kernel", "ncclDevKernel_AllReduce", 0, 5],
            ["user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter", 0, 5],
            ["user_annotation", "ProfilerStep#1", 0, 50],
            ["gpu_memset", "Memset", 6, 5],
        ]
    )
    found = timeline(trace)

    ids = list(CATEGORIES)
    names = [found.names[code] for code in found.slices.name.tolist()]
    categories = [ids[code] for code in found.slices.category.tolist()]
    assert set(zip(names, categories, strict=True)) == {
        ("ncclDevKernel_AllReduce", "communication"),
        ("enumerate(DataLoader)#_SingleProcessDataLoaderIter", "dataloader"),
        ("ProfilerStep#1", "annotation"),
        ("ProfilerStep#1", "step"),
        ("Memset", "memset"),
    }


def test_the_thread_of_the_steps_is_the_main_one_and_that_of_the_engine_goes_backward() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::add", 0, 1, {"tid": 5}],
            ["cpu_op", "aten::add", 2, 1, {"tid": 5}],
            ["cpu_op", "autograd::engine::evaluate_function: AddBackward0", 0, 1, {"tid": 6}],
            ["user_annotation", "ProfilerStep#1", 0, 10, {"tid": 8}],
        ]
    )

    found = [(track.label, track.detail, track.is_open) for track in tracks_of(trace, "thread")]
    assert found == [
        ("Main thread", "8", True),
        ("Backward thread", "6", True),
        ("Thread 5", "", False),
    ]


def test_threads_and_processes_are_called_what_the_trace_calls_them() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::add", 0, 1, {"tid": 5}],
            ["cpu_op", "aten::add", 0, 3, {"tid": 6}],
            ["cpu_op", "aten::add", 4, 3, {"tid": 6}],
            ["", "thread_name", 0, None, {"ph": "M", "tid": 5, "name": "loader"}],
            ["", "process_name", 0, None, {"ph": "M", "tid": 0, "name": "trainer"}],
        ]
    )

    found = timeline(trace).tracks
    assert [(track.label, track.detail) for track in found] == [
        ("Process 100", "trainer"),
        ("Main thread", "6"),
        ("Loader", "5"),
    ]


def test_devices_and_the_main_process_say_of_which_rank_they_are() -> None:
    trace = trace_of(
        [
            ["user_annotation", "ProfilerStep#1", 0, 50],
            ["cpu_op", "aten::mm", 10, 5],
            ["cpu_op", "aten::add", 10, 5, {"pid": 101}],
            ["cuda_runtime", "cudaLaunchKernel", 12, 1],
            ["kernel", "gemm", 20, 5, {"stream": 7}],
        ],
        distributedInfo={"rank": 3, "world_size": 8},
    )

    groups = [track.label for track in timeline(trace).tracks if track.kind == "group"]
    assert groups == ["Rank 3, GPU 0", "Rank 3, Process 100", "Process 101"]


def test_what_lies_too_deep_is_counted() -> None:
    depth = 1005
    trace = trace_of([["cpu_op", "f", place, 2 * (depth - place)] for place in range(depth)])

    found = timeline(trace)

    assert found.too_deep_count == 5
    assert len(found.slices) == 1000
    assert found.tracks[-1].row_count == 1000


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_timed_event_of_a_sample_is_a_slice_and_no_two_of_a_row_overlap(path: Path) -> None:
    trace = trace_at(path)
    found = timeline(trace)

    slices = found.slices
    tracks = range(len(found.tracks))
    whole = tile(slices, tracks, 40, 0)
    assert int(whole.count.sum()) == len(slices)
    timed = set(trace.source.rows(*(set(Kind) - {Kind.MEMORY, Kind.FLOW})).tolist())
    drawn = {event for event, place in enumerate(found.slice_of_event.tolist()) if place >= 0}
    assert drawn == timed
    for row in range(len(slices.row_track)):
        first, behind = slices.times.row_first[row : row + 2].tolist()
        places = slice(first, behind)
        start_ns = slices.times.start_ns[places]
        end_ns = start_ns + slices.times.busy_before_ns[first + 1 : behind + 1]
        end_ns -= slices.times.busy_before_ns[places]
        assert (end_ns[:-1] <= start_ns[1:]).all()
