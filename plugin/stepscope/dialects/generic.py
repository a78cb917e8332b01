"""A device whose vendor is not known: what every torch trace has in common."""

import re

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="generic",
    device="device",
    vendor="",
    signature=re.compile(r"(?!)"),  # what is left when device events speak no known dialect
    memory_device_types=frozenset({1, 6, 12, 13, 19, 20}),
)
