"""Files about memory: the allocator's snapshots, and memory timelines.

They are identified by their first bytes. A snapshot is a pickle
(`torch.cuda.memory._dump_snapshot`) or the same as JSON; a timeline is JSON
(`torch.profiler.profile.export_memory_timeline`). The values are interpreted in
`model/frames/memory_snapshot.py` and `model/frames/memory_timeline.py`.
"""

import json
import re
import zlib
from dataclasses import dataclass
from typing import Literal

from stepscope import storage
from stepscope.base.errors import UnreadableError
from stepscope.base.formatting import size
from stepscope.ingest.gc_pause import without_collections
from stepscope.ingest.inflate import GZIP_MAGIC, GZIP_WINDOW
from stepscope.ingest.plain_pickles import PickleLimits, PickleRefusedError, load

HEAD_BYTES = 1 << 14
MOST_PICKLE_BYTES = 2 * 2**30
MOST_JSON_BYTES = 2**30 // 2
RECORD_LESS = "Record less: torch.cuda.memory._record_memory_history(max_entries=100_000)."
RECORD_AGAIN = "Record it again: torch.cuda.memory._dump_snapshot(path)."
EXPORT_DATA = "Export the data instead: prof.export_memory_timeline('memory.json.gz')."
PICKLE = re.compile(rb"\x80[\x00-\xff]")
ZIPPED = re.compile(rb"PK\x03\x04")
SNAPSHOT = re.compile(rb"\s*\{\s*\"(?:segments|device_traces|allocator_settings)\"\s*:")
SEGMENTS = re.compile(
    rb"\s*\[\s*\{\s*\"(?:device|address|total_size)\"\s*:.*\"total_size\"", re.DOTALL
)
TIMELINE = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*[,\]]|\s*\[\s*\[\s*\]\s*,\s*\[\s*\]\s*\]\s*$")
"""Two lists of numbers, or lists of four; two empty lists without any records."""
PICTURE = re.compile(rb"\s*<html>\s*<head>.{0,80}GPU Memory Timeline HTML", re.DOTALL)
DocumentKind = Literal["snapshot", "timeline"]


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryDocument:
    """The plain values of a file about memory."""

    path: str
    what: DocumentKind
    content: object


def kind_of(path: str) -> DocumentKind | None:
    """Return the kind of a file by its first bytes; None for others, possibly a trace.

    Raises:
        UnreadableError: The file cannot be read, or is a picture or an archive.
    """
    start = read_head(path, HEAD_BYTES)
    if PICTURE.match(start):
        message = "This is a memory timeline as a picture (export_memory_timeline to .html)."
        raise UnreadableError(path, message, EXPORT_DATA)
    if ZIPPED.match(start):
        message = "This is an archive, such as torch.save writes: no memory snapshot."
        raise UnreadableError(path, message, RECORD_AGAIN)
    if PICKLE.match(start) or SNAPSHOT.match(start) or SEGMENTS.match(start):
        return "snapshot"
    return "timeline" if TIMELINE.match(start) else None


def read(path: str, *, most_bytes: int = MOST_PICKLE_BYTES) -> MemoryDocument | None:
    """Read a memory snapshot or timeline, gzipped or plain; None for others, possibly a trace.

    Code in a pickle is never run.

    Raises:
        UnreadableError: The file cannot be read, is damaged or too large, or contains code.
    """
    what = kind_of(path)
    if what is None:
        return None
    if PICKLE.match(read_head(path, HEAD_BYTES)):
        return MemoryDocument(path=path, what=what, content=_pickled(path, most_bytes))
    return MemoryDocument(path=path, what=what, content=_json(path, most_bytes))


def _pickled(path: str, most_bytes: int) -> object:
    data = read_whole(path, min(most_bytes, MOST_PICKLE_BYTES), RECORD_LESS)
    try:
        with without_collections():
            return load(data, PickleLimits())
    except PickleRefusedError as error:
        raise UnreadableError(path, f"This pickle is refused: {error}", RECORD_AGAIN) from error


def _json(path: str, most_bytes: int) -> object:
    text = read_whole(path, min(most_bytes, MOST_JSON_BYTES), RECORD_LESS)
    try:
        with without_collections():
            return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = "This is not valid JSON, perhaps because it was cut off."
        raise UnreadableError(path, message, "Export it again.") from error


READ_BYTES = 1 << 20
SEVERAL = "Unpack it first (gunzip FILE)."


def read_whole(path: str, most_bytes: int, remedy: str) -> bytes:
    """Return the file's bytes; `remedy` is for files over the limit.

    Raises:
        UnreadableError: The file cannot be read, is damaged gzip, or has more than `most_bytes`.
    """
    content = bytearray()
    try:
        with storage.open_binary(path) as stream:
            piece = stream.read(READ_BYTES)
            member = zlib.decompressobj(GZIP_WINDOW) if piece.startswith(GZIP_MAGIC) else None
            while piece and len(content) <= most_bytes:
                if member is None:
                    content += piece
                    piece = stream.read(READ_BYTES)
                    continue
                content += member.decompress(piece, READ_BYTES)
                piece = member.unconsumed_tail or stream.read(READ_BYTES)
                if member.eof and (member.unused_data + piece).strip(b"\0"):
                    raise UnreadableError(
                        path, "There is more data after its gzip stream.", SEVERAL
                    )
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error
    except zlib.error as error:
        raise UnreadableError(path, "Its gzip stream is damaged.", "Copy it again.") from error
    if len(content) > most_bytes:
        raise UnreadableError(path, f"This contains more than {size(most_bytes)}.", remedy)
    if member is not None and not member.eof:
        raise UnreadableError(path, "Its gzip stream ends in the middle.", "Copy it again.")
    return bytes(content)


def read_head(path: str, count: int) -> bytes:
    """Return the first bytes, inflated; of a damaged file the intact ones.

    Raises:
        UnreadableError: The file cannot be read.
    """
    try:
        with storage.open_binary(path) as stream:
            first = stream.read(count)
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error
    if not first.startswith(GZIP_MAGIC):
        return first
    try:
        return zlib.decompressobj(GZIP_WINDOW).decompress(first, count)
    except zlib.error:
        return b""
