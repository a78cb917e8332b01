"""What ran on the devices: kernels, copies and memory sets, in the order they began."""

import re

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.frames import TIMING, Column, Schema
from stepscope.frames.naming import named
from stepscope.frames.source import Rows, Source

MOST_DIGITS = 18
"""What any int64 holds; no device, stream or process has a longer number."""
SCHEMA: Schema = (
    *TIMING,
    Column("kind", "int8", "", "`dialects.Kind`: KERNEL, COPY or MEMORY_SET."),
    Column("device", "int64", "id", "The device's number as the trace has it."),
    Column("stream", "int64", "id", "The stream (queue) on that device; -1 where not recorded."),
    Column("correlation", "int64", "id", "Shared with the host call that launched it; -1: none."),
    Column("is_collective", "bool", "", "True for kernels of NCCL, RCCL and the like."),
)


def build(source: Source) -> pd.DataFrame:
    """Return one row a device event, in `SCHEMA` columns."""
    rows = source.rows(Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)
    timing = source.timing(rows)
    is_collective = named(timing["name"], source.dialect.collective.search)
    kind = source.kinds[rows]
    is_kernel = kind == int(Kind.KERNEL)
    return pd.DataFrame(
        {
            **timing,
            "kind": kind,
            "device": _device(source, rows),
            "stream": _stream(source, rows),
            "correlation": source.whole("correlation", rows),
            "is_collective": is_collective & is_kernel,
        }
    )


def _device(source: Source, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the `device` argument, else the process id, which kineto sets to the device."""
    device = source.whole("device", rows)
    return np.where(device >= 0, device, _digits(source, source.columns.pid[rows]))


def _stream(source: Source, rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    stream = source.whole("stream", rows)
    return np.where(stream >= 0, stream, _digits(source, source.columns.tid[rows]))


def _digits(
    source: Source, codes: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    texts = source.text(codes)
    found = [re.search(r"\d+", str(text)) for text in texts.categories]
    numbers = np.array(
        [*(_fitting(match[0]) if match else -1 for match in found), -1], dtype=np.int64
    )
    return np.asarray(numbers[texts.codes])


def _fitting(digits: str) -> int:
    """Return the number, -1 where 64 bits do not hold it."""
    return int(digits) if len(digits) <= MOST_DIGITS else -1
