"""Compiled regions."""

from stepscope.analyses.compiled.compiled_regions import SCHEMA, compiled_region_table
from stepscope.tables import Table

TABLE = Table(
    title="Compiled regions",
    meaning="One row a region that torch.compile made: its calls, compilations, graph breaks, and "
    "what they cost.",
    schema=SCHEMA,
    build=compiled_region_table,
)
