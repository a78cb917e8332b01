"""Traces without a device: operators on the host."""

import re

from stepscope.dialects import Dialect

DIALECT = Dialect(
    name="cpu",
    device="CPU",
    vendor="",
    signature=re.compile(r"(?!)"),  # the default for traces without device events
)
