"""Frames: every column is as its schema says, of every era's words, and nothing is lost."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loading import columns_of, trace_of
from stepscope.dialects import Kind
from stepscope.model.frames import (
    Schema,
    copies,
    counters,
    device_annotations,
    device_events,
    host_calls,
    kernels,
    memory_events,
    python_calls,
    runtime_calls,
    steps,
)
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.string_storage import OPTION, object_strings
from stepscope.model.trace import Trace, trace_from_columns

pytestmark = pytest.mark.frames

US = 1000
FRAMES: dict[str, Schema] = {
    "host_calls": host_calls.SCHEMA,
    "runtime_calls": runtime_calls.SCHEMA,
    "device_events": device_events.SCHEMA,
    "device_annotations": device_annotations.SCHEMA,
    "kernels": kernels.SCHEMA,
    "copies": copies.SCHEMA,
    "counters": counters.SCHEMA,
    "memory": memory_events.SCHEMA,
    "python_calls": python_calls.SCHEMA,
    "steps": steps.SCHEMA,
}
UNITS = {"", "ns", "bytes", "share", "count", "id", "text"}
MODERN: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#3", 0, 100],
    ["python_function", "train.py(7): step", 1, 90, {"Python id": 1, "Python parent id": None}],
    ["python_function", "nn.Module: Linear_0", 2, 80, {"Python id": 2, "Python parent id": 1}],
    [
        "cpu_op",
        "aten::addmm",
        5,
        50,
        {
            "Input Dims": [[2, 3], [3, 4]],
            "Input type": ["float", "float"],
            "Concrete Inputs": ["", "1"],
            "Sequence number": 12,
        },
    ],
    ["cpu_op", "aten::copy_", 10, 20],
    ["cuda_runtime", "cudaLaunchKernel", 12, 3, {"correlation": 9}],
    ["cuda_driver", "cuLaunchKernelEx", 13, 1, {"correlation": 10}],
    ["", "Power (W)", 14, None, {"ph": "C", "GPU 0": 250.5}],
    ["gpu_user_annotation", "ProfilerStep#3", 20, 70],
    [
        "kernel",
        "gemm",
        30,
        10,
        {
            "correlation": 9,
            "grid": [4, 1, 1],
            "block": [128, 1, 1],
            "registers per thread": 40,
            "shared memory": 1024,
            "blocks per SM": 0.25,
            "est. achieved occupancy %": 12,
            "graph id": 5,
        },
    ],
    ["kernel", "ncclDevKernel_AllReduce", 40, 5, {"blocks per SM": -3.0}],
    ["gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 50, 5, {"bytes": 4096}],
    ["gpu_memset", "Memset (Device)", 60, 5, {"bytes": 64}],
    [
        "cpu_instant_event",
        "[memory]",
        15,
        None,
        {
            "Bytes": -512,
            "Addr": 2**47,
            "Device Type": 1,
            "Device Id": 0,
            "Total Allocated": 7,
            "Total Reserved": 9,
        },
    ],
    ["ac2g", "ac2g", 12, None, {"ph": "s", "id": 9}],
    ["overhead", "Activity Buffer Request", 70, 5],
]
OLD: list[list[Any]] = [
    ["Operator", "ProfilerStep#3", 0, 100],
    ["Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 3],
    ["Operator", "aten::addmm", 5, 50, {"Input dims": [[2, 3]], "Call stack": "a.py(3): f"}],
    ["Runtime", "cudaLaunchKernel", 12, 3, {"correlation": 9}],
    ["Kernel", "gemm", 30, 10, {"correlation": 9}],
    ["Memcpy", "Memcpy DtoH (Device -> Pageable)", 50, 5],
    ["Memset", "Memset (Device)", 60, 5],
    ["Kernel", "never filled in", 0, 0, {"ph": "X"}],
]
EMPTY: list[list[Any]] = [["Trace", "PyTorch Profiler (0)", 0, 10]]


def _old() -> Trace:
    start = 1_623_143_089_861_000
    rows = [[row[0], row[1], row[2] + start * bool(row[3]), *row[3:]] for row in OLD]
    return trace_of(rows)


TRACES: dict[str, Callable[[], Trace]] = {
    "modern": lambda: trace_of(MODERN),
    "old": _old,
    "empty": lambda: trace_of(EMPTY),
}


@pytest.mark.parametrize("era", TRACES)
@pytest.mark.parametrize("name", FRAMES)
def test_every_column_is_there_with_its_type(name: str, era: str) -> None:
    frame = getattr(TRACES[era](), name)
    schema = FRAMES[name]
    assert list(frame.columns) == [column.name for column in schema]
    assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in schema}
    assert list(frame.index) == list(range(len(frame)))


@pytest.mark.parametrize("name", FRAMES)
def test_every_column_has_a_meaning_and_a_unit(name: str) -> None:
    for column in FRAMES[name]:
        assert column.meaning[0].isupper() or column.meaning[0] in "`'", column
        assert column.meaning.endswith("."), column
        assert column.unit in UNITS, column
        for ending in ("ns", "bytes", "share"):
            if column.name.endswith(f"_{ending}") or column.name == ending:
                assert column.unit == ending, column
    assert len({column.name for column in FRAMES[name]}) == len(FRAMES[name])


def test_texts_are_objects_whatever_pandas_there_is() -> None:
    # so that code that reads categories is the same for pandas 2 and 3
    for name, schema in FRAMES.items():
        frame = getattr(trace_of(MODERN), name)
        for column in schema:
            if column.dtype == "category" and len(frame[column.name].cat.categories):
                assert frame[column.name].cat.categories.dtype == object, (name, column.name)


def _row(frame: pd.DataFrame, name: str) -> dict[str, Any]:
    (row,) = frame[frame["name"] == name].to_dict("records")
    return {str(key): value for key, value in row.items()}


def test_host_calls_nest_and_keep_their_arguments() -> None:
    calls = trace_of(MODERN).host_calls
    assert list(calls["name"]) == ["ProfilerStep#3", "aten::addmm", "aten::copy_"]
    assert list(calls["parent"]) == [-1, 0, 1]
    assert list(calls["depth"]) == [0, 1, 2]
    assert list(calls["self_ns"]) == [50 * US, 30 * US, 20 * US]
    addmm = _row(calls, "aten::addmm")
    assert (addmm["input_dims"], addmm["input_types"]) == ("[[2,3],[3,4]]", '["float","float"]')
    assert (addmm["concrete_inputs"], addmm["sequence_number"]) == ('["","1"]', 12)
    copy = _row(calls, "aten::copy_")
    assert pd.isna(copy["input_dims"])
    assert copy["sequence_number"] == -1


def test_kernels_keep_how_they_were_launched() -> None:
    gemm = _row(trace_of(MODERN).kernels, "gemm")
    assert (gemm["grid"], gemm["block"]) == ("[4,1,1]", "[128,1,1]")
    assert (gemm["registers_per_thread"], gemm["shared_memory_bytes"]) == (40, 1024)
    assert (gemm["blocks_per_sm"], gemm["occupancy_share"]) == (0.25, 0.12)
    assert (gemm["device"], gemm["stream"], gemm["correlation"], gemm["graph"]) == (0, 7, 9, 5)
    nccl = _row(trace_of(MODERN).kernels, "ncclDevKernel_AllReduce")
    assert nccl["is_collective"]
    assert nccl["graph"] == nccl["correlation"] == -1
    assert np.isnan(nccl["blocks_per_sm"])  # a negative number is an exporter's overflow


def test_device_events_hold_every_kind_and_no_mirror_of_an_annotation() -> None:
    events = trace_of(MODERN).device_events
    assert [Kind(kind).name for kind in events["kind"]] == [
        "KERNEL",
        "KERNEL",
        "COPY",
        "MEMORY_SET",
    ]
    assert len(trace_of(MODERN).steps) == 1


def test_runtime_calls_are_of_runtime_and_driver() -> None:
    calls = trace_of(MODERN).runtime_calls
    assert list(calls["name"]) == ["cudaLaunchKernel", "cuLaunchKernelEx"]
    assert list(calls["correlation"]) == [9, 10]


def test_memory_events_are_exact() -> None:
    (event,) = trace_of(MODERN).memory.to_dict("records")
    assert (event["bytes"], event["address"]) == (-512, 2**47)
    assert (event["device_type"], event["device"]) == ("CUDA", 0)
    assert (event["allocated_bytes"], event["reserved_bytes"]) == (7, 9)


def test_old_words_give_the_same_frames() -> None:
    old = _old()
    assert list(old.operators["name"]) == ["aten::addmm"]
    assert list(old.operators["input_dims"]) == ["[[2,3]]"]
    assert list(old.operators["call_stack"]) == ["a.py(3): f"]
    assert len(old.annotations) == 2
    assert list(old.kernels["name"]) == ["gemm"]  # the one of time 0 and duration 0 was never run
    assert list(old.copies["direction"]) == ["DtoH"]
    assert list(old.copies["is_pageable"]) == [True]
    assert list(old.steps["number"]) == [3]
    assert old.steps["start_ns"][0] == 0


def test_a_category_means_the_same_thread_in_every_frame() -> None:
    trace = trace_of(
        [
            ["cpu_op", "a", 0, 5, {"tid": 3}],
            ["cpu_op", "b", 0, 5, {"tid": 4}],
            ["cuda_runtime", "c", 0, 5, {"tid": 4}],
        ]
    )
    code = trace.runtime_calls["thread"].cat.codes[0]
    names = trace.host_calls["name"][trace.host_calls["thread"].cat.codes == code]
    assert list(names) == ["b"]
    assert str(trace.runtime_calls["thread"][0]).endswith("/4")


@pytest.mark.parametrize(
    ("name", "direction", "pageable"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "HtoD", True),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH", False),
        ("Memcpy DtoD (Device -> Device)", "DtoD", False),
        ("Memcpy PtoP (Device -> Device)", "PtoP", False),
        ("CopyHostToDevice", "HtoD", False),
        ("CopyDeviceToHost", "DtoH", False),
        ("Memcpy M2D (Memory -> Device)", "HtoD", False),
        ("Memcpy D2M (Device -> Memory)", "DtoH", False),
        ("Memcpy H2D (Host -> Device)", "HtoD", False),
        ("Memcpy D2D - P2P (Device -> Device)", "DtoD", False),
        ("Memcpy M2M (Memory -> Memory)", "HtoH", False),
        ("Memcpy S2D (Shared -> Device)", "other", False),
        ("something else", "other", False),
    ],
)
def test_copies_tell_their_direction(name: str, direction: str, pageable: bool) -> None:  # noqa: FBT001
    copies_ = trace_of([["gpu_memcpy", name, 0, 5]]).copies
    assert (list(copies_["direction"]), list(copies_["is_pageable"])) == ([direction], [pageable])


@pytest.mark.parametrize(
    ("names", "numbers"),
    [
        (["ProfilerStep#5", "ProfilerStep#6"], [5, 6]),
        (["ProfilerStep #5"], [5]),
        (["ProfilerStep#warm up", "ProfilerStep#x", "ProfilerStep#0"], [-1, -2, 0]),
        (["ProfilerStep#5", "ProfilerStep#5"], [5, 5]),
        (["ProfilerStep#99999999999999999999"], [-1]),
        (["Step#5"], []),
    ],
)
def test_steps_are_numbered(names: list[str], numbers: list[int]) -> None:
    rows = [["user_annotation", name, 10 * place, 5] for place, name in enumerate(names)]
    assert list(trace_of([*rows, ["cpu_op", "a", 0, 1]]).steps["number"]) == numbers


def test_a_step_is_copied_not_repeated_where_it_overlaps_its_like() -> None:
    rows = [["user_annotation", "ProfilerStep#5", start, 10] for start in (0, 1, 20)]
    steps_ = trace_of([*rows, ["cpu_op", "a", 0, 1]]).steps
    assert list(steps_["start_ns"]) == [0, 20_000]


def _from_events(*events: dict[str, Any]) -> Trace:
    return trace_from_columns(columns_of(json.dumps(list(events))), worker="w")


def test_ids_written_as_text_are_exact() -> None:
    big = 2**60 + 1
    host = {"ph": "X", "cat": "cuda_runtime", "name": "aLaunch", "ts": 1, "dur": 1}
    trace = _from_events(
        host | {"args": {"correlation": str(big)}},
        host | {"args": {"correlation": "none"}},
        host | {"args": {"correlation": "7.0"}},
        host | {"args": {"correlation": "9" * 30}},
        host,
    )
    assert list(trace.runtime_calls["correlation"]) == [big, -1, 7, -1, -1]


def test_rows_are_in_the_order_they_began_and_keep_their_place() -> None:
    trace = trace_of([["cpu_op", name, start, 1] for name, start in (("c", 9), ("a", 1), ("b", 5))])
    assert list(trace.host_calls["name"]) == ["a", "b", "c"]
    assert list(trace.host_calls["event"]) == [1, 2, 0]
    assert list(trace.host_calls["start_ns"]) == [0, 4 * US, 8 * US]


def test_events_without_names_threads_or_durations_do_no_harm() -> None:
    trace = _from_events(
        {"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": None, "pid": None, "tid": None, "ts": 2, "dur": 1},
        {"ph": "X", "cat": None, "name": "a", "ts": 2, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "no duration", "ts": 2},
        {"ph": "X", "cat": "cpu_op", "name": "no start", "dur": 2},
        {"ph": "X", "cat": "cpu_op", "name": "negative", "ts": 5, "dur": -3},
        {"cat": "cpu_op", "name": "a", "ts": 5, "dur": 1},
    )
    calls = trace.host_calls
    assert [None if pd.isna(name) else name for name in calls["name"]] == [
        None,
        None,
        "negative",
        "a",
    ]
    assert list(calls["duration_ns"]) == [US, US, 0, US]


def test_times_far_apart_do_not_overflow() -> None:
    trace = _from_events(
        {"ph": "X", "cat": "cpu_op", "name": "a", "ts": -(2**52), "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "ts": 2**52, "dur": 1},
    )
    assert list(trace.host_calls["name"]) == ["a", "b"]
    assert (trace.host_calls["end_ns"] > trace.host_calls["start_ns"]).all()


def test_an_argument_that_is_a_number_can_be_read_as_text() -> None:
    trace = trace_of(
        [
            ["kernel", "a", 0, 1, {"grid": 5}],
            ["kernel", "b", 2, 1],
            ["kernel", "c", 3, 1, {"grid": 4}],
        ]
    )
    grids = trace.kernels["grid"]
    assert [None if pd.isna(grid) else grid for grid in grids] == ["5", None, "4"]
    assert grids.cat.categories.dtype == object


def test_a_name_is_asked_for_once_and_no_name_is_never_wanted() -> None:
    asked: list[str] = []

    def is_wanted(name: str) -> bool:
        asked.append(name)
        return name == "b"

    names = pd.Categorical(["a", "b", None, "b"])
    assert list(name_mask(names, is_wanted)) == [False, True, False, True]
    assert asked == ["a", "b"]
    assert list(name_mask(pd.Series(names), is_wanted)) == [False, True, False, True]


@pytest.mark.parametrize(
    ("arguments", "direction", "size"),
    [
        ({"direction": "DEVICE_TO_HOST", "size": 1024}, "DtoH", 1024),  # MTIA
        ({"operation": "host to device", "size(B)": 2048}, "HtoD", 2048),  # Ascend
        ({"operation": "addr device to device", "size(B)": 0}, "DtoD", 0),
        ({"direction": "host to device ex", "dataSize(B)": 8}, "HtoD", 8),
        ({"operation": "managed memory"}, "other", None),
        ({"bytes": 64, "size": 1}, "other", 64),
    ],
)
def test_arguments_tell_of_a_copy_what_its_name_does_not(
    arguments: dict[str, Any], direction: str, size: int | None
) -> None:
    (copy,) = trace_of([["gpu_memcpy", "dma_request", 0, 5, arguments]]).copies.to_dict("records")
    assert copy["direction"] == direction
    assert (None if np.isnan(copy["bytes"]) else copy["bytes"]) == size


def _device_event(**arguments: Any) -> dict[str, Any]:
    """An event of a device that has arguments of its own kind only."""
    place: dict[str, Any] = {key: arguments.pop(key) for key in ("pid", "tid") if key in arguments}
    return {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, **place, "args": arguments}


@pytest.mark.parametrize(
    ("event", "stream"),
    [
        ({"stream": 7, "tid": 3}, 7),
        ({"tid": "stream 7"}, 7),
        ({"tid": "Stream 20"}, 20),
        ({"sycl queue": 64, "l0 queue": "0x000055d08b8fc138", "tid": 0}, 64),
        ({"sycl queue": 2**64 - 1, "tid": 3}, 3),  # PTI's number for no queue
        ({"l0 queue": "0x000055d08b8fc138", "tid": "queue"}, 0x55D08B8FC138),
        ({"stream": 108, "tid": 3774}, 108),
        ({}, -1),
    ],
)
def test_a_queue_is_a_stream(event: dict[str, Any], stream: int) -> None:
    assert list(_from_events(_device_event(**event)).device_events["stream"]) == [stream]


def _label(pid: int | str, label: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": label}}


@pytest.mark.parametrize(
    ("event", "label", "device"),
    [
        ({"device": 3, "pid": 900}, "GPU 5", 3),
        ({"pid": 900}, "NPU 5", 5),
        ({"pid": 17}, "MTIA 17", 17),
        ({"pid": 2}, "CPU", 2),
        ({"pid": "GPU 2"}, "", 2),
        ({"pid": ""}, "CPU", -1),
    ],
)
def test_a_device_is_the_one_that_its_rows_are_labelled_with(
    event: dict[str, Any], label: str, device: int
) -> None:
    trace = _from_events(_label(event["pid"], label), _device_event(**event))
    assert list(trace.device_events["device"]) == [device]


def test_ids_and_handles_in_hexadecimal_are_numbers() -> None:
    trace = _from_events(
        _device_event(correlation="0x10"),
        _device_event(correlation="0xFFFFFFFFFFFFFFFF"),  # beyond 63 bits
        _device_event(correlation="0xyz"),
        _device_event(correlation="0x"),
    )
    assert list(trace.device_events["correlation"]) == [16, -1, -1, -1]


LAYERED = 700
"""The process of the operators; CANN numbers its own rows of it, and the device's, from that."""
CANN = LAYERED << 10 | 7 << 5 | 31
HARDWARE = LAYERED << 10 | 13 << 5 | 2


