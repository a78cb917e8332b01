"""Steps with what is odd about them."""

from stepscope.analyses.steps.step_statistics import STEPS, steps_table
from stepscope.tables import Table

TABLE = Table(
    title="Steps",
    meaning="One row a step: how long it took, how busy the devices were, and whether it is odd.",
    schema=STEPS,
    build=steps_table,
)
