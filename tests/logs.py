"""Small log directories on disk, for tests of the catalog, the API and the command line."""

import gzip
import json
import os
from pathlib import Path

import tracebuild

STEP_US = 10_000
ROWS: tuple[tracebuild.Row, ...] = tuple(
    row
    for step in range(4)
    for row in (
        ["user_annotation", f"ProfilerStep#{step}", step * STEP_US, STEP_US],
        ["cpu_op", "aten::mm", step * STEP_US + 100, 200],
        ["cuda_runtime", "cudaLaunchKernel", step * STEP_US + 150, 10, {"correlation": step + 1}],
        ["kernel", "gemm", step * STEP_US + 200, 4000, {"correlation": step + 1}],
    )
)
"""Four steps of 10 ms with one kernel of 4 ms each: the device is idle for most of each."""
EVENT_COUNT = len(tracebuild.document(rows=ROWS)["traceEvents"])


def write_trace(path: Path, rows: tuple[tracebuild.Row, ...] = ROWS, **metadata: object) -> Path:
    """Write a trace; gzipped where the name says so."""
    text = json.dumps(tracebuild.document(rows=rows, metadata=metadata), default=str).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def write_run(folder: Path, *workers: str) -> Path:
    """Write one trace a worker."""
    for worker in workers or ("worker0",):
        write_trace(folder / f"{worker}.1700000000000.pt.trace.json.gz")
    return folder


def write_long_ago(path: Path, content: bytes = b"") -> Path:
    """Write a file that nobody is taken to be still writing, whatever is missing of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (1, 1))
    return path