def _ascend(**more: Any) -> dict[str, Any]:
    return {"ph": "X", "tid": 9, "ts": "100.250", "dur": 5.5, **more}


def test_ascends_layers_are_one_process_and_share_their_connections() -> None:
    task = {"Task Type": "AI_CORE", "Physic Stream Id": 4, "connection_id": 31}
    trace = _from_events(
        _ascend(cat="cpu_op", name="aten::mm", pid=LAYERED),
        _ascend(name="Node@launch", pid=CANN, ts="101.000", dur=1, args={"connection_id": 31}),
        _ascend(name="MatMulV2", pid=HARDWARE, tid=4, ts="110.125", args=task),
        _ascend(name="Add", pid=HARDWARE, tid=4, args=task | {"connection_id": 2**32 - 1}),
    )
    assert trace.dialect.name == "npu"
    (call,) = trace.runtime_calls.to_dict("records")
    assert call["thread"] == trace.host_calls["thread"][0] == f"{LAYERED}/9"
    assert list(trace.device_events["name"]) == ["Add", "MatMulV2"]
    assert list(trace.device_events["correlation"]) == [-1, call["correlation"]]
    assert list(trace.device_events["device"]) == [2, 2]
    assert list(trace.device_events["start_ns"]) == [0, 9_875]


