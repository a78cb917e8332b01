"""Copies by direction and kinds of memory."""

from stepscope.analyses.devices.transfer_table import COPIES, copies
from stepscope.tables import Table

TABLE = Table(
    title="Copies",
    meaning="One row a kind of copy between memories: how many bytes, how fast, and how much of its"
    " time nothing hid.",
    schema=COPIES,
    build=copies,
)
