"""A file's bytes, inflated if they are gzip (by content), as whole characters of UTF-8.

Damage is logged and never raised: all undamaged data is returned.
"""

import codecs
import queue
import re
import threading
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from stepscope.base.config import FileLimits
from stepscope.ingest.incidents import MOST_EXAMPLES, IncidentLog

GZIP_MAGIC = b"\x1f\x8b"
READ_BYTES = 1 << 20
PIECE_BYTES = 8 << 20
"""Inflated at once; small enough to remain in a processor's cache while it is read."""
SMALLEST_PIECE_BYTES = 1 << 16
FIRST_SHARE_BYTES = 1 << 14
"""First input of zlib per gzip member: there may be thousands of small members, and zlib copies the
data after each.
"""
PIECES_AHEAD = 2
HEAD_BYTES = 1 << 16
FREE_BYTES = 1 << 30
"""Inflated bytes of any file, whatever its ratio."""
GZIP_WINDOW = 31
"""zlib's code for a 32 KiB window with gzip's header and checksum."""
BYTE_ORDER_MARK = codecs.BOM_UTF8
REPLACEMENT = "\ufffd"
REPLACEMENT_BYTES = len(REPLACEMENT.encode())
BROKEN_BYTES = re.compile("[\udc80-\udcff]+")
"""Invalid bytes, as Python's `surrogateescape` decodes them."""
ZEROS = re.compile(rb"\0*")
LONGEST_CHARACTER_BYTES = 4
EXCERPT_CHARACTERS = 24
EXCERPT_BYTES = EXCERPT_CHARACTERS * LONGEST_CHARACTER_BYTES
NO_GZIP = "the rest is not gzip"
BREAKS_OFF = "it ends in the middle"


