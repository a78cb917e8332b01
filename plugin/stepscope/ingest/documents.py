"""A trace document's top level, walked as it streams in: events one by one, the rest as metadata.

The document is an object with `traceEvents` among other keys, in any order, or a bare list of
events. An event that is no valid JSON is repaired where its damage is a known one, else skipped
and counted; reading goes on at the next event.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from stepscope.ingest.columns import NumberText, readable

EVENTS_KEY = "traceEvents"
BUFFER_CHARACTERS = 8 << 20
DAMAGED_BUFFER_CHARACTERS = 1 << 15
"""Each error costs a walk through the buffer (json counts the lines for its message)."""
LONGEST_VALUE_CHARACTERS = 64 << 20
"""A value that has not ended by then is damaged: real ones (dumped source code) are far smaller."""
NEAR_END = 16
"""A literal or number cut by the buffer's end fails at most this far before it."""
NEAR_MATCH = 64
"""Longer than what the patterns below look at."""
SPACE = re.compile(r"\s*")
SPACE_AND_COMMAS = re.compile(r"[\s,]*")
NEXT_EVENT = re.compile(
    r'(?<=[\[,}])\s*(?=\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id)"\s*:)'
    r'|(?<=\})\s*(?=\]\s*(?:,\s*"|\}|$))'
)
"""Where an event begins (an object after a colon is another's arguments), or their list ends."""
NEXT_KEY = re.compile(r'\n\s{0,4}(?="[^"\n]+"\s*:)|(?="traceEvents"\s*:\s*\[)')
"""Where a top-level key stands: at the start of a line, or the one that matters anywhere."""
BARE_WORD = re.compile(
    r"([:\[,]\s*)(?:N/A|[-+]?nan|[-+]?inf(?:inity)?|undefined)(?=\s*[,}\]])", re.IGNORECASE
)
EMPTY_VALUE = re.compile(r'(":)\s*(?=[,}])')
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


_DAMAGE = (ValueError, RecursionError)
"""What decoding raises: not JSON; a number of thousands of digits; brackets thousands deep."""


class _CutOffError(Exception):
    """The buffer ends inside a value: more text is needed."""


class Document:
    """Walks a document given as pieces of text."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._ended = False
        self._buffer_characters = BUFFER_CHARACTERS
        self.metadata: dict[str, Any] = {}
        self.has_events_key = False
        self.is_json = False
        self.is_truncated = False
        self.repaired_count = 0
        self.skipped_count = 0
        self.skipped_characters = 0
        self.not_a_number_count = 0
        decoder = json.JSONDecoder(
            strict=False, parse_float=NumberText, parse_constant=self._not_a_number
        )
        self._scan = decoder.raw_decode

    def _not_a_number(self, _text: str) -> None:
        self.not_a_number_count += 1

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield every event; `metadata` and the counts are complete afterwards."""
        first = self._next_character()
        if first == "[":
            self._at += 1
            self.has_events_key = self.is_json = True
            yield from self._list()
        elif first == "{":
            self._at += 1
            yield from self._object()

    def _object(self) -> Iterator[dict[str, Any]]:
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
            elif not self._metadata(key):
                return
        self.is_json |= character == "}"
        self.is_truncated |= character != "}"

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
            self.is_truncated = self.is_json
            return False
        self._skip(end - self._at)
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
        behind = "" if end is None else self._text[end:]
        self._text = _repaired(":" + self._text[self._at : end])[1:] + behind
        self._at = 0
        try:
            self.metadata[key] = _plain(self._value())
        except (*_DAMAGE, _CutOffError):
            self._skip(len(self._text) - len(behind))
            self.is_truncated |= end is None
            return end is not None
        self.repaired_count += 1
        return True

    def _list(self) -> Iterator[dict[str, Any]]:
        while character := self._next_character():
            if character == "]":
                self._at += 1
                return
            try:
                event = self._value()
            except (*_DAMAGE, _CutOffError) as error:
                event = self._salvaged(is_cut_off=isinstance(error, _CutOffError))
            if isinstance(event, dict):
                yield event
            elif event is not None:
                self.skipped_count += 1
        self.is_truncated = True

    def _value(self) -> Any:  # noqa: ANN401 (a JSON value is anything)
        """Return the value at the cursor and step behind it; read more text as it needs."""
        while True:
            counted = self.not_a_number_count
            try:
                value, end = self._scan(self._text, self._at)
            except json.JSONDecodeError as error:
                self.not_a_number_count = counted
                if not self._is_cut_off(error):
                    raise
                if self._ended:
                    raise _CutOffError from error
                self._fill()
                continue
            if end >= len(self._text) - NEAR_END and not self._ended:
                self.not_a_number_count = counted
                self._fill()  # a number at the very end may go on in the next piece
                continue
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
        end = self._found(NEXT_EVENT)
        fragment = self._text[self._at : end]
        repaired = _repaired(fragment)
        try:
            value, size = self._scan(repaired)
        except _DAMAGE:
            if is_cut_off and end is None:
                self._at = len(self._text)
            else:
                self._skip(len(fragment))
            return None
        self.repaired_count += 1
        self._at += len(fragment)
        if rest := repaired[size:].strip(", \t\r\n"):
            self._text = rest + self._text[self._at :]  # an event with a first key unheard of
            self._at = 0
        return value

    def _skip(self, characters: int) -> None:
        self._at += characters
        self.skipped_count += 1
        self.skipped_characters += characters

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
        size = DAMAGED_BUFFER_CHARACTERS
        if self._buffer_characters <= size:
            return
        self._buffer_characters = size
        rest = self._text[self._at + size :]
        self._text, self._at = self._text[self._at : self._at + size], 0
        self._ended = self._ended and not rest
        self._pieces = _in_slices(itertools.chain((rest,), self._pieces), size)

    def _fill(self) -> None:
        """Drop what is behind the cursor and read on, at least one buffer."""
        parts = [self._text[self._at :]]
        size = 0
        while size < max(self._buffer_characters, len(parts[0])):
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                break
            parts.append(piece)
            size += len(piece)
        self._text = "".join(parts)
        self._at = 0


def _in_slices(pieces: Iterable[str], size: int) -> Iterator[str]:
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece[start : start + size]


def _repaired(fragment: str) -> str:
    """Mend the damages that exporters are known to write (kineto#105, #336, pytorch#172353)."""
    text = ESCAPE.sub(lambda escape: escape[0] if len(escape[0]) > 1 else r"\\", fragment)
    text = BARE_WORD.sub(r"\1null", text)
    text = EMPTY_VALUE.sub(r"\1 null", text)
    return TRAILING_COMMA.sub(r"\1", text)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Turn numbers kept as text into floats and broken text into whole, all the way down."""
    if isinstance(value, str):
        return float(value) if isinstance(value, NumberText) else readable(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {readable(key): _plain(item) for key, item in value.items()}
    return value
