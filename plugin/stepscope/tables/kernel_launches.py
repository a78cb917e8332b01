"""Launches by what was launched."""

from stepscope.analyses.devices.kernel_launches import BY_NAME, launches_by_name
from stepscope.tables import Table

TABLE = Table(
    title="Kernel launches",
    meaning="One row a name of device work: what launching it cost the host, how long it then took"
    " to begin, and how much of it was shorter than its launch.",
    schema=BY_NAME,
    build=launches_by_name,
)
