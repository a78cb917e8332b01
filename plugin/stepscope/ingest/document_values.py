"""Values of a streamed JSON document: each is decoded, repaired, or skipped."""

import json
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from stepscope.ingest.columns import readable
from stepscope.ingest.cursor import LONGEST_VALUE_CHARACTERS, SMALL_BUFFER_BYTES, Cursor
from stepscope.ingest.incidents import EXAMPLE_CHARACTERS, IncidentLog
from stepscope.ingest.repair import BeyondRepairError, Repaired, repair

BUFFER_BYTES = 1 << 20
REPAIR_CHARACTERS = 1 << 12
"""First attempt at the length of a damaged value."""
MOST_REPAIR_CHARACTERS = 1 << 18
"""Repairing is slow: longer values are skipped."""
MOST_WASTED_CHARACTERS = 1 << 18
"""If failed repairs read more than this and an eighth of the document, repairing stops."""
BEGINNINGS = string.digits + string.ascii_letters + '{["-+.'
"""First characters of values, or of words in their position."""
MOST_TRIES = 4
"""Maximum number of tried values that begin before a damaged location."""
MOST_REPAIR_TRIES = 1
"""Maximum number of repaired values among them."""
NEAR_END = 16
"""A literal or number cut by the text's end fails at most this far before it."""
NEAR_END_REPAIRED = 64
"""The same for damaged values: longer than a word that can be repaired."""
DEEP = re.compile(r"(?:[^\[{]*+[\[{]){500}")
"""Brackets nested half as deep as `json` allows."""
LONG_NUMBER = re.compile(r"(?<!\d)\d{4301,}", re.ASCII)
"""Python refuses to parse it as a whole number."""
Buffer = bytes | memoryview


@dataclass(frozen=True, kw_only=True)
class Event:
    """One decoded event, and its offset in the document in bytes."""

    fields: dict[str, Any]
    offset: int


class Scanner(Protocol):
    """Reads well-formed events from bytes, faster than `Document`, with the same result."""

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Read events from `data[at:]`, up to the first that is incomplete or unusual.

        `offset` is the offset of `data[0]` in the document, `is_comma_due` whether an event
        precedes. Returns the end of the last event read, or `at` if there was none. The last 64
        bytes of the data are read ahead, but no event begins or ends in them.
        """

    @property
    def is_starved(self) -> bool:
        """True if the data ended, False if an event was unusual."""


class DamagedError(Exception):
    """A value is not valid JSON."""

    def __init__(self, reach: int, *, is_cut_off: bool) -> None:
        super().__init__()
        self.reach = reach
        """Distance to the damage in characters."""
        self.is_cut_off = is_cut_off
        """Whether the cause is the document's end."""


class CutOffError(Exception):
    """The document ends in the middle."""


