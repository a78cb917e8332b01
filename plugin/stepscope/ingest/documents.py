"""A trace document's top level, walked as it streams in: events one by one, the rest as metadata.

The document is an object with `traceEvents` among other keys, in any order, or a bare list of
events. An event that is no valid JSON is repaired where its damage is a known one, else skipped
and counted; reading goes on at the next event.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from stepscope.ingest.columns import NumberText

EVENTS_KEY = "traceEvents"
BUFFER_CHARACTERS = 8 << 20
LONGEST_VALUE_CHARACTERS = 64 << 20
"""A value that has not ended by then is damaged: real ones (dumped source code) are far smaller."""
NEAR_END = 16
"""A literal or number cut by the buffer's end fails at most this far before it."""
SPACE = re.compile(r"\s*")
SPACE_AND_COMMAS = re.compile(r"[\s,]*")
NEXT_EVENT = re.compile(r'\{\s*"(?:ph|name|cat|pid|tid|ts|args|id)"\s*:')
BARE_WORD = re.compile(r"(:\s*)(?:N/A|-?nan|-?inf|undefined)(?=\s*[,}\]])", re.IGNORECASE)
EMPTY_VALUE = re.compile(r'(":)\s*(?=[,}])')
TRAILING_COMMA = re.compile(r",(\s*[}\]])")
BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrtu])|\\u(?![0-9a-fA-F]{4})')


class _CutOffError(Exception):
    """The buffer ends inside a value: more text is needed."""


class Document:
    """Walks a document given as pieces of text."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self._text = ""
        self._at = 0
        self._ended = False
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
            key = self._value() if character == '"' else None
            if not isinstance(key, str) or self._next_character() != ":":
                self.is_truncated = self.is_json
                return
            self._at += 1
            self.is_json = True
            starts_with = self._next_character(over=SPACE)
            if key == EVENTS_KEY and starts_with == "[":
                self._at += 1
                self.has_events_key = True
                yield from self._list()
            elif starts_with == ",":
                self.metadata[key] = None  # `"key": ,` (pytorch#172353)
            elif not self._metadata(key):
                return
        self.is_truncated |= character != "}"

    def _metadata(self, key: str) -> bool:
        try:
            self.metadata[key] = _plain(self._value())
        except (ValueError, _CutOffError):
            return self._skip_metadata()
        return True

    def _skip_metadata(self) -> bool:
        """Pass over a damaged top-level value, to the key at the start of a later line."""
        following = re.compile(r'\n\s{0,4}(?="[^"\n]+"\s*:)')
        match = following.search(self._text, self._at)
        self.skipped_count += 1
        if match is None:
            self.is_truncated = True
            return False
        self.skipped_characters += match.end() - self._at
        self._at = match.end()
        return True

    def _list(self) -> Iterator[dict[str, Any]]:
        while character := self._next_character():
            if character == "]":
                self._at += 1
                return
            try:
                event = self._value()
            except _CutOffError:
                self.is_truncated = True
                self._at = len(self._text)
                return
            except ValueError:
                event = self._salvaged()
            if isinstance(event, dict):
                yield event
            elif event is not None:
                self.skipped_count += 1
        self.is_truncated = True

    def _value(self) -> Any:  # noqa: ANN401 (a JSON value is anything)
        """Return the value at the cursor and step behind it; read more text as it needs."""
        while True:
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
            self._at = end
            return value

    def _is_cut_off(self, error: json.JSONDecodeError) -> bool:
        rest = len(self._text) - self._at
        if rest > LONGEST_VALUE_CHARACTERS:
            return False
        is_open_text = error.msg.startswith("Unterminated string")
        return is_open_text or error.pos >= len(self._text) - NEAR_END

    def _salvaged(self) -> Any:  # noqa: ANN401
        """Repair the event at the cursor, or skip it; either way go to the next one."""
        following = NEXT_EVENT.search(self._text, self._at + 1)
        end = following.start() if following else len(self._text)
        while following is not None and self._text[following.start() - 1] == ":":
            following = NEXT_EVENT.search(self._text, following.start() + 1)
            end = following.start() if following else len(self._text)
        fragment = self._text[self._at : end]
        self._at = end
        try:
            value, _ = self._scan(_repaired(fragment))
        except json.JSONDecodeError:
            self.skipped_count += 1
            self.skipped_characters += len(fragment)
            return None
        self.repaired_count += 1
        return value

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

    def _fill(self) -> None:
        """Drop what is behind the cursor and read on, at least one buffer."""
        parts = [self._text[self._at :]]
        size = 0
        while size < BUFFER_CHARACTERS:
            piece = next(self._pieces, None)
            if piece is None:
                self._ended = True
                break
            parts.append(piece)
            size += len(piece)
        self._text = "".join(parts)
        self._at = 0


def _repaired(fragment: str) -> str:
    """Mend the damages that exporters are known to write (kineto#105, #336, pytorch#172353)."""
    text = BAD_ESCAPE.sub(r"\\\\", fragment)
    text = BARE_WORD.sub(r"\1null", text)
    text = EMPTY_VALUE.sub(r"\1 null", text)
    return TRAILING_COMMA.sub(r"\1", text)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Turn numbers kept as text into floats, all the way down."""
    if isinstance(value, NumberText):
        return float(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
