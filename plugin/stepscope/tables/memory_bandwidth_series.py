"""Rates of copies and memory sets over time."""

from stepscope.analyses.devices.memory_bandwidth import SERIES, bandwidth_series
from stepscope.tables import Table

TABLE = Table(
    title="Memory bandwidth over time",
    meaning="One row a change of the rate at which a device copies in one direction, or sets"
    " memory: a copy or memory set began or ended.",
    schema=SERIES,
    build=bandwidth_series,
)
