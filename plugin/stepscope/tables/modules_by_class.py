"""Modules by class."""

from stepscope.analyses.host.module_table import CLASS_SCHEMA, class_table
from stepscope.tables import Table

TABLE = Table(
    title="Modules by class",
    meaning="One row a class of nn.Modules: what all its instances cost together.",
    schema=CLASS_SCHEMA,
    build=class_table,
)
