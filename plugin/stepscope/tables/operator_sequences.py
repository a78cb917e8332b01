"""Kernels that operators run one after the other."""

from stepscope.analyses.operators.kernel_runs import SCHEMA, operator_sequences
from stepscope.tables import Table

TABLE = Table(
    title="Kernel sequences of operators",
    meaning="One row an operator or annotation and the sequence of kernels that its calls ran: how"
    " many calls, and what they cost. At most 1000, of two to 63 kernels.",
    schema=SCHEMA,
    build=operator_sequences,
)
