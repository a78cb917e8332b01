"""Read one trace file: inflate, walk the top level, hand every event to the columns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepscope import storage
from stepscope.errors import UnreadableError
from stepscope.ingest.columns import ColumnBuilder, EventColumns, Incident
from stepscope.ingest.documents import Document
from stepscope.ingest.inflate import Inflater

Progress = Callable[[int, int, int], None]
"""Called with bytes read of the file, the file's bytes, and events so far."""

EVENTS_A_REPORT = 20_000
BROKEN = frozenset({"truncated-gzip", "truncated-json"})
RECORD_AGAIN = "Record it again, or copy it again from where it was written."
RECORD_LESS = "Record fewer steps, or without with_stack."
REACH_ACTIVE_STEPS = (
    "Call profiler.step() in the loop, and let the schedule reach its active steps."
)
EXPORT = "Give a file written by torch.profiler (export_chrome_trace)."
GIVE_A_TRACE = "Give a file written by torch.profiler (.pt.trace.json or .pt.trace.json.gz)."


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one file may cost; beyond that it is refused with a clear error."""

    inflated_bytes: int = 16 * 2**30
    """A trace of 16 GiB of JSON is far beyond what fits in memory as Python objects."""
    events: int = 50_000_000
    """At about 500 bytes each, 25 GB; small events reach it long before the bytes do."""


def read(path: str, progress: Progress | None = None, limits: Limits = Limits()) -> EventColumns:
    """Read a trace file, gzipped or plain, of any name.

    A truncated or damaged file gives what it holds; what was lost is in `incidents`.

    Raises:
        UnreadableError: the file cannot be opened, is empty, is no JSON, or holds no event.
    """
    try:
        size = storage.stamp(path).size_bytes
        with storage.open_binary(path) as stream:
            inflater = Inflater(stream, limits.inflated_bytes)
            columns = _read(path, inflater, size, limits, progress)
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error
    return columns


def _read(
    path: str, inflater: Inflater, size: int, limits: Limits, progress: Progress | None
) -> EventColumns:
    document = Document(inflater.texts())
    builder = ColumnBuilder()
    for count, event in enumerate(document.events(), start=1):
        if count > limits.events:
            message = f"This holds more than {limits.events:,} events."
            raise UnreadableError(path, message, RECORD_LESS)
        builder.add(event)
        if progress and count % EVENTS_A_REPORT == 0:
            progress(inflater.bytes_read, size, count)
    if inflater.over_limit:
        message = f"This holds more than {inflater.limit_bytes / 2**30:.0f} GiB of JSON."
        raise UnreadableError(path, message, RECORD_LESS)
    incidents = tuple(_incidents(inflater, document))
    if not builder.starts_ns:
        raise _unusable(path, size, document, incidents)
    return builder.finish(document.metadata, incidents)


def _unusable(
    path: str, size: int, document: Document, incidents: tuple[Incident, ...]
) -> UnreadableError:
    is_broken = any(incident.kind in BROKEN for incident in incidents)
    complaints = (
        (size == 0, "The file is empty.", RECORD_AGAIN),
        (is_broken, "The file ends before its first event.", RECORD_AGAIN),
        (document.skipped_count > 0, "Not one of its events is valid JSON.", RECORD_AGAIN),
        (document.has_events_key, "This is a trace without a single event.", REACH_ACTIVE_STEPS),
        (document.is_json, "This is not a trace: it is JSON without traceEvents.", EXPORT),
        (True, "This is not a trace: it is not JSON.", GIVE_A_TRACE),
    )
    return next(
        UnreadableError(path, message, remedy) for applies, message, remedy in complaints if applies
    )


def _incidents(inflater: Inflater, document: Document) -> Iterator[Incident]:
    if inflater.damage:
        yield Incident(
            kind="truncated-gzip",
            count=1,
            message=f"the gzip stream {inflater.damage}; what came before is shown",
            remedy=RECORD_AGAIN,
        )
    if document.is_truncated:
        yield Incident(
            kind="truncated-json",
            count=1,
            message="the file ends in the middle; the complete events before are shown",
            remedy="Let the training process finish writing; do not kill it in on_trace_ready",
        )
    if inflater.replaced_count:
        yield Incident(
            kind="invalid-utf8",
            count=inflater.replaced_count,
            message="pieces of text are no UTF-8; the broken characters were replaced",
        )
    if document.repaired_count:
        yield Incident(
            kind="repaired-events",
            count=document.repaired_count,
            message="events were no valid JSON and were repaired",
        )
    if document.skipped_count:
        yield Incident(
            kind="skipped-events",
            count=document.skipped_count,
            message=f"events could not be repaired ({document.skipped_characters} characters)",
        )
    if document.not_a_number_count:
        yield Incident(
            kind="not-a-number",
            count=document.not_a_number_count,
            message="values are NaN or infinite and count as not recorded",
        )
