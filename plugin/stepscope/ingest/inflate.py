"""A file's bytes, inflated where it is gzip (told by content), as whole characters of UTF-8.

Damage is noted in the incident log and never raised: what can be had is given.
"""

import bisect
import codecs
import queue
import re
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from stepscope.ingest.incidents import IncidentLog

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 1 << 20
PIECE_BYTES = 8 << 20
"""What is inflated at once: small enough to stay in a processor's cache while it is read."""
PIECES_AHEAD = 2
HEAD_BYTES = 1 << 16
GZIP_WINDOW = 31
"""zlib's way to say: 32 KiB window, with gzip's header and checksum."""
BYTE_ORDER_MARK = codecs.BOM_UTF8
REPLACEMENT = "\ufffd"
BROKEN_BYTE = re.compile("([\udc80-\udcff])")
"""A byte that is no UTF-8, as Python's `surrogateescape` decodes it."""
LONGEST_CHARACTER_BYTES = 4
EXCERPT_BYTES = 24


class Inflater:
    """Gives a stream's bytes in pieces, and keeps count of what was read and what was wrong."""

    def __init__(self, stream: BinaryIO, limit_bytes: int, log: IncidentLog) -> None:
        self._stream = stream
        self._log = log
        self.limit_bytes = limit_bytes
        self.bytes_read = 0
        self.bytes_inflated = 0
        self.over_limit = False
        self.head = b""
        """The first bytes, inflated: what tells a format."""
        self._ends: list[int] = []
        """Where, in what was given, something ends that is longer or shorter than in the file."""
        self._longer_bytes: list[int] = []
        """How much longer all is up to there."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the document in pieces, each whole characters of valid UTF-8.

        What is no UTF-8 comes as U+FFFD; a byte order mark at the start is left out.
        """
        rest = b""
        at = 0
        for piece in self._bounded():
            data = rest + piece if rest else piece
            if at == 0 and data.startswith(BYTE_ORDER_MARK):
                data = data[len(BYTE_ORDER_MARK) :]
                self._note_change(0, -len(BYTE_ORDER_MARK))
            whole, rest = _whole_characters(data)
            if whole:
                valid = self._valid(whole, at)
                at += len(valid)
                yield valid
        if rest:
            yield self._valid(rest, at)

    def place(self, offset: int) -> int:
        """Return the offset in the inflated file of an offset in what `pieces` gave."""
        before = bisect.bisect_right(self._ends, offset)
        return offset - (self._longer_bytes[before - 1] if before else 0)

    def _note_change(self, end: int, longer_bytes: int) -> None:
        self._ends.append(end)
        self._longer_bytes.append((self._longer_bytes or [0])[-1] + longer_bytes)

    def _bounded(self) -> Iterator[bytes]:
        for piece in self._raw_pieces():
            self.head += piece[: HEAD_BYTES - len(self.head)]
            self.bytes_inflated += len(piece)
            if self.bytes_inflated > self.limit_bytes:
                self.over_limit = True
                return
            yield piece

    def _valid(self, data: bytes, at: int) -> bytes:
        """Return the bytes with what is no UTF-8 replaced; `at` is their place in the document."""
        if data.isascii():
            return data
        try:
            data.decode()
        except UnicodeDecodeError:
            return self._repaired(data, at)
        return data

    def _repaired(self, data: bytes, at: int) -> bytes:
        parts: list[bytes] = []
        for part in BROKEN_BYTE.split(data.decode(errors="surrogateescape")):
            if not BROKEN_BYTE.fullmatch(part):
                parts.append(part.encode())
                at += len(parts[-1])
                continue
            before = parts[-1][-EXCERPT_BYTES:].decode(errors="replace") if parts else ""
            self._log.add("invalid-utf8", at, before + REPLACEMENT)
            parts.append(REPLACEMENT.encode())
            at += len(parts[-1])
            self._note_change(at, len(parts[-1]) - 1)
        return b"".join(parts)

    def _read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self.bytes_read += len(piece)
        return piece

    def _raw_pieces(self) -> Iterator[bytes]:
        first = self._read(READ_BYTES)
        if first.startswith(GZIP_MAGIC):
            yield from self._inflated(first)
            return
        while first:
            yield first
            first = self._read(PIECE_BYTES)

    def _inflated(self, piece: bytes) -> Iterator[bytes]:
        """Inflate one gzip member after another; stop, and say so, where the stream breaks."""
        member = zlib.decompressobj(GZIP_WINDOW)
        while piece:
            before = member.copy()
            try:
                text = member.decompress(piece, PIECE_BYTES)
            except zlib.error as error:
                yield from _before_damage(before, piece)
                self._damaged(str(error))
                return
            if text:
                yield text
            piece = member.unconsumed_tail
            if member.eof:
                piece = member.unused_data.lstrip(b"\0") or self._read(READ_BYTES)
                if not piece.startswith(GZIP_MAGIC):
                    return  # the end, or padding or a foreign tail after the last member
                member = zlib.decompressobj(GZIP_WINDOW)
            piece = piece or self._read(READ_BYTES)
        if rest := member.flush():
            yield rest
        if not member.eof:
            self._damaged("it ends in the middle")

    def _damaged(self, reason: str) -> None:
        shift = (self._longer_bytes or [0])[-1]
        self._log.add("truncated-gzip", self.bytes_inflated + shift, reason)


def _whole_characters(data: bytes) -> tuple[bytes, bytes]:
    """Return what holds whole characters, and the start of one that the next piece completes."""
    for size in range(1, min(LONGEST_CHARACTER_BYTES, len(data) + 1)):
        byte = data[-size]
        if byte < 0x80:
            break
        if byte >= 0xC0:  # the first byte of a character of 2, 3 or 4
            length = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return (data, b"") if length <= size else (data[:-size], data[-size:])
    return data, b""


def _before_damage(member: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    """Yield what can be inflated before the damage: zlib gives nothing of a call that fails."""
    try:
        for place in range(len(piece)):
            yield member.decompress(piece[place : place + 1])
    except zlib.error:
        return


class _Ahead:
    """A queue of pieces between the thread that inflates and the one that reads."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ready: queue.Queue[bytes | BaseException | None] = queue.Queue(PIECES_AHEAD)
        self._is_left = threading.Event()

    def fill(self) -> None:
        """Put in every piece, then None, or what was raised, until nobody reads any more."""
        try:
            for piece in self._pieces:
                if not self._put(piece):
                    return
            self._put(None)
        except BaseException as error:  # raised again by who reads
            self._put(error)

    def _put(self, item: bytes | BaseException | None) -> bool:
        while not self._is_left.is_set():
            try:
                self._ready.put(item, timeout=0.05)
            except queue.Full:
                continue
            return True
        return False

    def taken(self) -> Iterator[bytes]:
        """Yield the pieces; raise what inflating them raised."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def leave(self) -> None:
        """Have the other side end."""
        self._is_left.set()


@contextmanager
def read_ahead(pieces: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Inflate on a thread of its own, a few pieces ahead of who reads them.

    The thread has ended when the context is left. What it raises is raised where it is read.
    """
    ahead = _Ahead(pieces)
    thread = threading.Thread(target=ahead.fill, name="stepscope-inflate", daemon=True)
    thread.start()
    try:
        yield ahead.taken()
    finally:
        ahead.leave()
        thread.join()
