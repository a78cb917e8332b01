"""Rates of copies and memory sets."""

from stepscope.analyses.devices.memory_bandwidth import SUMMARY, bandwidth_summary
from stepscope.tables import Table

TABLE = Table(
    title="Memory bandwidth",
    meaning="One row a device and direction of copies, or memory sets: how fast they were.",
    schema=SUMMARY,
    build=bandwidth_summary,
)
