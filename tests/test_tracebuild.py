"""The tests' own vocabulary: what a row becomes, and that what is written reads back."""

import gzip
import json
from decimal import Decimal
from pathlib import Path

import pytest

import tracebuild


def test_rows_become_events() -> None:
    rows = [
        ["cpu_op", "aten::mm", 10, 20, {"Input Dims": [[8, 8]], "tid": 3}],
        ["kernel", "gemm", 30, 40, {"correlation": 1, "stream": 20}],
        ["cpu_instant_event", "[memory]", 15, None, {"Bytes": 512}],
        ["Kernel", "gemm", 30, 40],
    ]
    assert tracebuild.chrome_events(rows) == [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": 100,
            "tid": 3,
            "ts": 10.0,
            "dur": 20.0,
            "args": {"Input Dims": [[8, 8]]},
        },
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 20,
            "ts": 30.0,
            "dur": 40.0,
            "args": {"device": 0, "stream": 20, "correlation": 1},
        },
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": 15.0,
            "args": {"Bytes": 512},
        },
        {
            "ph": "X",
            "cat": "Kernel",
            "name": "gemm",
            "pid": 0,
            "tid": "stream 7",
            "ts": 30,
            "dur": 40,
            "args": {"device": 0, "stream": 7},
        },
    ]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("layout", ["kineto", "compact"])
def test_a_written_trace_reads_back(tmp_path: Path, name: str, layout: str) -> None:
    trace = tracebuild.document(rows=[["kernel", "gemm", 0.25, 1]], metadata={"with_stack": 1})
    path = tracebuild.write(trace, tmp_path / "run" / name, layout=layout)
    raw = path.read_bytes()
    assert json.loads(gzip.decompress(raw) if name.endswith("gz") else raw) == trace


def test_rows_can_stand_beside_a_schedule() -> None:
    trace = tracebuild.document(
        rows=[["cpu_op", "aten::mm", 0, 1]], schedule=[{"host": 5}], metadata={"with_flops": 1}
    )
    assert trace["with_flops"] == 1
    assert trace["stepscope"]["synthetic"] is True
    assert trace["traceEvents"][-1]["name"] == "aten::mm"


def test_only_a_trace_with_device_rows_has_a_device() -> None:
    on_cpu = tracebuild.document(rows=[["cpu_op", "aten::mm", 0, 1]])
    on_gpu = tracebuild.document(rows=[["Kernel", "gemm", 0, 1]])
    assert (len(on_cpu["deviceProperties"]), len(on_gpu["deviceProperties"])) == (0, 1)


def test_a_decimal_time_is_written_to_the_nanosecond(tmp_path: Path) -> None:
    # A float cannot hold the absolute stamps of 2024 to better than a quarter of a microsecond.
    stamp = Decimal("1712195495505582.988")
    trace = tracebuild.document(rows=[["kernel", "gemm", stamp, 1]])
    path = tracebuild.write(trace, tmp_path / "trace.json")
    assert '"ts": 1712195495505582.988' in path.read_text()
