"""A trace document's top level, walked as it streams in: events one by one, the rest as metadata.

The document is an object with `traceEvents` among other keys, in any order, or a bare list of
events. An event that is no valid JSON is repaired where its damage is a known one, else skipped;
reading goes on at the next event. Whatever was not as it should be is in the incident log, with
its place in the document.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stepscope.ingest.columns import readable
from stepscope.ingest.exact import as_written
from stepscope.ingest.incidents import EXAMPLE_CHARACTERS, IncidentLog
from stepscope.ingest.repair import BeyondRepairError, Mended, mended

EVENTS_KEY = "traceEvents"
BUFFER_BYTES = 1 << 20
SMALL_BUFFER_BYTES = 1 << 14
"""Beside a scanner, for the little that it leaves. And where there is damage: each error costs a
walk through the buffer (json counts the lines for its message)."""
JOINT_BYTES = 1 << 16
"""How much of the next piece goes behind the last one's rest, so that most is never copied."""
PADDING = bytes(64)
"""A scanner looks this far ahead."""
LONGEST_VALUE_CHARACTERS = 64 << 20
"""A value that has not ended by then is damaged: real ones (dumped source code) are far smaller."""
NEAR_END = 16
"""A literal or number cut by the buffer's end fails at most this far before it."""
NEAR_MATCH = 64
"""Longer than what the patterns below look at."""
SPACE = re.compile(r"\s*")
SPACE_AND_COMMAS = re.compile(r"[\s,]*")
SPACE_AND_PADDING = re.compile(r"[\s\0]*")
EVENT = r'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id)"\s*:'
NEXT_EVENT = re.compile(rf'(?<=[\[,}}])\s*(?={EVENT})|(?<=\}})\s*(?=\]\s*(?:,\s*"|\}}|$))')
"""Where an event begins (an object after a colon is another's arguments), or their list ends."""
LATER_EVENT = re.compile(rf"(?<=[\[,}}])\s*(?={EVENT})")
"""Where an event begins behind the end of the document."""
NEXT_KEY = re.compile(r'\n\s{0,4}(?="[^"\n]+"\s*:)|(?="traceEvents"\s*:\s*\[)')
"""Where a top-level key stands: at the start of a line, or the one that matters anywhere."""
SECOND_WRITER = re.compile(r'"(?:traceEvents|schemaVersion|deviceProperties)"\s*:')
Buffer = bytes | memoryview
_DAMAGE = (ValueError, RecursionError)
"""What decoding raises: not JSON; a number of thousands of digits; brackets thousands deep."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event as JSON gives it, and the byte of the document where it begins."""

    fields: dict[str, Any]
    offset: int


