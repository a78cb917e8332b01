"""Kernels, copies and memory sets on the devices, in the order they began."""

import re
from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames import TIMING, Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

PROCESS_LABEL = re.compile(r"^[A-Za-z]+ (\d{1,18})$")
"""Label of a device's rows: `GPU 0`, `NPU 3`."""
MOST_DIGITS = 18
"""A number of this many digits fits int64; no device, stream or process needs more."""
MOST_DEVICES = 64
"""Of one trace; more numbers are damage, and each device costs milliseconds in every analysis."""
SCHEMA: Schema = (
    *TIMING,
    Column("kind", "int8", "", "`dialects.Kind`: KERNEL, COPY or MEMORY_SET."),
    Column("device", "int64", "id", "The device's number as the trace has it."),
    Column("stream", "int64", "id", "The stream, or queue, on that device; -1: not recorded."),
    Column("correlation", "int64", "id", "Shared with the host call that launched it; -1: none."),
    Column("is_collective", "bool", "", "True for kernels of NCCL, RCCL and the like."),
)


def build(source: Source) -> pd.DataFrame:
    """Return one row per device event, in `SCHEMA` columns."""
    rows = source.rows(Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)
    timing = source.timing(rows)
    is_collective = name_mask(timing["name"], source.dialect.collective.search)
    kind = source.kinds[rows]
    is_kernel = kind == int(Kind.KERNEL)
    return pd.DataFrame(
        {
            **timing,
            "kind": kind,
            "device": _busiest(device_of(source, rows)),
            "stream": stream_of(source, rows),
            "correlation": source.correlation(rows),
            "is_collective": is_collective & is_kernel,
        },
        copy=False,
    )


def _busiest(device: Ints) -> Ints:
    """Return the numbers of the devices with most events; -1 for the others."""
    numbers, index, count = np.unique(device, return_inverse=True, return_counts=True)
    if len(numbers) <= MOST_DEVICES:
        return device
    busiest = np.argsort(-count, kind="stable")[:MOST_DEVICES]
    return np.where(np.isin(index, busiest), device, NONE)


def device_of(source: Source, rows: Ints) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the `device` argument, otherwise the label's number, otherwise the process id."""
    processes = source.columns.pid[rows]
    number = digits(source, processes)
    if bits := source.dialect.device_bits:
        is_layer = number >> source.dialect.layer_bits > 0
        number = np.where(is_layer, number & (1 << bits) - 1, number)
    for process, labelled in labelled_processes(source).items():
        number[processes == process] = labelled
    device = source.whole("device", rows)
    return np.where(device >= 0, device, number)


def labelled_processes(source: Source) -> dict[int, int]:
    """Return the device number of each process (as a code) with a device label."""
    columns = source.columns
    labels = columns.arguments.get("labels")
    if labels is None or labels.texts is None:
        return {}
    matches = [PROCESS_LABEL.match(text) for text in labels.texts]
    pairs = zip(columns.pid[labels.rows].tolist(), labels.values.tolist(), strict=True)
    return {process: int(m[1]) for process, label in pairs if (m := matches[label])}


def stream_of(source: Source, rows: Ints) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the stream, otherwise the queue, the row's number in the trace, or a handle."""
    stream = source.whole("stream", rows)
    stream = np.where(stream >= 0, stream, source.whole("sycl queue", rows))
    stream = np.where(stream >= 0, stream, digits(source, source.columns.tid[rows]))
    return np.where(stream >= 0, stream, source.whole("l0 queue", rows))


def digits(
    source: Source, codes: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the first number in each of these texts, -1 if there is none that fits."""
    texts = source.text(codes)
    matches = [re.search(r"\d+", str(text)) for text in texts.categories]
    numbers = np.array(
        [*(_fitting(match[0]) if match else -1 for match in matches), -1], dtype=np.int64
    )
    return np.asarray(numbers[texts.codes])


def _fitting(digits: str) -> int:
    """Return the number, -1 if it may not fit 64 bits."""
    return int(digits) if len(digits) <= MOST_DIGITS else -1


public_table(
    "device-events",
    SCHEMA,
    "One row per kernel, copy or memory set, in the order they began.",
)(attrgetter("device_events"))
