"""What each operator ran on the devices."""

from stepscope.analyses.operators.operator_kernels import SCHEMA, operator_kernels
from stepscope.tables import Table

TABLE = Table(
    title="Kernels of operators",
    meaning="One row an operator and a kernel, copy or memory set that it launched itself.",
    schema=SCHEMA,
    build=operator_kernels,
)