class Scanner(Protocol):
    """Reads well-formed events from bytes, faster than this module, to the same result."""

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Take events from `data[at:]` on, up to the first that is not whole or not plain.

        `offset` is the document's byte that `data[0]` is. `is_comma_due` says whether an event
        was taken before. Returns the place behind the last event taken, `at` if there was none.
        The last 64 bytes of the data are looked at, but never begin or end an event.
        """

    @property
    def is_starved(self) -> bool:
        """Whether it stopped because the data ended, not because of what stands there."""


class _CutOffError(Exception):
    """The buffer ends inside a value: more text is needed."""


def _nothing() -> None:
    """Be told of progress, and do nothing."""


class Document:
    """Walks a document given as pieces of valid UTF-8, each whole characters.

    `progress` is called for each piece.
    """

    def __init__(
        self,
        pieces: Iterator[bytes],
        log: IncidentLog,
        scanner: Scanner | None = None,
        progress: Callable[[], None] = _nothing,
    ) -> None:
        self._pieces = pieces
        self._put_back: list[memoryview] = []
        self._log = log
        self._scanner = scanner
        self._progress = progress
        self._text = ""
        self._at = 0
        self._mark = (0, 0)
        """A place in the text, and which byte of the document it is."""
        self._ended = False
        self._buffer_bytes = SMALL_BUFFER_BYTES if scanner else BUFFER_BYTES
        self._is_comma_due = False
        self._not_a_number_count = 0
        self.metadata: dict[str, Any] = {}
        self.has_events_key = False
        self.is_json = False
        decoder = json.JSONDecoder(
            strict=False, parse_float=str.encode, parse_constant=self._not_a_number
        )
        self._scan = decoder.raw_decode

    @property
    def read_bytes(self) -> int:
        """How much of the document has been gone through."""
        return self._offset(self._at)

    def events(self) -> Iterator[Event]:
        """Yield every event that no scanner took; `metadata` is complete afterwards."""
        first = self._next_character()
        if first == "[":
            self._at += 1
            self.has_events_key = self.is_json = True
            yield from self._list()
        elif first == "{":
            self._at += 1
            yield from self._object()
        if self.is_json:
            yield from self._behind_the_end()

    def _not_a_number(self, _text: str) -> None:
        self._not_a_number_count += 1

    # --- the top level ------------------------------------------------------------------------

    def _object(self) -> Iterator[Event]:
        while (character := self._next_character()) and character != "}":
            key = self._key(character)
            if key is None:
                if not self._skipped_to_key():
                    return
                continue
            self.is_json = True
            starts_with = self._next_character(over=SPACE)
            if key == EVENTS_KEY and starts_with == "[":
                self._at += 1
                self.has_events_key = True
                yield from self._list()
            elif starts_with in {",", "}"}:
                self.metadata[key] = None  # `"key": ,` (pytorch#172353)
                self._note("empty-value", self._at)
            elif not self._metadata(key):
                return
        self.is_json |= character == "}"
        self._at += character == "}"
        if not character:
            self._note_truncated()

    def _key(self, character: str) -> str | None:
        """Return the key at the cursor and step behind its colon; None where there is none."""
        if character != '"':
            return None
        try:
            key = self._value()
        except (*_DAMAGE, _CutOffError):
            return None
        if self._next_character() != ":":
            return None
        self._at += 1
        return readable(str(key))

    def _skipped_to_key(self) -> bool:
        """Pass over what is no key to the next one; False, and truncated, where there is none."""
        end = self._found(NEXT_KEY) if self.is_json else None
        if end is None:
            if self.is_json:
                self._note_truncated()
            return False
        self._skip("damaged-metadata", end - self._at)
        return True

    def _metadata(self, key: str) -> bool:
        try:
            self.metadata[key] = _plain(self._value())
        except (*_DAMAGE, _CutOffError):
            return self._salvaged_metadata(key)
        return True

    def _salvaged_metadata(self, key: str) -> bool:
        """Repair a top-level value or skip it; go on at the next key, if there is one."""
        self._expect_damage()
        end = self._found(NEXT_KEY)
        try:
            found = mended(self._text[self._at : end])
        except BeyondRepairError:
            self._skip("damaged-metadata", (len(self._text) if end is None else end) - self._at)
            if end is None:
                self._note_truncated()
            return end is not None
        self.metadata[key] = _plain(found.value)
        self._note_mended(found.kinds)
        self._at += found.end
        return True

    def _behind_the_end(self) -> Iterator[Event]:
        """Take the events of another document or writer behind the end; count what gives none."""
        while self._next_character(over=SPACE_AND_PADDING):
            start, at = self._offset(self._at), self._at
            self._at = max(0, at - 1)  # the search begins one further
            end = self._found(LATER_EVENT)
            excerpt = self._text[self._at + (at > 0) :]
            if end is None:
                self._drain()
                lost = self._offset(self._at) - start
                self._log.add("trailing-data", start, excerpt, lost_bytes=lost)
                return
            self._at = end
            lost = self._offset(end) - start
            self._log.add("interleaved-documents", start, excerpt, lost_bytes=lost)
            yield from self._list(is_end_expected=False)

    def _drain(self) -> None:
        while not self._ended:
            self._at = len(self._text)
            self._fill()
        self._at = len(self._text)

    # --- the events ---------------------------------------------------------------------------

    def _list(self, *, is_end_expected: bool = True) -> Iterator[Event]:
        self._is_comma_due = False
        while True:
            self._scan_ahead()
            character = self._next_event()
            if not character:
                break
            if character == "]":
                self._at += 1
                return
            offset = self._offset(self._at)
            try:
                event = self._value()
                self._is_comma_due = True
            except (*_DAMAGE, _CutOffError) as error:
                event = self._salvaged(is_cut_off=isinstance(error, _CutOffError))
                if event is None:
                    continue
            if isinstance(event, dict):
                yield Event(fields=event, offset=offset)
            else:
                self._log.add("not-an-event", offset, json.dumps(event, default=as_written))
        if is_end_expected:
            self._note_truncated()

    def _next_event(self) -> str:
        """Step over what separates two events; return the character there, or "" at the end."""
        start = self._offset(self._at)
        commas = 0
        while True:
            found = SPACE_AND_COMMAS.match(self._text, self._at)
            commas += found[0].count(",") if found else 0
            self._at = found.end() if found else self._at
            if self._at < len(self._text) or self._ended:
                break
            self._fill()
        character = self._text[self._at : self._at + 1]
        due = 1 if self._is_comma_due and character != "]" else 0
        if commas > due:
            self._log.add("extra-comma", start, "," * commas, count=commas - due)
        elif commas < due and character:
            self._log.add("missing-comma", start, self._excerpt())
        return character

    def _value(self) -> Any:  # noqa: ANN401 (a JSON value is anything)
        """Return the value at the cursor and step behind it; read more text as it needs."""
        while True:
            self._not_a_number_count = 0
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                if not self._is_cut_off(error):
                    raise
                if self._ended:
                    raise _CutOffError from error
                self._fill()
                continue
            if end >= len(self._text) - NEAR_END and not self._ended:
                self._fill()  # a number at the very end may go on in the next piece
                continue
            if self._not_a_number_count:
                self._note("not-a-number", self._at, count=self._not_a_number_count)
            self._at = end
            return value

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        rest = len(self._text) - self._at
        if rest > LONGEST_VALUE_CHARACTERS:
            return False
        is_open_text = error.msg.startswith("Unterminated string")
        return is_open_text or error.pos >= len(self._text) - NEAR_END

    def _salvaged(self, *, is_cut_off: bool) -> Any:  # noqa: ANN401
        """Repair the event at the cursor, or skip it; either way go to the next one."""
        self._expect_damage()
        self._is_comma_due = False
        end = self._found(NEXT_EVENT)
        try:
            found = self._mended_event(end)
        except BeyondRepairError:
            if is_cut_off and end is None:
                self._at = len(self._text)
                return None
            stop = len(self._text) if end is None else end
            is_another = SECOND_WRITER.search(self._text, self._at, stop) is not None
            self._skip("interleaved-documents" if is_another else "skipped-events", stop - self._at)
            return None
        self._note_mended(found.kinds)
        self._at += found.end
        self._is_comma_due = True
        return found.value

    def _mended_event(self, end: int | None) -> Mended:
        if not self._text.startswith("{", self._at):
            raise BeyondRepairError
        return mended(self._text[self._at : end])

    def _scan_ahead(self) -> None:
        """Let the scanner take what it can from here, and go on behind that."""
        if self._scanner is None:
            return
        data: Buffer = self._text[self._at :].encode()
        offset = self._offset(self._at)
        at = 0
        while True:
            at = self._scanned(self._scanner, data, at, offset)
            if not self._scanner.is_starved:
                break
            rest = bytes(data[at:])
            piece = self._next_piece(None)
            offset += at
            if piece is None:
                at = self._scanned(self._scanner, rest + PADDING, 0, offset)
                data = rest
                break
            data, at, offset = self._joined(self._scanner, rest, piece, offset)
        self._hand_over(data, at, offset)

    def _scanned(self, scanner: Scanner, data: Buffer, at: int, offset: int) -> int:
        end = scanner.scan(data, at, offset, is_comma_due=self._is_comma_due)
        self._is_comma_due |= end > at
        return end

    def _joined(
        self, scanner: Scanner, rest: bytes, piece: memoryview, offset: int
    ) -> tuple[Buffer, int, int]:
        """Scan over the seam of two pieces; return the data to go on with, the place, its offset.

        Only the seam is copied, unless an event is longer than that.
        """
        at = self._scanned(scanner, rest + bytes(piece[:JOINT_BYTES]), 0, offset)
        if at >= len(rest):
            return piece, at - len(rest), offset + len(rest)
        return rest + bytes(piece), at, offset

    def _hand_over(self, data: Buffer, at: int, offset: int) -> None:
        """Go on in text from a place in the data; what is not needed yet is put back."""
        view = memoryview(data)
        end = _whole_end(view, at + SMALL_BUFFER_BYTES)
        if end < len(view):
            self._put_back.append(view[end:])
            self._ended = False
        self._set_text(str(view[at:end], "utf-8"), offset + at)

    # --- the text and the cursor --------------------------------------------------------------

    def _skip(self, kind: str, characters: int) -> None:
        start, excerpt = self._offset(self._at), self._excerpt()
        self._at += characters
        self._log.add(kind, start, excerpt, lost_bytes=self._offset(self._at) - start)

    def _excerpt(self) -> str:
        return self._text[self._at : self._at + EXAMPLE_CHARACTERS]

    def _note(self, kind: str, at: int, *, count: int = 1) -> None:
        text = self._text[at : at + EXAMPLE_CHARACTERS]
        self._log.add(kind, self._offset(at), text, count=count)

    def _note_mended(self, kinds: Mapping[str, int]) -> None:
        for kind, count in kinds.items():
            self._note(kind, self._at, count=count)

    def _note_truncated(self) -> None:
        self._log.add("truncated-json", self._offset(self._at), self._text[-EXAMPLE_CHARACTERS:])

    def _offset(self, at: int) -> int:
        """Return which byte of the document a place in the text is."""
        marked, offset = self._mark
        between = self._text[marked:at] if at >= marked else self._text[at:marked]
        size = len(between) if between.isascii() else len(between.encode())
        offset += size if at >= marked else -size
        self._mark = (at, offset)
        return offset

    def _found(self, pattern: re.Pattern[str]) -> int | None:
        """Return where the next match behind the cursor ends; read on until there is one."""
        while True:
            match = pattern.search(self._text, self._at + 1)
            rest = len(self._text) - (match.end() if match else self._at)
            # near the buffer's end the match of a longer text may be another one
            if self._ended or (match and rest > NEAR_MATCH) or rest > LONGEST_VALUE_CHARACTERS:
                return match.end() if match else None
            self._fill()

    def _next_character(self, over: re.Pattern[str] = SPACE_AND_COMMAS) -> str:
        """Step over what `over` matches; return the character there, or "" at the end."""
        while True:
            found = over.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._fill()

    def _expect_damage(self) -> None:
        """Go on with a small buffer: where one event is damaged, many may be."""
        if self._buffer_bytes > SMALL_BUFFER_BYTES:
            self._buffer_bytes = SMALL_BUFFER_BYTES
            self._hand_over(self._text[self._at :].encode(), 0, self._offset(self._at))

    def _fill(self) -> None:
        """Drop what is behind the cursor and read on, at least one buffer."""
        parts = [self._text[self._at :]]
        offset = self._offset(self._at)
        size = 0
        while size < max(self._buffer_bytes, len(parts[0])):
            piece = self._next_piece(self._buffer_bytes)
            if piece is None:
                break
            parts.append(str(piece, "utf-8"))
            size += len(piece)
        self._set_text("".join(parts), offset)

    def _next_piece(self, most_bytes: int | None) -> memoryview | None:
        """Return the next piece, at most so much of it; None, and ended, where there is none."""
        if self._put_back:
            piece = self._put_back.pop()
        else:
            self._progress()
            piece = memoryview(next(self._pieces, b""))
        if not piece:
            self._ended = True
            return None
        end = len(piece) if most_bytes is None else _whole_end(piece, most_bytes)
        if end < len(piece):
            self._put_back.append(piece[end:])
        return piece[:end]

    def _set_text(self, text: str, offset: int) -> None:
        self._text = text
        self._at = 0
        self._mark = (0, offset)


def _whole_end(data: memoryview, end: int) -> int:
    """Return the first place from `end` on where a character ends."""
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return min(end, len(data))


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Turn numbers kept as text into floats and broken text into whole, all the way down."""
    match value:
        case str():
            plain: Any = readable(value)
        case bytes():
            plain = float(value)
        case list():
            plain = [_plain(item) for item in value]
        case dict():
            plain = {readable(key): _plain(item) for key, item in value.items()}
        case _:
            plain = value
    return plain
