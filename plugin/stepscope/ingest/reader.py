"""Reader of one trace file: inflate, walk the top level, append every event to the columns."""

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from stepscope import storage
from stepscope.base import formatting
from stepscope.base.config import FileLimits, file_limits
from stepscope.base.errors import UnreadableError
from stepscope.ingest import compiled_reader
from stepscope.ingest.batches import BatchedColumns
from stepscope.ingest.column_builder import OneByOne
from stepscope.ingest.columns import EventColumns, FileFacts, event_columns
from stepscope.ingest.compiled_reader import ScannedColumns
from stepscope.ingest.documents import Document
from stepscope.ingest.formats import foreign_format
from stepscope.ingest.gc_pause import without_collections
from stepscope.ingest.incidents import RECORD_AGAIN, Incident, IncidentLog
from stepscope.ingest.inflate import Inflater, read_ahead
from stepscope.storage import FileStamp

log = logging.getLogger(__name__)

Progress = Callable[[int, int, int], None]
"""Called with bytes read of the file, the file's bytes, and events so far."""

BROKEN = ("truncated-gzip", "truncated-json")
NO_EVENT = ("skipped-events", "not-an-event", "interleaved-documents")
EMPTY = "The file is empty."
ENDS_AT_ONCE = "The file ends before its first event."
RECORD_LESS = "Record fewer steps, or without with_stack."
OR_SET = "To read it nevertheless, raise the limit:"
REACH_ACTIVE_STEPS = (
    "Call profiler.step() in the loop, and let the schedule reach its active steps."
)
EXPORT = "Use a file written by torch.profiler (export_chrome_trace)."
GIVE_A_TRACE = "Use a file written by torch.profiler (.pt.trace.json or .pt.trace.json.gz)."
FORCED = "STEPSCOPE_PURE_PYTHON"
"""If 1, the compiled scanner is not used: for tests and comparisons."""
ONE_BY_ONE = "one-by-one"
"""With this value, each event is read alone: slow and simple, the reference for other readers."""


def is_compiled() -> bool:
    """Return whether the compiled scanner is available and enabled."""
    return compiled_reader.IS_BUILT and os.environ.get(FORCED, "") in {"", "0"}


@cache
def _say_that_it_is_slow() -> None:
    log.warning(
        "The compiled scanner is not built: traces are read in Python, many times slower. Install "
        "a C compiler and Python's headers (Debian, Ubuntu: apt-get install gcc python3-dev), then "
        "install stepscope again."
    )


def read(
    path: str, progress: Progress | None = None, limits: FileLimits | None = None
) -> EventColumns:
    """Read a trace file, gzipped or plain, of any name.

    A truncated or damaged file gives its intact part; losses are in `incidents`.

    Raises:
        UnreadableError: The file cannot be opened, is empty, is not JSON, or has no event.
    """
    limits = limits or file_limits()
    try:
        stream, stamp = storage.open_with_stamp(path)
        with stream:
            log = IncidentLog()
            inflater = Inflater(stream, limits, log)
            reading = _Reading(path=path, stamp=stamp, inflater=inflater, log=log, limits=limits)
            with read_ahead(inflater.pieces()) as pieces, without_collections():
                return reading.columns(pieces, progress)
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """State of one file while it is read."""

    path: str
    stamp: FileStamp
    inflater: Inflater
    log: IncidentLog
    limits: FileLimits

    def columns(self, pieces: Iterator[bytes], progress: Progress | None) -> EventColumns:
        builder = self._builder()

        def on_piece() -> None:
            if progress:
                progress(self.inflater.bytes_read, self.stamp.size_bytes, len(builder))

        scanner = None if isinstance(builder, OneByOne) else builder
        document = Document(pieces, self.log, scanner, on_piece)
        for event in document.events():
            if len(builder) >= self.limits.events:
                message = f"This contains more than {self.limits.events:,} events."
                raise UnreadableError(
                    self.path, message, f"{RECORD_LESS} {OR_SET} STEPSCOPE_MAX_EVENTS."
                )
            builder.add(event)
        self._check(document, len(builder))
        parts = builder.taken()
        *arrays, offsets = parts.arrays
        parts = replace(parts, arrays=[*arrays, self.inflater.original_offsets(offsets)])
        facts = FileFacts(
            metadata=document.metadata,
            incidents=tuple(self._placed(incident) for incident in self.log.incidents()),
            inflated_bytes=self.inflater.original_offset(document.read_bytes),
            stamp=self.stamp,
        )
        return event_columns(parts, facts)

    def _builder(self) -> ScannedColumns | BatchedColumns | OneByOne:
        if is_compiled():
            return ScannedColumns(self.log, self.limits.events)
        if not compiled_reader.IS_BUILT:
            _say_that_it_is_slow()
        if os.environ.get(FORCED) == ONE_BY_ONE:
            return OneByOne(self.log)
        return BatchedColumns(self.log, most_events=self.limits.events)

    def _check(self, document: Document, event_count: int) -> None:
        if self.inflater.is_over_size:
            message = f"This contains more than {formatting.size(self.limits.json_bytes)} of JSON."
            raise UnreadableError(self.path, message, f"{RECORD_LESS} {OR_SET} STEPSCOPE_MAX_JSON.")
        if self.inflater.is_over_ratio:
            message = f"Its JSON is more than {self.limits.ratio} times as large as the file."
            remedy = f"Such a file is no trace. {OR_SET} STEPSCOPE_MAX_RATIO."
            raise UnreadableError(self.path, message, remedy)
        if event_count == 0:
            raise self._unusable(document)

    def _placed(self, incident: Incident) -> Incident:
        """Return the incident with its examples' offsets in the original file."""
        examples = tuple(
            replace(example, offset_bytes=self.inflater.original_offset(example.offset_bytes))
            for example in incident.examples
        )
        return replace(incident, examples=examples)

    def _unusable(self, document: Document) -> UnreadableError:
        foreign = foreign_format(self.inflater.head)
        if foreign is not None:
            return UnreadableError(self.path, f"This is {foreign.what}.", foreign.remedy)
        is_broken = self.log.count(*BROKEN) > 0
        is_empty = self.inflater.bytes_inflated == 0 and not is_broken
        complaints = (
            (is_empty, EMPTY, RECORD_AGAIN),
            (is_broken, ENDS_AT_ONCE, RECORD_AGAIN),
            (self.log.count(*NO_EVENT) > 0, "None of its events is valid JSON.", RECORD_AGAIN),
            (
                document.has_events_key,
                "This is a trace without events.",
                REACH_ACTIVE_STEPS,
            ),
            (document.is_json, "This is not a trace: it is JSON without traceEvents.", EXPORT),
            (True, "This is not a trace: it is not JSON.", GIVE_A_TRACE),
        )
        return next(
            UnreadableError(self.path, message, remedy)
            for applies, message, remedy in complaints
            if applies
        )
