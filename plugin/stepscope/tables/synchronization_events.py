"""What waited for what on the device, one by one."""

from stepscope.model.frames.synchronization_events import SCHEMA
from stepscope.tables import Table

TABLE = Table(
    title="Synchronization events",
    meaning="One row a record of a wait: a host thread's for a stream, device or event, or a "
    "stream's for an event of another, as `enable_cuda_sync_events` records.",
    schema=SCHEMA,
    build=lambda trace: trace.synchronization_events,
)
