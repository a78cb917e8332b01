"""Copies by kind, operator and source line."""

from stepscope.analyses.devices.transfer_table import COPIES_BY_OWNER, copies_by_owner
from stepscope.tables import Table

TABLE = Table(
    title="Copies by owner",
    meaning="One row a kind of copy, the operator that asked for it, and the line of the user's own"
    " code that led there.",
    schema=COPIES_BY_OWNER,
    build=copies_by_owner,
)
