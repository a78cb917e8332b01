"""A device of an unknown vendor: names that every torch trace has."""

import re
from types import MappingProxyType

from stepscope.dialects import MEMORY_DEVICES, Dialect

DIALECT = Dialect(
    name="generic",
    device="accelerator",
    vendor="",
    signature=re.compile(r"(?!)"),  # the default for device events of no other dialect
    memory_device_types=frozenset(MEMORY_DEVICES) - {0},
    terms=MappingProxyType({"module": "accelerator"}),
)
