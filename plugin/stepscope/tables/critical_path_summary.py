"""What the critical path is bound by."""

from stepscope.analyses.idle.critical_path_tables import SUMMARY_SCHEMA, critical_path_summary
from stepscope.tables import Table

TABLE = Table(
    title="Critical path summary",
    meaning="One row a step and kind of bound, and the same for all steps together: how much of "
    "the step its critical path spent so.",
    schema=SUMMARY_SCHEMA,
    build=critical_path_summary,
)
