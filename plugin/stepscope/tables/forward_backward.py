"""Forward operators and what their backward pass costs."""

from stepscope.analyses.operators.forward_backward_table import SCHEMA, forward_backward_table
from stepscope.tables import Table

TABLE = Table(
    title="Forward and backward",
    meaning="One row a forward operator and autograd's node of it: the time of both passes.",
    schema=SCHEMA,
    build=forward_backward_table,
)
