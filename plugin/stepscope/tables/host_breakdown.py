"""Host breakdown."""

from stepscope.analyses.host.breakdown import SCHEMA, host_breakdown
from stepscope.tables import Table

TABLE = Table(
    title="Host breakdown",
    meaning="One row a step and category: where the main thread was, in operators, launches, "
    "waits, or in Python between them.",
    schema=SCHEMA,
    build=host_breakdown,
)
