"""Statistics of the steady steps."""

from stepscope.analyses.steps.step_statistics import STATISTICS, step_statistics
from stepscope.tables import Table

TABLE = Table(
    title="Step statistics",
    meaning="One row a measure of the steady steps (duration, device time, each part of a step):"
    " its middle, its jitter, its outliers and its drift.",
    schema=STATISTICS,
    build=step_statistics,
)
