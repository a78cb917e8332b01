"""What stands on the critical path."""

from stepscope.analyses.idle.critical_path_tables import HOTSPOT_SCHEMA, critical_path_hotspots
from stepscope.tables import Table

TABLE = Table(
    title="Critical path hot spots",
    meaning="One row a name and kind of bound: the operators, calls and device work that the "
    "critical paths of all steps lead through, the longest first.",
    schema=HOTSPOT_SCHEMA,
    build=critical_path_hotspots,
)
