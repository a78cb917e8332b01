"""Launches by the call that made them."""

from stepscope.analyses.devices.kernel_launches import BY_CALL, launches_by_call
from stepscope.tables import Table

TABLE = Table(
    title="Launching calls",
    meaning="One row a call of the runtime or driver that launches work, and a last one of all:"
    " what the calls cost the host, and how long the work took to begin.",
    schema=BY_CALL,
    build=launches_by_call,
)
