"""Matrix products, convolutions and attention under the device's roofs."""

from stepscope.analyses.devices.roofline import SCHEMA, roofline
from stepscope.tables import Table

TABLE = Table(
    title="Roofline",
    meaning="One row a matrix product, convolution or attention and the shapes of its inputs: how"
    " fast its kernels were, of what the device can do at its type, and what bounds it.",
    schema=SCHEMA,
    build=roofline,
)
