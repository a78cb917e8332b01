"""Traces of other producers open, and it is said what they lack.

`producers/` holds files as their tools wrote them, paths shortened. The others are the least that
the tool's own documentation or source shows.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, columns_of, rows_of, shared_trace_names, trace_at, trace_of
from logs import ROWS
from stepscope.advice import advise
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.links import links
from stepscope.analyses.core.producer import Producer, producer
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.dialects import Kind
from stepscope.model.trace import Run, Trace, trace_from_columns

RECORDED = Path(__file__).parent / "producers"
Events = list[dict[str, Any]]


def _opened(document: Any) -> Trace:
    return trace_from_columns(columns_of(json.dumps(document)), worker="worker")


def _named(pid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def _event(category: str, name: str, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "ts": 1, "dur": 2, "pid": 1, "tid": 1, **more}


FOREIGN: dict[str, Any] = {
    "VizTracer": json.loads((RECORDED / "viztracer.json").read_text(encoding="utf-8")),
    "py-spy": json.loads((RECORDED / "py_spy.json").read_text(encoding="utf-8")),
    "Bazel": {
        "otherData": {"bazel_version": "release 7.4.0", "build_id": "a-b"},
        "traceEvents": [_event("build phase marker", "Initialize command")],
    },
    "clang (-ftime-trace)": {
        "traceEvents": [{"ph": "X", "name": "ExecuteCompiler", "ts": 0, "dur": 9, "pid": 1}],
        "beginningOfTime": 1700000000000000,
    },
    "ninjatracing": [_event("targets", "main.o")],
    "ONNX Runtime": [
        _event("Session", "model_loading_array"),
        _event("Node", "MatMul_kernel_time", args={"op_name": "MatMul", "node_index": "3"}),
    ],
    "TensorFlow or JAX (XLA)": {
        "displayTimeUnit": "ns",
        "traceEvents": [
            _named(1, "/device:GPU:0"),
            {"ph": "X", "name": "fusion", "pid": 1, "tid": 3, "ts": 1.5, "dur": 2},
        ],
    },
    "rocprof": {
        "traceEvents": [
            _named(2, "0 CPU HIP API"),
            {"ph": "X", "name": "hipLaunchKernel", "pid": 2, "tid": 1, "ts": "5", "dur": "3"},
        ]
    },
    "Chrome's tracing": {
        "traceEvents": [_event("toplevel,ipc", "ThreadControllerImpl::RunTask")],
        "metadata": {"clock-domain": "LINUX_CLOCK_MONOTONIC"},
    },
    "msprof (CANN)": [
        {
            "ph": "X",
            "name": "MatMulV2",
            "pid": 1,
            "tid": 2,
            "ts": "10.500",
            "dur": 3,
            "args": {"Task Type": "AI_CORE", "Physic Stream Id": 2},
        }
    ],
    "Perfetto": {
        "traceEvents": [{"ph": "X", "name": "slice", "pid": 1, "tid": 1, "ts": 1, "dur": 2}],
        "systemTraceEvents": "",
    },
    "an unknown tool": [{"ph": "X", "name": "mine", "pid": 1, "tid": 1, "ts": 1, "dur": 2}],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_trace_without_torch_opens_and_says_what_it_lacks(name: str) -> None:
    trace = _opened(FOREIGN[name])
    found = producer(trace)
    assert (found.name, found.is_torch) == (name, False)
    assert any("No torch operator" in sentence for sentence in found.missing)
    assert "torch" in found.remedy
    advise(Run(name="run", workers=(trace,)))  # whatever there is to say, it is said


def test_what_the_device_did_is_not_missing_where_it_is_there() -> None:
    without = "No device work was recorded: device utilization is unknown."
    assert without not in producer(_opened(FOREIGN["msprof (CANN)"])).missing
    assert without in producer(_opened(FOREIGN["Bazel"])).missing


KINETO: dict[str, Any] = {"schemaVersion": 1, "traceName": "trace.json"}
AS_TORCH: dict[str, tuple[str, Any]] = {
    "kineto": ("torch.profiler", KINETO | {"traceEvents": [_event("cpu_op", "aten::mm")]}),
    "without header": ("torch.profiler", [_event("cpu_op", "aten::mm")]),
    "kernels only": ("torch.profiler", KINETO | {"traceEvents": [_event("kernel", "gemm")]}),
    "nothing of torch's yet": ("torch.profiler", KINETO | {"traceEvents": [_event("x", "y")]}),
    "lightning": (
        "PyTorch Lightning with torch.profiler",
        KINETO | {"Framework": "pytorch-lightning", "traceEvents": [_event("cpu_op", "aten::mm")]},
    ),
    "viztracer with log_torch": (
        "VizTracer with torch.profiler",
        {"viztracer_metadata": {"version": "1.1.1"}, "traceEvents": [_event("cpu_op", "aten::mm")]},
    ),
    "torch_npu": (
        "torch_npu.profiler",
        [_event("cpu_op", "aten::mm"), _event("async_npu", "torch_to_npu", ph="s", id=1)],
    ),
    "synthetic": (
        "stepscope's synthesiser",
        {"stepscope": {"synthetic": True}, "traceEvents": [_event("cpu_op", "aten::mm")]},
    ),
}


@pytest.mark.parametrize("name", AS_TORCH)
def test_torchs_own_lack_nothing(name: str) -> None:
    expected, document = AS_TORCH[name]
    found = producer(_opened(document))
    assert found == Producer(name=expected, is_torch=True, missing=(), remedy="")


@pytest.mark.parametrize("name", shared_trace_names("hta"))
def test_real_traces_are_of_torchs_profiler(name: str) -> None:
    assert producer(trace_at(SHARED_TRACES / name)).name == "torch.profiler"


@pytest.mark.parametrize("name", ["log.txt", "trace", "a.b.c", "x.json", "Ü ß.trace"])
def test_a_trace_opens_under_any_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(AS_TORCH["kineto"][1]), encoding="utf-8")
    assert list(trace_at(path).operators["name"]) == ["aten::mm"]


def _as_recorded(trace: Trace) -> dict[str, list[Any]]:
    """What must be the same however one recording was exported."""
    of_call = ["name", "duration_ns", "parent", "input_dims", "input_types", "sequence_number"]
    return {
        "host calls": rows_of(trace.host_calls[of_call].astype(str)),
        "steps": rows_of(trace.steps[["name", "number", "duration_ns"]]),
        "memory": rows_of(trace.memory[["bytes", "address", "device_type", "allocated_bytes"]]),
        "python": rows_of(trace.python_calls[["name", "duration_ns", "python_id"]]),
    }


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trace]:
    """One recording in every way that torch exports it, Lightning's names among it."""
    folder = tmp_path_factory.mktemp("exports")
    command = [sys.executable, str(RECORDED / "record.py"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return {path.stem: trace_at(path) for path in folder.iterdir()}


@pytest.mark.recording
def test_torchs_two_exporters_are_read_alike(exports: dict[str, Trace]) -> None:
    phases = exports["python"].columns.phase[exports["python"].memory["event"].to_numpy()]
    assert {exports["python"].columns.strings[code] for code in phases} == {"X"}
    assert _as_recorded(exports["python"]) == _as_recorded(exports["kineto"])
    assert len(exports["kineto"].memory) > 0


@pytest.mark.recording
def test_lightnings_names_are_annotations_in_steps(exports: dict[str, Trace]) -> None:
    trace = exports["kineto"]
    names = list(trace.annotations["name"])
    assert names.count("[pl][profile]run_training_batch") == 2
    assert names.count("[pl][module]torch.nn.modules.linear.Linear: layer") == 2
    assert len(trace.steps) == 2


@pytest.mark.recording
def test_a_bare_list_of_events_keeps_names_and_times(exports: dict[str, Trace]) -> None:
    bare, whole = exports["events"], exports["kineto"]
    # torch leaves a few operators without children out of events()
    assert set(bare.operators["name"]) == set(whole.operators["name"])
    assert list(bare.steps["name"]) == list(whole.steps["name"])
    assert np.abs(bare.steps["duration_ns"] - whole.steps["duration_ns"]).max() <= 1000
    assert "[pl][profile]run_training_batch" in list(bare.annotations["name"])
    assert len(bare.python_calls)
    found = producer(bare)
    assert (found.name, found.is_torch) == ("torch.autograd's EventList", True)
    assert "no kernels" in found.missing[0]
    assert "events()" in found.remedy


# What whole traces of other vendors look like, and what becomes of them.


def _xpu() -> Trace:
    """Two steps on an XPU, as xpupti records them: queues, no streams, two layers of calls."""
    rows: list[list[Any]] = []
    for step, start in enumerate((0, 1000)):
        queue = {"sycl queue": 64 + step, "l0 queue": "0x000055d08b8fc138", "stream": None}
        copy = {"correlation": 2 + 10 * step, "bytes": 4096, **queue}
        gemm = {"correlation": 1 + 10 * step, "kernel_id": 7, "context": "0x000055d0", **queue}
        rows += [
            ["user_annotation", f"ProfilerStep#{step}", start, 900],
            ["cpu_op", "aten::addmm", start + 10, 100],
            ["xpu_runtime", "urEnqueueKernelLaunch", start + 20, 50, _of(gemm)],
            ["xpu_driver", "zeCommandListAppendLaunchKernel", start + 30, 20, _of(gemm)],
            ["kernel", "gemm_kernel", start + 100, 200, gemm],
            ["cpu_op", "aten::item", start + 300, 500],
            ["cpu_op", "aten::_local_scalar_dense", start + 310, 480],
            ["xpu_runtime", "urEnqueueUSMMemcpy", start + 320, 20, _of(copy)],
            ["gpu_memcpy", "Memcpy D2M (Device -> Memory)", start + 350, 100, copy],
            ["xpu_runtime", "urEventWait", start + 350, 200],
            ["xpu_driver", "zeEventHostSynchronize", start + 360, 180],
            ["xpu_sync", "zeEventHostSynchronize", start + 360, 180, {"pid": -1}],
            ["xpu_scope_profiler", "metrics: gemm_kernel", start + 100, 200, {"pid": 0}],
        ]
    return trace_of(rows)


def _of(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"correlation": arguments["correlation"]}


def test_an_xpus_trace_is_read_in_its_words() -> None:
    trace = _xpu()
    assert (trace.dialect.name, trace.dialect.device) == ("xpu", "XPU")
    assert list(trace.device_events["stream"]) == [64, 64, 65, 65]
    assert list(trace.copies["direction"]) == ["DtoH", "DtoH"]
    names = trace.host_calls["name"]
    assert [names[owner] for owner in links(trace).owner_of_device_event] == [
        "aten::addmm",
        "aten::_local_scalar_dense",
    ] * 2


def test_a_wait_within_a_wait_is_one() -> None:
    trace = _xpu()
    found = synchronizations(trace)
    assert list(trace.runtime_calls["name"].iloc[found.calls]) == ["urEventWait"] * 2
    assert found.of("item").all()


def test_an_mtias_trace_is_read_in_its_words() -> None:
    name = "hta/mtia_inference_trace/mtia_inference_rank_0.json.gz"
    if not (SHARED_TRACES / name).exists():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    trace = trace_at(SHARED_TRACES / name)
    assert (trace.dialect.name, trace.dialect.device) == ("mtia", "MTIA")
    assert sorted(trace.kernels["name"].unique()) == ["merge", "pe_exe", "remote"]
    directions = trace.copies["direction"].value_counts()
    assert (directions["HtoD"], directions["DtoH"]) == (427, 450)
    assert trace.copies["bytes"].notna().all()
    assert set(trace.device_events["device"]) == {17}
    assert set(trace.device_events["stream"]) == set(range(101, 113))
    assert (trace.source.kinds == int(Kind.SYNCHRONIZATION)).sum() == 48 + 291 + 113
    waits = synchronizations(trace)
    assert set(trace.runtime_calls["name"].iloc[waits.calls]) == {"synchronizeStream"}


PROCESS = 700
PYTHON, QUEUE = 700, 701
"""The thread of the operators, and the one that torch_npu's task queue hands launches to."""
CANN = PROCESS << 10 | 7 << 5 | 31
HARDWARE = PROCESS << 10 | 13 << 5 | 3
COMMUNICATION = PROCESS << 10 | 15 << 5 | 3


def _trace_view() -> Events:
    """Two steps as torch_npu writes them, in the layout of its `trace_view.json`."""
    events: Events = [
        _named(PROCESS, "Python"),
        _named(CANN, "CANN"),
        _named(HARDWARE, "Ascend Hardware"),
        {"ph": "M", "name": "process_labels", "pid": HARDWARE, "args": {"labels": "NPU 3"}},
        {"ph": "M", "name": "process_labels", "pid": COMMUNICATION, "args": {"labels": "NPU 3"}},
    ]
    for step in range(2):
        start = 1_695_115_378_713_851 + 1000 * step
        number = 10 * step

        def at(offset: float, begin: int = start) -> str:
            return f"{begin + int(offset)}.{round(offset % 1 * 1000):03d}"

        def task(kind: str, number: int) -> dict[str, Any]:
            return {"Task Type": kind, "Physic Stream Id": 2, "connection_id": number}

        host = {"ph": "X", "pid": PROCESS, "tid": PYTHON}
        cann = {"ph": "X", "pid": CANN, "tid": QUEUE}
        device = {"ph": "X", "pid": HARDWARE, "tid": 2}
        flow = {"cat": "async_npu", "name": "torch_to_npu", "id": str(number), "bp": "e"}
        events += [
            host | {"cat": "cpu_op", "name": f"ProfilerStep#{step}", "ts": at(0), "dur": 900.0},
            host
            | {
                "cat": "cpu_op",
                "name": "aten::mm",
                "ts": at(10.25),
                "dur": 40.5,
                "args": {"Input Dims": "32,64;\r\n64,8", "Input type": "float;\r\nfloat"},
            },
            host | {"cat": "enqueue", "name": "Enqueue", "ts": at(20), "dur": 5},
            cann
            | {"name": "Node@launch", "ts": at(60), "dur": 9, "args": {"connection_id": number}},
            device
            | {"name": "MatMulV2", "ts": at(100.125), "dur": 200, "args": task("AI_CORE", number)},
            device
            | {"name": "EVENT_WAIT", "ts": at(310), "dur": 300, "args": task("EVENT_WAIT_SQE", 1)},
            {**flow, "ph": "s", "pid": PROCESS, "tid": PYTHON, "ts": float(at(10.25))},
            {**flow, "ph": "f", "pid": HARDWARE, "tid": 2, "ts": float(at(100.125))},
            {
                "ph": "X",
                "name": f"hcom_allReduce__523_{step}_1",
                "pid": COMMUNICATION,
                "tid": 0,
                "ts": at(400),
                "dur": 150.0,
                "args": {"connection_id": number + 1, "alg_type": "RING"},
            },
            cann
            | {"name": "AscendCL@aclrtSynchronizeStreamWithTimeout", "ts": at(320), "dur": 300},
        ]
    return events


def test_an_npus_trace_is_read_in_its_words() -> None:
    trace = _opened(_trace_view())
    assert (trace.dialect.name, trace.dialect.device) == ("npu", "NPU")
    assert producer(trace).name == "torch_npu.profiler"
    assert list(trace.steps["number"]) == [0, 1]
    assert list(trace.operators["input_dims"]) == ["[[32,64],[64,8]]"] * 2
    events = trace.device_events
    assert list(events["is_collective"]) == [False, True] * 2
    assert set(events["device"]) == {3}
    assert list(events["start_ns"][:2]) == [100_125, 400_000]
    device = main_device(trace)
    assert device is not None
    assert len(device.communication) == 2
    waits = synchronizations(trace)
    assert len(waits.calls) == 2


def test_a_flow_leads_from_an_operator_to_its_task_where_a_queue_launched_it() -> None:
    trace = _opened(_trace_view())
    owner = links(trace).owner_of_device_event
    names = [trace.host_calls["name"][row] if row >= 0 else None for row in owner]
    assert names == ["aten::mm", None] * 2


UNKNOWN_ROWS: dict[str, Callable[[str], str]] = {
    "kineto's names": {"cuda_runtime": "foo_runtime"}.get,  # type: ignore[dict-item]
    "its own names": {"cuda_runtime": "foo_driver", "kernel": "foo_kernel"}.get,  # type: ignore[dict-item]
    "operators of its own": {"cuda_runtime": "foo_runtime", "kernel": "foo_op"}.get,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("name", UNKNOWN_ROWS)
def test_a_device_of_an_unknown_vendor_opens_with_generic_names(name: str) -> None:
    rename = UNKNOWN_ROWS[name]
    rows = [[rename(row[0]) or row[0], row[1].replace("cuda", "foo"), *row[2:]] for row in ROWS]
    trace = trace_of([*rows, ["foo_memcpy", "Memcpy HtoD", 300, 5, {"bytes": 8}]])
    assert (trace.dialect.name, trace.dialect.device) == ("generic", "accelerator")
    assert len(trace.kernels) == len(trace.steps) == 4
    assert list(trace.copies["direction"]) == ["HtoD"]
    (report,) = advise(Run(name="run", workers=(trace,))).workers
    assert "accelerator" in report.verdict
    assert "GPU" not in report.verdict
