"""A run's figures over its spans."""

from stepscope.comparison.trends import SCHEMA, frame, trend
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Trends",
    meaning="One row a recording of a run: its mean step and where that went, how busy the device"
    " was, what advice could save, the peak of memory. To follow over a run's spans.",
    schema=SCHEMA,
    part=trend,
    build=frame,
)
