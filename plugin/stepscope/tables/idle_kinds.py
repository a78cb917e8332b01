"""Idle time of streams, as HTA tells it apart."""

from stepscope.analyses.idle.idle_kinds import SCHEMA, idle_kinds
from stepscope.tables import Table

TABLE = Table(
    title="Idle time by kind",
    meaning="Three rows a stream: how long it stood still between its work because the host was"
    " late (host wait), because a kernel takes time to begin (kernel wait), and otherwise.",
    schema=SCHEMA,
    build=idle_kinds,
)
