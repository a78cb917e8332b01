"""A device whose vendor is not known: what every torch trace has in common."""

import re
from types import MappingProxyType

from stepscope.dialects import MEMORY_DEVICES, Dialect

DIALECT = Dialect(
    name="generic",
    device="accelerator",
    vendor="",
    signature=re.compile(r"(?!)"),  # what is left when device events speak no known dialect
    memory_device_types=frozenset(MEMORY_DEVICES) - {0},
    terms=MappingProxyType({"module": "accelerator"}),
)
