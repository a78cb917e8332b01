"""Calls of the host into the device's runtime and driver: launches, copies, waits, allocations."""

from operator import attrgetter

import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.frames import THREAD, TIMING, Column, Schema
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    *TIMING,
    THREAD,
    Column("correlation", "int64", "id", "Shared with the device event that it launched; -1:"
           " none."),
)  # fmt: skip


def build(source: Source) -> pd.DataFrame:
    """Return one row per call, in `SCHEMA` columns, in the order they began."""
    rows = source.rows(Kind.RUNTIME_CALL)
    return pd.DataFrame(
        {
            **source.timing(rows),
            "thread": source.thread(rows),
            "correlation": source.correlation(rows),
        },
        copy=False,
    )


public_table(
    "runtime-calls",
    SCHEMA,
    "One row per call into a runtime or driver: launches, copies, waits, allocations.",
)(attrgetter("runtime_calls"))
