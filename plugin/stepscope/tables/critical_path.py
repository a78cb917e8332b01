"""The critical path, segment by segment."""

from stepscope.analyses.idle.critical_path_tables import SEGMENT_SCHEMA, critical_path_segments
from stepscope.tables import Table

TABLE = Table(
    title="Critical path",
    meaning="One row a segment of the path that each step took: what it was waiting for at every "
    "moment, from its beginning to its end.",
    schema=SEGMENT_SCHEMA,
    build=critical_path_segments,
)
