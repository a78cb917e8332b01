"""Kernels with their launch parameters."""

from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.frames import Column, Schema, device_events
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    *device_events.SCHEMA,
    Column("grid", "category", "text", "Blocks in x, y, z (JSON). ROCm: see `dialects.rocm`."),
    Column("block", "category", "text", "Threads per block in x, y, z (JSON)."),
    Column("registers_per_thread", "float64", "count", "NaN: not recorded."),
    Column("shared_memory_bytes", "float64", "bytes", "Static and dynamic, per block."),
    Column("blocks_per_sm", "float64", "count", "Blocks over multiprocessors (kineto); NaN: none."),
    Column("occupancy_share", "float64", "share", "Kineto's `est. achieved occupancy %` / 100."),
    Column("graph", "int64", "id", "The CUDA graph it was replayed from, -1 outside graphs."),
)


def build(source: Source, events: pd.DataFrame) -> pd.DataFrame:
    """Return the kernels among the device events, in `SCHEMA` columns."""
    kernels = events[events["kind"] == int(Kind.KERNEL)].reset_index(drop=True)
    rows = kernels["event"].to_numpy()
    blocks = source.number("blocks per SM", rows)
    occupancy = source.number("est. achieved occupancy %", rows)
    return kernels.assign(
        grid=source.label("grid", rows),
        block=source.label("block", rows),
        registers_per_thread=source.number("registers per thread", rows),
        shared_memory_bytes=source.number("shared memory", rows),
        # a negative number is an exporter's overflow, and so is a million
        blocks_per_sm=np.where((blocks >= 0) & (blocks < 1e6), blocks, np.nan),
        occupancy_share=np.where((occupancy >= 0) & (occupancy <= 100), occupancy, np.nan) / 100,
        graph=source.whole("graph id", rows),
    )


public_table(
    "kernel-events",
    SCHEMA,
    "One row per kernel that ran: its time, device and launch parameters.",
)(attrgetter("kernels"))