class DocumentValues:
    """Reads values at a cursor in pieces of valid UTF-8, each whole characters.

    `progress` is called for each piece.
    """

    def __init__(
        self,
        pieces: Iterator[bytes],
        log: IncidentLog,
        scanner: Scanner | None = None,
        progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._cursor = Cursor(pieces, SMALL_BUFFER_BYTES if scanner else BUFFER_BYTES, progress)
        self._log = log
        self._scanner = scanner
        self._not_a_number_count = 0
        self._wasted_characters = 0
        self._reached = 0
        """Largest offset of any damage."""
        self._tries = 0
        """Number of damaged values that began before it."""
        decoder = json.JSONDecoder(
            strict=False, parse_float=str.encode, parse_constant=self._not_a_number
        )
        self._decode = decoder.raw_decode

    def _not_a_number(self, _text: str) -> None:
        self._not_a_number_count += 1

    def _value(self) -> Repaired:
        """Return the value at the cursor; read more text as needed.

        Raises:
            DamagedError: The value is not valid JSON.
        """
        cursor = self._cursor
        while True:
            self._not_a_number_count = 0
            try:
                value, end = self._decode(cursor.text, cursor.at)
            except (ValueError, RecursionError) as error:
                if not self._is_cut(error):
                    raise DamagedError(_reach(error, cursor), is_cut_off=False) from error
                if cursor.has_ended:
                    raise DamagedError(cursor.rest, is_cut_off=True) from error
            else:
                if end < len(cursor.text) - NEAR_END or cursor.has_ended:
                    count = self._not_a_number_count
                    kinds = {"not-a-number": count} if count else {}
                    return Repaired(value=value, end=end - cursor.at, kinds=kinds)
            cursor.fill()  # a cut value, such as a number, may continue in the next piece

    def _is_cut(self, error: ValueError | RecursionError) -> bool:
        """Return whether an error is due to the end of the text read so far."""
        text = self._cursor.text
        if self._cursor.rest > LONGEST_VALUE_CHARACTERS:
            return False
        if isinstance(error, json.JSONDecodeError):
            is_open_text = error.msg.startswith("Unterminated string")
            return is_open_text or error.pos >= len(text) - NEAR_END
        # a number of thousands of digits may continue with a point, and then is not whole
        runs = LONG_NUMBER.finditer(text, self._cursor.at) if isinstance(error, ValueError) else ()
        return not self._cursor.has_ended and any(run.end() == len(text) for run in runs)

    def _repaired(self, begins: str) -> Repaired:
        """Return the repaired value at the cursor, if it begins with one of these characters.

        Raises:
            DamagedError: The value cannot be repaired.
        """
        cursor = self._cursor
        if cursor.excerpt(1) not in begins:
            raise DamagedError(1, is_cut_off=False)
        is_inner = self._tries > MOST_REPAIR_TRIES and cursor.offset < self._reached
        if is_inner or self._wasted_characters > MOST_WASTED_CHARACTERS + cursor.offset // 8:
            raise DamagedError(1, is_cut_off=True)
        size = REPAIR_CHARACTERS
        wasted = 0
        while True:
            cursor.look_ahead(size)
            text = cursor.text[cursor.at : cursor.at + size]
            is_all = cursor.has_ended and cursor.rest <= size
            try:
                value = repair(text)
                if is_all or value.end < len(text) - NEAR_END_REPAIRED:
                    return value
                reach = value.end
            except BeyondRepairError as error:
                reach = error.at
            wasted += reach
            if is_all or size >= MOST_REPAIR_CHARACTERS or reach < len(text) - NEAR_END_REPAIRED:
                self._wasted_characters += wasted
                raise DamagedError(reach, is_cut_off=is_all and reach >= len(text))
            size *= 2

    def _distance(
        self, pattern: re.Pattern[str], error: DamagedError, beyond: DamagedError
    ) -> int | None:
        """Return the distance to the next match after a damaged value that was not repaired.

        The search begins after the value's first character, since another writer may have damaged
        it from inside. Inner values cannot be tried indefinitely: after some attempts, the search
        begins at their damage.

        Raises:
            CutOffError: There is no match, and the document's end damaged the value.
        """
        reach = max(error.reach, beyond.reach)
        if self._cursor.offset >= self._reached:
            self._tries = 0
        self._reached = max(self._reached, self._cursor.offset_ahead(reach))
        self._tries += 1
        distance = self._cursor.distance(
            pattern, beyond=1 if self._tries <= MOST_TRIES else max(1, reach)
        )
        if distance is None and error.is_cut_off and beyond.is_cut_off:
            raise CutOffError
        return distance

    def _skip(self, kind: str, characters: int | None) -> None:
        """Skip this many characters, or all read so far, and log them as lost."""
        size = self._cursor.rest if characters is None else characters
        start, excerpt = self._cursor.offset, self._cursor.excerpt(size)
        self._cursor.at += size
        self._log.add(kind, start, excerpt, lost_bytes=self._cursor.offset - start)

    def _skip_all(self, kind: str) -> None:
        """Skip the rest of the document, and log it as lost."""
        self._cursor.look_ahead(EXAMPLE_CHARACTERS)
        start, excerpt = self._cursor.offset, self._cursor.excerpt(EXAMPLE_CHARACTERS)
        self._cursor.drain()
        self._log.add(kind, start, excerpt, lost_bytes=self._cursor.offset - start)

    def _note(self, value: Repaired) -> None:
        for kind, count in value.kinds.items():
            self._log.add(kind, self._cursor.offset, self._cursor.excerpt(value.end), count=count)


def _reach(error: Exception, cursor: Cursor) -> int:
    """Return the distance at which `json` failed, or a lower bound."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos - cursor.at
    deep = DEEP.match(cursor.text, cursor.at) if isinstance(error, RecursionError) else None
    return deep.end() - cursor.at if deep else 1


def plain_json(value: Any) -> Any:  # noqa: ANN401
    """Convert numbers stored as text to floats, and broken text to valid text, recursively.

    Raises:
        RecursionError: The value is nested too deeply.
    """
    match value:
        case str():
            plain: Any = readable(value)
        case bytes():
            plain = float(value)
        case list():
            plain = [plain_json(item) for item in value]
        case dict():
            plain = {readable(key): plain_json(item) for key, item in value.items()}
        case _:
            plain = value
    return plain