class Inflater:
    """Yields a stream's bytes in pieces, and counts bytes and damage."""

    def __init__(self, stream: BinaryIO, limits: FileLimits, log: IncidentLog) -> None:
        self._stream = stream
        self._log = log
        self._limits = limits
        self.bytes_read = 0
        self.bytes_inflated = 0
        self.is_over_size = False
        self.is_over_ratio = False
        self.head = b""
        """The first bytes, inflated, which identify a format."""
        self._packed = b""
        self._packed_at = 0
        """Bytes that have not been inflated are `_packed[_packed_at:]`."""
        self._damage = ""
        """Damage of the gzip stream."""
        self._last = b""
        """The end of the last piece, for excerpts."""
        self._left_out_bytes = 0
        """Bytes skipped at the start of the file."""
        self._broken_starts = array("q")
        """Offsets in the pieces at which replacements of broken bytes begin."""
        self._broken_counts = array("q")
        """Number of replacements at each of these offsets."""

    def pieces(self) -> Iterator[bytes]:
        """Yield the document in pieces, each whole characters of valid UTF-8.

        Invalid bytes become U+FFFD; a byte order mark at the start is removed.
        """
        at = 0
        for whole in self._whole_characters():
            valid = whole if _is_utf8(whole) else self._repaired(whole, at)
            self._last = (self._last + valid[-EXCERPT_BYTES:])[-EXCERPT_BYTES:]
            at += len(valid)
            yield valid
        if self._damage:
            self._log.add("truncated-gzip", at, self._damage)

    def original_offsets(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the offsets in the inflated file for offsets in the `pieces`."""
        if not self._broken_starts:
            return offsets + self._left_out_bytes if self._left_out_bytes else offsets
        starts, counts = np.array(self._broken_starts), np.array(self._broken_counts)
        longer = np.concatenate(([0], np.cumsum(counts))) * (REPLACEMENT_BYTES - 1)
        run = np.searchsorted(starts, offsets, side="right") - 1
        behind = np.where(run >= 0, offsets - starts[run], 0)
        inside = np.minimum(behind, counts[run] * REPLACEMENT_BYTES)
        shorter = inside - inside // REPLACEMENT_BYTES
        return self._left_out_bytes + offsets - np.where(run >= 0, longer[run] + shorter, 0)

    def original_offset(self, offset: int) -> int:
        """Return the offset in the inflated file for one in the `pieces`."""
        return int(self.original_offsets(np.array([offset]))[0])

    # --- UTF-8 --------------------------------------------------------------------------------

    def _whole_characters(self) -> Iterator[bytes]:
        """Yield pieces of whole characters, possibly invalid, without a byte order mark."""
        rest = b""
        is_start = True
        for piece in self.inflated():
            data = rest + piece if rest else piece
            if is_start and len(data) < len(BYTE_ORDER_MARK):
                rest = data
                continue
            if is_start and data.startswith(BYTE_ORDER_MARK):
                data = data[len(BYTE_ORDER_MARK) :]
                self._left_out_bytes = len(BYTE_ORDER_MARK)
            is_start = False
            end = _whole_end(data)
            rest = data[end:]
            if end:
                yield data[:end] if rest else data
        if rest:
            yield rest

    def _repaired(self, data: bytes, at: int) -> bytes:
        """Return the bytes with invalid UTF-8 replaced; `at` is their offset in the document."""
        text = data.decode(errors="surrogateescape")
        whole = bytearray()
        end = 0
        for run in BROKEN_BYTES.finditer(text):
            whole += text[end : run.start()].encode()
            end = run.end()
            count = end - run.start()
            self._note_broken(at + len(whole), count, self._last + whole[-EXCERPT_BYTES:])
            whole += REPLACEMENT.encode() * count
        whole += text[end:].encode()
        return bytes(whole)

    def _note_broken(self, at: int, count: int, before: bytes) -> None:
        """Record the offset of replaced bytes, and the text before them."""
        self._broken_starts.append(at)
        self._broken_counts.append(count)
        shown = max(0, min(count, MOST_EXAMPLES - self._log.count("invalid-utf8")))
        for number in range(shown):
            text = before.decode(errors="ignore") + REPLACEMENT * number
            excerpt = text[-EXCERPT_CHARACTERS:] + REPLACEMENT
            self._log.add("invalid-utf8", at + number * REPLACEMENT_BYTES, excerpt)
        if count > shown:
            self._log.more("invalid-utf8", count=count - shown)

    # --- gzip ---------------------------------------------------------------------------------

    def inflated(self) -> Iterator[bytes]:
        """Yield the inflated bytes, up to the limits."""
        for piece in self._inflated() if self._is_at(GZIP_MAGIC) else self._plain():
            self.head += piece[: HEAD_BYTES - len(self.head)]
            self.bytes_inflated += len(piece)
            self.is_over_size = self.bytes_inflated > self._limits.json_bytes
            most_bytes = max(FREE_BYTES, self.bytes_read * self._limits.ratio)
            self.is_over_ratio = self.bytes_inflated > most_bytes
            if self.is_over_size or self.is_over_ratio:
                return
            yield piece

    def _plain(self) -> Iterator[bytes]:
        piece = self._packed
        while piece:
            yield piece
            piece = self._read(PIECE_BYTES)

    def _inflated(self) -> Iterator[bytes]:
        """Yield the inflated stream in pieces that are not too small."""
        least_bytes = min(SMALLEST_PIECE_BYTES, PIECE_BYTES)
        small = bytearray()
        for piece in self._members():
            if not small and len(piece) >= least_bytes:
                yield piece
                continue
            small += piece
            if len(small) >= least_bytes:
                yield bytes(small)
                small.clear()
        if small:
            yield bytes(small)

    def _members(self) -> Iterator[bytes]:
        """Inflate one gzip member after another; stop at damage."""
        while self._is_at(GZIP_MAGIC):
            yield from self._member()
            if self._damage:
                return
            self._skip_zeros()
        if self._is_at(b""):
            self._damage = NO_GZIP

    def _member(self) -> Iterator[bytes]:
        """Inflate one member."""
        member = zlib.decompressobj(GZIP_WINDOW)
        share_bytes = FIRST_SHARE_BYTES
        while not member.eof:
            packed = self._share(share_bytes)
            if not packed:
                yield member.flush()
                self._damage = BREAKS_OFF
                return
            before = member.copy()
            try:
                yield member.decompress(packed, PIECE_BYTES)
            except zlib.error as error:
                yield from _before_damage(before, packed)
                self._damage = str(error)
                return
            self._packed_at -= len(member.unconsumed_tail) + len(member.unused_data)
            share_bytes = min(share_bytes * 2, READ_BYTES)

    # --- bytes of the file --------------------------------------------------------------------

    def _read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        self.bytes_read += len(piece)
        return piece

    def _share(self, most_bytes: int) -> bytes:
        """Return the next bytes, at most this many; empty at the end."""
        if self._packed_at == len(self._packed):
            self._packed, self._packed_at = self._read(READ_BYTES), 0
        share = self._packed[self._packed_at : self._packed_at + most_bytes]
        self._packed_at += len(share)
        return share

    def _is_at(self, start: bytes) -> bool:
        """Return whether these bytes follow; for no bytes, whether any follow."""
        while len(self._packed) - self._packed_at < max(1, len(start)):
            more = self._read(READ_BYTES)
            if not more:
                return False
            self._packed, self._packed_at = self._packed[self._packed_at :] + more, 0
        return self._packed.startswith(start, self._packed_at)

    def _skip_zeros(self) -> None:
        """Skip the zero padding of a file to whole blocks."""
        while self._is_at(b"\0"):
            zeros = ZEROS.match(self._packed, self._packed_at)
            self._packed_at = zeros.end() if zeros else self._packed_at


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _whole_end(data: bytes) -> int:
    """Return the end of the last whole character; the next piece may complete another one."""
    for size in range(1, min(LONGEST_CHARACTER_BYTES, len(data) + 1)):
        byte = data[-size]
        if byte < 0x80:
            break
        if byte >= 0xC0:  # the first byte of a character of 2, 3 or 4 bytes
            length = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return len(data) if length <= size else len(data) - size
    return len(data)


def _before_damage(member: "zlib._Decompress", packed: bytes) -> Iterator[bytes]:
    """Yield the data before the damage, since zlib returns nothing from a failed call."""
    try:
        for index in range(len(packed)):
            yield member.decompress(packed[index : index + 1])
    except zlib.error:
        return


class _PieceQueue:
    """A queue of pieces between the inflating thread and the reading one."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ready: queue.Queue[bytes | BaseException | None] = queue.Queue(PIECES_AHEAD)
        self._is_left = threading.Event()

    def fill(self) -> None:
        """Enqueue every piece, then None or the error, until the reader stops."""
        try:
            for piece in self._pieces:
                if not self._put(piece):
                    return
            self._put(None)
        except BaseException as error:  # raised again in the reader
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
        """Yield the pieces; raise the error of inflating them."""
        while (item := self._ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def leave(self) -> None:
        """Stop the other thread."""
        self._is_left.set()


@contextmanager
def read_ahead(pieces: Iterator[bytes]) -> Iterator[Iterator[bytes]]:
    """Inflate on a separate thread, a few pieces ahead of the reader.

    The thread has ended when the context ends. Its errors are raised in the reader.
    """
    ahead = _PieceQueue(pieces)
    thread = threading.Thread(target=ahead.fill, name="stepscope-inflate", daemon=True)
    thread.start()
    try:
        yield ahead.taken()
    finally:
        ahead.leave()
        thread.join()
