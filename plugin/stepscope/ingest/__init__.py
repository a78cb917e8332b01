"""Bytes of one trace file to columns of events: every field and argument kept, times exact.

`read` is the whole of it; `columns` is what it gives. A file's bytes are inflated on a thread
(`inflate`), walked (`documents`), repaired where they are damaged (`repair`, `incidents`), and
taken into columns by the compiled scanner (`scanned`, `_scanner.pyx`), or by Python (`builder`).
"""

from stepscope.ingest.columns import ArgumentColumn, EventColumns
from stepscope.ingest.incidents import Example, Incident
from stepscope.ingest.reader import is_compiled, read

__all__ = ["ArgumentColumn", "EventColumns", "Example", "Incident", "is_compiled", "read"]