@pytest.mark.parametrize(
    ("dims", "types", "expected"),
    [
        ([[2, 3], []], ["float", ""], ("[[2,3],[]]", '["float",""]')),
        (
            "32,64;\r\n64, 8",
            "float;\r\nc10::BFloat16",
            ("[[32,64],[64,8]]", '["float","c10::BFloat16"]'),
        ),
        ("32;", "float;", ("[[32],[]]", '["float",""]')),
        ("a,b;3", "float", ('["a,b",[3]]', '["float"]')),
        ("9" * 5000, "int", (f'["{"9" * 5000}"]', '["int"]')),
    ],
)
def test_shapes_are_lists_however_they_were_written(
    dims: Any, types: Any, expected: tuple[str, str]
) -> None:
    rows: list[list[Any]] = [
        ["cpu_op", "aten::mm", 0, 5, {"Input Dims": dims, "Input type": types}],
        ["cpu_op", "aten::add", 6, 5],
    ]
    mm, add = trace_of(rows).host_calls[["input_dims", "input_types"]].to_numpy().tolist()
    assert tuple(mm) == expected
    assert [pd.isna(text) for text in add] == [True, True]


def test_shapes_written_in_two_ways_are_the_same() -> None:
    rows: list[list[Any]] = [
        ["cpu_op", "aten::mm", 0, 5, {"Input Dims": "2, 3"}],
        ["cpu_op", "aten::mm", 6, 5, {"Input Dims": "2,3"}],
    ]
    assert list(trace_of(rows).host_calls["input_dims"].cat.categories) == ["[[2,3]]"]


