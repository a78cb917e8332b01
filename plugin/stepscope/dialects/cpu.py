"""No device at all: operators on the host."""

import re

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="cpu",
    device="CPU",
    vendor="",
    signature=re.compile(r"(?!)"),  # what is left when a trace has no device event
)
