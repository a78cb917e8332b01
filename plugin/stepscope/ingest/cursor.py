"""A position in a streamed document: the text there, and its offset in bytes."""

import re
from collections.abc import Callable, Iterator

from stepscope.ingest.incidents import EXAMPLE_CHARACTERS

SMALL_BUFFER_BYTES = 1 << 14
"""Buffer near damage: each error costs a pass through the text, since json counts its lines."""
LONGEST_VALUE_CHARACTERS = 64 << 20
"""Longer values are considered damaged: real ones (dumped source code) are far smaller."""
NEAR_MATCH = 1024
"""Longer than any match of the patterns."""
SPACE_AND_COMMAS = re.compile(r"[\s,]*")


class Cursor:
    """Walks through pieces of valid UTF-8, each whole characters, and releases the text before it.

    `text[at:]` is the following text, as far as it was read. `progress` is called for each piece.
    """

    def __init__(
        self, pieces: Iterator[bytes], buffer_bytes: int, progress: Callable[[], None]
    ) -> None:
        self.text = ""
        self.at = 0
        self.has_ended = False
        """Whether the text reaches the document's end."""
        self.buffer_bytes = buffer_bytes
        """Bytes to read at once."""
        self._pieces = pieces
        self._put_back: list[memoryview] = []
        self._progress = progress
        self._mark = (0, 0)
        """A position in the text, and its offset in the document."""

    @property
    def offset(self) -> int:
        """Offset of the next byte of the document."""
        return self.offset_ahead(0)

    @property
    def rest(self) -> int:
        """Number of following characters, as far as they were read."""
        return len(self.text) - self.at

    def offset_ahead(self, distance: int) -> int:
        """Return the offset in bytes of the position this many characters ahead."""
        marked, offset = self._mark
        at = self.at + distance
        between = self.text[marked:at] if at >= marked else self.text[at:marked]
        size = len(between) if between.isascii() else len(between.encode())
        offset += size if at >= marked else -size
        self._mark = (at, offset)
        return offset

    def excerpt(self, characters: int) -> str:
        """Return the following text, up to a limit."""
        return self.text[self.at : self.at + min(characters, EXAMPLE_CHARACTERS)]

    def next_character(self, over: re.Pattern[str] = SPACE_AND_COMMAS) -> str:
        """Skip matches of `over`; return the next character, or "" at the end."""
        while True:
            skipped = over.match(self.text, self.at)
            self.at = skipped.end() if skipped else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if self.has_ended:
                return ""
            self.fill()

    def look_ahead(self, characters: int) -> None:
        """Read on until this many characters follow, or the document ends."""
        while self.rest < characters and not self.has_ended:
            self.fill()

    def is_at(self, pattern: re.Pattern[str]) -> bool:
        """Return whether a pattern, not longer than `NEAR_MATCH`, matches the following text."""
        self.look_ahead(NEAR_MATCH)
        return pattern.match(self.text, self.at) is not None

    def distance(self, pattern: re.Pattern[str], *, beyond: int = 1) -> int | None:
        """Return the distance to the end of the next match at least `beyond` characters ahead.

        Reads on until there is a match; None if the document, or the longest value, ends first.
        """
        while True:
            match = pattern.search(self.text, self.at + beyond)
            left = len(self.text) - (match.end() if match else self.at)
            # near the end of the read text, a longer text may match differently
            if self.has_ended or (match and left > NEAR_MATCH) or left > LONGEST_VALUE_CHARACTERS:
                return match.end() - self.at if match else None
            self.fill()

    def fill(self) -> None:
        """Release the text before the cursor, and read at least as much as remains."""
        parts = [self.text[self.at :]]
        offset = self.offset
        size = 0
        while size < max(self.buffer_bytes, len(parts[0])):
            piece = self.next_piece(self.buffer_bytes)
            if piece is None:
                break
            parts.append(str(piece, "utf-8"))
            size += len(piece)
        self._set_text("".join(parts), offset)

    def drain(self) -> None:
        """Go to the end of the document."""
        while True:
            self.at = len(self.text)
            if self.has_ended:
                return
            self.fill()

    def shrink(self) -> None:
        """Shorten the buffered text, so that walking through it again is cheap."""
        self.buffer_bytes = min(self.buffer_bytes, SMALL_BUFFER_BYTES)
        if len(self.text) > 4 * SMALL_BUFFER_BYTES:
            self.continue_in(memoryview(self.text[self.at :].encode()), 0, self.offset)

    # --- bytes, for the scanner -------------------------------------------------------------------

    def next_piece(self, most_bytes: int | None = None) -> memoryview | None:
        """Return the following bytes, at most this many; None at the end."""
        if self._put_back:
            piece = self._put_back.pop()
        else:
            self._progress()
            piece = memoryview(next(self._pieces, b""))
        if not piece:
            self.has_ended = True
            return None
        end = len(piece) if most_bytes is None else whole_end(piece, most_bytes)
        self.put_back(piece[end:])
        return piece[:end]

    def next_bytes(self, least_bytes: int) -> memoryview | None:
        """Return at least this many following bytes; fewer, or None, at the end."""
        piece = self.next_piece()
        if piece is None or len(piece) >= least_bytes:
            return piece
        parts = [piece]
        size = len(piece)
        while size < least_bytes and (piece := self.next_piece()) is not None:
            parts.append(piece)
            size += len(piece)
        return memoryview(b"".join(parts))

    def put_back(self, piece: memoryview) -> None:
        """Insert these bytes after the text."""
        if piece:
            self._put_back.append(piece)
            self.has_ended = False

    def continue_in(self, data: memoryview, at: int, offset: int) -> None:
        """Continue in these bytes; `offset` is the offset of `data[0]` in the document."""
        end = whole_end(data, at + SMALL_BUFFER_BYTES)
        self.put_back(data[end:])
        self._set_text(str(data[at:end], "utf-8"), offset + at)

    def _set_text(self, text: str, offset: int) -> None:
        self.text = text
        self.at = 0
        self._mark = (0, offset)


def whole_end(data: memoryview, end: int) -> int:
    """Return the first position at or after `end` at which a character ends."""
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return min(end, len(data))
