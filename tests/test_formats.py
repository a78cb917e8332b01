"""Files that are no traces are named by their first bytes; traces, whole or damaged, are not.

Where the producer can be had here, it writes the file; else the bytes are the least that the
format's public description asks for.
"""

import bz2
import cProfile
import gzip
import io
import json
import lzma
import pickle
import sqlite3
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracebuild
from loading import SHARED_TRACES, shared_trace_names
from logs import ROWS
from stepscope.ingest.formats import HEAD_BYTES, foreign_format

CHAKRA_JSON = {
    "schema": "1.1.1-chakra.0.0.4",
    "pid": 7,
    "time": "2026-01-01 00:00:00",
    "start_ts": 1,
    "nodes": [{"id": 2, "name": "[pytorch|profiler|execution_trace|thread]", "ctrl_deps": 1}],
}
SNAPSHOT: dict[str, Any] = {
    "segments": [{"device": 0, "address": 1, "total_size": 2097152, "blocks": []}],
    "device_traces": [[{"action": "alloc", "addr": 1, "size": 512, "frames": []}]],
}
FLIGHT_RECORDER = {"version": "2.10", "nccl_version": "2.21.5", "pg_config": {}, "entries": []}
ROCPROFV3_CSV = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id","Start_Timestamp",'
    '"End_Timestamp"\n"KERNEL_DISPATCH",1,1,2,"gemm",3,100,200\n'
)
ROCPROF_STATS = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"gemm",3,30,10,100\n'
KERNEL_DETAILS = (
    "Name,Type,Accelerator Core,Start Time(us),Duration(us)\naclnnAdd,Add,AI_CORE,1,2\n"
)
KEY_AVERAGES = """\
---------------------  ------------  ------------  ------------
                 Name    Self CPU %      Self CPU    # of Calls
---------------------  ------------  ------------  ------------
             aten::mm        50.00%       1.000ms             3
"""


def _field(number: int, value: bytes | str) -> bytes:
    """One length-delimited field of protobuf."""
    data = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(data)]) + data


def _chakra_protobuf() -> bytes:
    first = _field(1, "0.0.4")
    node = b"\x08\x01" + _field(2, "aten::mm")
    return bytes([len(first)]) + first + bytes([len(node)]) + node


def _xplane() -> bytes:
    plane = b"\x08\x01" + _field(2, "/device:GPU:0")
    return _field(1, plane) + _field(1, _field(2, "/host:CPU"))


def _perfetto() -> bytes:
    packet = b"\x50\x01\x40\x80\x01"  # trusted_packet_sequence_id and timestamp
    return _field(1, packet) * 3


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("run/worker.pt.trace.json", "{}")
    return buffer.getvalue()


def _tar() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("worker.pt.trace.json"))
    return buffer.getvalue()


def _numpy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


def _sqlite(folder: Path, table: str) -> bytes:
    path = folder / "report.sqlite"
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE {table} (start INT)")
    database.commit()
    database.close()
    return path.read_bytes()


def _profiled(folder: Path) -> bytes:
    profile = cProfile.Profile()
    profile.runcall(sum, [1, 2])
    profile.dump_stats(folder / "out.prof")
    return (folder / "out.prof").read_bytes()


