"""Waits on the device, recorded with `enable_cuda_sync_events`.

CUPTI's synchronization records, which kineto writes with
`_ExperimentalConfig(enable_cuda_sync_events=True)`: a host thread that waits for a stream, a device
or an event, or a stream that waits for an event recorded on another.
"""

from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.frames import TIMING, Column, Schema
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

MOST = 2**32 - 1
""""No stream", written as an unsigned number."""
SCHEMA: Schema = (
    *TIMING,
    Column("device", "int64", "id", "The device; -1: not recorded."),
    Column("stream", "int64", "id", "The waiting or awaited stream; -1: all, or none."),
    Column("correlation", "int64", "id", "Shared with the host's call; -1: none."),
    Column("awaited_stream", "int64", "id", "Stream that recorded the awaited event; -1: unknown."),
    Column("record_correlation", "int64", "id", "Of the call that recorded that event; -1: none."),
)
STREAM_SYNC, CONTEXT_SYNC = "Stream Sync", "Context Sync"
EVENT_SYNC, STREAM_WAIT = "Event Sync", "Stream Wait Event"
"""kineto's names (libkineto/src/CuptiActivity.h); the first three are waits of the host."""


def build(source: Source) -> pd.DataFrame:
    """Return one row per record, in `SCHEMA` columns, in the order they began."""
    rows = source.rows(Kind.SYNCHRONIZATION)
    stream = source.whole("stream", rows)
    return pd.DataFrame(
        {
            **source.timing(rows),
            "device": source.whole("device", rows),
            "stream": np.where(stream == MOST, -1, stream),
            "correlation": source.correlation(rows),
            "awaited_stream": source.whole("wait_on_stream", rows),
            "record_correlation": source.whole("wait_on_cuda_event_record_corr_id", rows),
        },
        copy=False,
    )


public_table(
    "synchronization-events",
    SCHEMA,
    "One row per record of a wait: a host thread's for a stream, device or event, or a stream's"
    " for an event of another, as `enable_cuda_sync_events` records.",
)(attrgetter("synchronization_events"))
