"""Bytes of one trace file to columns of events: every field and argument kept, times exact.

`read` is the whole of it; `columns` is what it gives.
"""

from stepscope.ingest.columns import ArgumentColumn, EventColumns, Incident
from stepscope.ingest.reader import read

__all__ = ["ArgumentColumn", "EventColumns", "Incident", "read"]