FILES: dict[str, tuple[str, Callable[[Path], bytes]]] = {
    "chakra json": ("Chakra execution trace", lambda _: json.dumps(CHAKRA_JSON).encode()),
    "chakra json, cut": (
        "Chakra execution trace",
        lambda _: json.dumps(CHAKRA_JSON)[:-30].encode(),
    ),
    "chakra protobuf": ("Chakra execution trace", lambda _: _chakra_protobuf()),
    "rocprofv3 json": (
        "rocprof",
        lambda _: b'{"rocprofiler-sdk-tool":[{"metadata":{"pid":7},"agents":[]',
    ),
    "rocprofv3 csv": ("rocprof", lambda _: ROCPROFV3_CSV.encode()),
    "rocprof statistics": ("rocprof", lambda _: ROCPROF_STATS.encode()),
    "rocprof csv": ("rocprof", lambda _: b'"Index","KernelName","gpu-id"\n0,"gemm",1\n'),
    "rocpd": ("rocprof", lambda folder: _sqlite(folder, "rocpd_api")),
    "xplane": ("XPlane", lambda _: _xplane()),
    "perfetto": ("Perfetto", lambda _: _perfetto()),
    "nsight sqlite": (
        "Nsight Systems",
        lambda folder: _sqlite(folder, "CUPTI_ACTIVITY_KIND_KERNEL"),
    ),
    "nsight report": ("Nsight Systems", lambda _: b"\x01\x00\x02\x00QuadDCommon\x00"),
    "nsight compute": ("Nsight Compute", lambda _: b"NVR\x00\x08\x00\x00\x00\x0a\x01\x02"),
    "nsight table": (
        "Nsight table",
        lambda _: b"\nTime (%),Total Time (ns),Instances,Name\n50.0,10,2,gemm\n",
    ),
    "ascend database": ("Ascend profiler database", lambda folder: _sqlite(folder, "PYTORCH_API")),
    "ascend table": ("Ascend profiler table", lambda _: KERNEL_DETAILS.encode()),
    "snapshot": ("memory snapshot", lambda _: pickle.dumps(SNAPSHOT)),
    "snapshot as json": ("memory snapshot", lambda _: json.dumps(SNAPSHOT).encode()),
    "flight recorder": ("flight recorder", lambda _: pickle.dumps(FLIGHT_RECORDER)),
    "flight recorder as json": ("flight recorder", lambda _: json.dumps(FLIGHT_RECORDER).encode()),
    "pickle": ("pickle", lambda _: pickle.dumps({"a": 1})),
    "cprofile": ("cProfile", _profiled),
    "memory timeline": ("memory timeline", lambda _: b"[[1795267270951020, 1795267270951020, 17"),
    "raw memory timeline": ("memory timeline", lambda _: b"[[-1, 1, 64, 0], [-1, 1, 64, 5]]"),
    "memory timeline page": (
        "memory timeline",
        lambda _: (
            b'<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>'
        ),
    ),
    "zip": ("zip", lambda _: _zip()),
    "empty zip": ("zip", lambda _: b"PK\x05\x06" + bytes(18)),
    "gzip in gzip": ("gzip in gzip", lambda _: gzip.compress(b"{}")),
    "zstd": ("zstd", lambda _: b"\x28\xb5\x2f\xfd\x24\x02"),
    "xz": ("xz", lambda _: lzma.compress(b"{}")),
    "bzip2": ("bzip2", lambda _: bz2.compress(b"{}")),
    "7-zip": ("7-Zip", lambda _: b"7z\xbc\xaf\x27\x1c\x00\x04"),
    "lz4": ("lz4", lambda _: b"\x04\x22\x4d\x18\x64"),
    "rar": ("rar", lambda _: b"Rar!\x1a\x07\x01\x00"),
    "tar": ("tar", lambda _: _tar()),
    "sqlite": ("SQLite", lambda folder: _sqlite(folder, "things")),
    "parquet": ("Parquet", lambda _: b"PAR1\x15\x04\x15"),
    "arrow": ("Arrow", lambda _: b"ARROW1\x00\x00"),
    "numpy": ("array file", lambda _: _numpy()),
    "png": ("picture", lambda _: b"\x89PNG\r\n\x1a\n"),
    "utf-16": ("UTF-16", lambda _: '{"traceEvents": []}'.encode("utf-16")),
    "git-lfs": (
        "git-lfs pointer",
        lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:760b\nsize 870601265\n",
    ),
    "html": ("HTML", lambda _: b"\n<!DOCTYPE html>\n<html><title>Sign in</title>"),
    "html behind a comment": ("HTML", lambda _: b"<!-- saved -->\n<html lang='en'>"),
    "xml": ("XML", lambda _: b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>"),
    "har": (
        "HAR",
        lambda _: b'{"log": {"version": "1.2", "creator": {"name": "Firefox"}, "pages": [',
    ),
    "speedscope": (
        "speedscope",
        lambda _: b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "name": ',
    ),
    "cpuprofile": ("cpuprofile", lambda _: b'{"nodes":[{"id":1}],"startTime":1,"samples":[1,1]}'),
    "firefox": (
        "Firefox Profiler",
        lambda _: b'{"meta": {"interval": 1}, "libs": [], "threads": [{',
    ),
    "notebook": ("notebook", lambda _: b'{"cells": [], "metadata": {}, "nbformat": 4}'),
    "pyinstrument": (
        "pyinstrument",
        lambda _: b'{"start_time": 1.5,"duration": 0.1,"sample_count": 0,"root_frame": null}',
    ),
    "graph": ("graph", lambda _: b'{"nodes": [{"id": "a"}], "links": []}'),
    "error": ("error message", lambda _: b'{"error": "Not Found", "code": 404}'),
    "csv": ("CSV", lambda _: b"name,start,duration\naten::mm,1,2\n"),
    "key_averages": ("key_averages", lambda _: KEY_AVERAGES.encode()),
    "stacks": ("folded stacks", lambda _: b"train.py(3): step;nn.py(9): forward;aten::mm 250\n"),
    "text": ("text", lambda _: b"step 1 loss 0.5\nstep 2 loss 0.4\n"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_foreign_file_is_named(name: str, tmp_path: Path) -> None:
    expected, written = FILES[name]
    found = foreign_format(written(tmp_path)[:HEAD_BYTES])
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize("name", FILES)
def test_its_words_make_sentences(name: str, tmp_path: Path) -> None:
    found = foreign_format(FILES[name][1](tmp_path))
    assert found is not None
    assert not found.what.endswith("."), "it goes after 'This is'"
    assert not found.what[0].isupper() or found.what.split()[0].isupper(), found.what
    assert found.remedy[0].isupper()
    assert found.remedy.endswith((".", ")"))


@pytest.mark.recording
def test_what_torch_writes_beside_traces_is_named(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

    model = torch.nn.Linear(4, 4)
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    observer.start()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        model(torch.ones(2, 4)).sum().backward()
    observer.stop()
    observer.unregister_callback()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    torch.save(model.state_dict(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    (tmp_path / "table.txt").write_text(prof.key_averages().table(), encoding="utf-8")
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    names = {
        path.name: found.name if (found := foreign_format(path.read_bytes())) else None
        for path in sorted(tmp_path.iterdir())
    }
    assert names == {
        "et.json": "Chakra execution trace",
        "model.pt": "torch.save",
        "old.pt": "torch.save",
        "table.txt": "key_averages",
        "trace.json": None,
    }


def test_what_tensorboard_writes_is_named(tmp_path: Path) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(tmp_path))
    writer.add_event(Event(step=1))
    writer.close()
    (path,) = tmp_path.iterdir()
    found = foreign_format(path.read_bytes())
    assert found is not None
    assert found.name == "TensorBoard events"


TRACE = json.dumps(tracebuild.document(rows=ROWS))
TRACES = {
    "whole": TRACE,
    "cut": TRACE[:5000],
    "bare list": json.dumps(tracebuild.chrome_events(ROWS)),
    "byte order mark": "\ufeff" + TRACE,
    "metadata first": '{"nodes": [], "schema": 1, "error": "x", "log": {"creator": 1}, '
    + TRACE[1:],
    "a metadata value is cut": '{"schemaVersion": 1, "INFO": "nodes and schema',
    "list of nothing": "[]",
    "empty": "",
}


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_not_foreign(name: str) -> None:
    assert foreign_format(TRACES[name].encode()) is None


@pytest.mark.parametrize("name", shared_trace_names())
def test_no_real_trace_is_foreign(name: str) -> None:
    with gzip.open(SHARED_TRACES / name) as stream:
        assert foreign_format(stream.read(HEAD_BYTES)) is None


@given(st.binary(max_size=300))
def test_any_bytes_have_an_answer(head: bytes) -> None:
    assert foreign_format(head) is foreign_format(head)


@pytest.mark.parametrize(
    "piece",
    [b";", b"Self CPU ", b"\x80\x04segments", b"<!-- -->", b'{"a":', b"a,", b"\x0a", b"1 ;", b"["],
)
def test_no_head_takes_long(piece: bytes) -> None:
    head = (piece * HEAD_BYTES)[:HEAD_BYTES]
    began = time.process_time()
    foreign_format(head)
    assert time.process_time() - began < 5
