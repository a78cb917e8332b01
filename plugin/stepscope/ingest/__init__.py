"""Parsing of one trace file into columns of events: every field and argument, with exact times.

`read` returns the `columns`. A file's bytes are inflated on a thread (`inflate`), walked
(`documents`), repaired if damaged (`repair`, `incidents`), and converted to columns by the compiled
scanner (`compiled_reader`, `_scanner.pyx`), or by Python (`column_builder`, `batches`).
"""

from stepscope.ingest.columns import ArgumentColumn, EventColumns
from stepscope.ingest.incidents import Example, Incident
from stepscope.ingest.reader import is_compiled, read

__all__ = ["ArgumentColumn", "EventColumns", "Example", "Incident", "is_compiled", "read"]
