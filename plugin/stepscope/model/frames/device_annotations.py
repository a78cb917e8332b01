"""Annotations of the host on the device: from the first work under them to the last.

Kineto writes them (`gpu_user_annotation`) on each stream with work of a `record_function`. It also
writes the steps: `frames.steps` has those of the host.
"""

from operator import attrgetter

import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.frames import TIMING, Column, Schema, device_events
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    *TIMING,
    Column("device", "int64", "id", "The device's number as the trace has it."),
    Column("stream", "int64", "id", "The stream, or queue, on that device; -1: not recorded."),
)


def build(source: Source) -> pd.DataFrame:
    """Return one row per device annotation, in `SCHEMA` columns, in the order they began."""
    rows = source.rows(Kind.DEVICE_ANNOTATION)
    return pd.DataFrame(
        {
            **source.timing(rows),
            "device": device_events.device_of(source, rows),
            "stream": device_events.stream_of(source, rows),
        },
        copy=False,
    )


public_table(
    "device-annotation-events",
    SCHEMA,
    "One row per annotation on a stream: from the first work under it to the last.",
)(attrgetter("device_annotations"))