@pytest.mark.parametrize("phase", [{}, {"ph": "X", "dur": 12_000}])
@pytest.mark.parametrize("category", ["cpu_instant_event", "cpu_op", ""])
def test_an_allocation_is_one_with_a_duration_or_without(
    category: str, phase: dict[str, Any]
) -> None:
    # torch 2.13's Python exporter gives it a duration, which means nothing
    arguments = {"Bytes": 64, "Device Type": 12, "Device Id": 1, "Addr": "0x7f00"}
    event = {"ph": "i", "cat": category, "name": "[memory]", "ts": 3, "args": arguments} | phase
    trace = _from_events(event, {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 9})
    (found,) = trace.memory.to_dict("records")
    assert (found["bytes"], found["device_type"], found["device"]) == (64, "XPU", 1)
    assert (found["start_ns"], found["address"]) == (2 * US, 0x7F00)
    assert list(trace.host_calls["name"]) == ["a"]


@pytest.mark.parametrize(
    ("code", "name"),
    [(0, "CPU"), (6, "HIP"), (15, "HPU"), (19, "MTIA"), (20, "PrivateUse1"), (77, "type 77")],
)
def test_whose_memory_it_is_has_a_name(code: int, name: str) -> None:
    rows: list[list[Any]] = [["cpu_instant_event", "[memory]", 0, None, {"Device Type": code}]]
    assert list(trace_of(rows).memory["device_type"]) == [name]


def test_threads_that_keep_texts_plainly_leave_pandas_as_it_was() -> None:
    before = pd.get_option(OPTION)
    one, another = object_strings(), object_strings()
    with another:
        one.__enter__()
    assert pd.get_option(OPTION) == "python"
    one.__exit__(None, None, None)
    assert pd.get_option(OPTION) == before
