"""Collectives, one row each."""

from stepscope.analyses.communication.collective_events import SCHEMA, collective_events
from stepscope.tables import Table

TABLE = Table(
    title="Collective events",
    meaning="One row a collective: when it ran, among whom, what it sent, how fast, and how much"
    " of it was not hidden behind computing.",
    schema=SCHEMA,
    build=collective_events,
)
