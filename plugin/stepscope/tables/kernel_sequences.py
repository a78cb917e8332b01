"""Kernels that run one after the other again and again."""

from stepscope.analyses.devices.kernel_sequences import SCHEMA, kernel_sequences
from stepscope.tables import Table

TABLE = Table(
    title="Kernel sequences",
    meaning="One row a sequence of kernels that recurs on a stream: candidates for a fused kernel"
    " or a graph, with the launches that would save. At most 100; a kernel is in one of them only.",
    schema=SCHEMA,
    build=kernel_sequences,
)
