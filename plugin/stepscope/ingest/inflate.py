"""A file's bytes as pieces of text: gzip or plain, told by content; damage is noted, not raised."""

import codecs
import zlib
from collections.abc import Iterator
from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
PIECE_BYTES = 1 << 20
GZIP_WINDOW = 31
"""zlib's way to say: 32 KiB window, with gzip's header and checksum."""
REPLACEMENT = "\ufffd"


class Inflater:
    """Gives a stream's text in pieces, and keeps count of what was read and what was wrong."""

    def __init__(self, stream: BinaryIO, limit_bytes: int) -> None:
        self._stream = stream
        self.limit_bytes = limit_bytes
        self.bytes_read = 0
        self.bytes_inflated = 0
        self.replaced_count = 0
        self.damage = ""
        self.over_limit = False

    def texts(self) -> Iterator[str]:
        """Yield the text; characters that are no UTF-8 come as U+FFFD and are counted."""
        decode = codecs.getincrementaldecoder("utf-8-sig")(errors="replace").decode
        for piece in self._pieces():
            self.bytes_inflated += len(piece)
            if self.bytes_inflated > self.limit_bytes:
                self.over_limit = True
                return
            text = decode(piece)
            self.replaced_count += text.count(REPLACEMENT)
            yield text
        if rest := decode(b"", final=True):
            self.replaced_count += rest.count(REPLACEMENT)
            yield rest

    def _read(self) -> bytes:
        piece = self._stream.read(PIECE_BYTES)
        self.bytes_read += len(piece)
        return piece

    def _pieces(self) -> Iterator[bytes]:
        first = self._read()
        if first.startswith(GZIP_MAGIC):
            yield from self._inflated(first)
            return
        while first:
            yield first
            first = self._read()

    def _inflated(self, piece: bytes) -> Iterator[bytes]:
        """Inflate one gzip member after another; stop, and say so, where the stream breaks."""
        member = zlib.decompressobj(GZIP_WINDOW)
        while piece:
            before = member.copy()
            try:
                text = member.decompress(piece, PIECE_BYTES * 8)
            except zlib.error as error:
                yield from _before_damage(before, piece)
                self.damage = f"is damaged ({error})"
                return
            if text:
                yield text
            piece = member.unconsumed_tail
            if member.eof:
                piece = member.unused_data.lstrip(b"\0") or self._read()
                if not piece.startswith(GZIP_MAGIC):
                    return  # the end, or padding or a foreign tail after the last member
                member = zlib.decompressobj(GZIP_WINDOW)
            piece = piece or self._read()
        if rest := member.flush():
            yield rest
        if not member.eof:
            self.damage = "ends in the middle"


def _before_damage(member: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    """Yield what can be inflated before the damage: zlib gives nothing of a call that fails."""
    try:
        for place in range(len(piece)):
            yield member.decompress(piece[place : place + 1])
    except zlib.error:
        return
