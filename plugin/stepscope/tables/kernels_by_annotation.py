"""Device work by the annotation around it."""

from stepscope.analyses.devices.annotations import KERNELS, annotated_kernels
from stepscope.tables import Table

TABLE = Table(
    title="Kernels by annotation",
    meaning="One row a device, innermost annotation and name of work: how often that ran there.",
    schema=KERNELS,
    build=annotated_kernels,
)
