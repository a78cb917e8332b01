"""Compilations."""

from stepscope.analyses.compiled.compilations import SCHEMA, compilation_table
from stepscope.tables import Table

TABLE = Table(
    title="Compilations",
    meaning="One row a compilation of torch.compile while the profiler ran: which frame, whether "
    "again, and how long it took.",
    schema=SCHEMA,
    build=compilation_table,
)
