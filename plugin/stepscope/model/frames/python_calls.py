"""Python functions and modules, with `with_stack` or `with_modules`."""

from operator import attrgetter

import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.frames import THREAD, TIMING, Column, Schema
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    *TIMING,
    THREAD,
    Column("python_id", "int64", "id", "The profiler's number of the call, -1: none."),
    Column("python_parent_id", "int64", "id", "The number of its caller, -1 at the top."),
)


def build(source: Source) -> pd.DataFrame:
    """Return one row per Python call, in `SCHEMA` columns, in the order they began."""
    rows = source.rows(Kind.PYTHON_CALL)
    return pd.DataFrame(
        {
            **source.timing(rows),
            "thread": source.thread(rows),
            "python_id": source.whole("Python id", rows),
            "python_parent_id": source.whole("Python parent id", rows),
        },
        copy=False,
    )


public_table(
    "python-calls",
    SCHEMA,
    "One row per call of a Python function or module, as `with_stack=True` records.",
)(attrgetter("python_calls"))
