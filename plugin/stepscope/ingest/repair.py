"""Reads one damaged JSON value where its damage is one that exporters are known to write.

Known are bare words (`N/A`, `nan`, `inf`: kineto#105, PR#128), escapes that JSON lacks
(kineto#336), empty values (pytorch PR#172353), and commas too many or too few. Whatever else is
wrong, such as a quote in a name that was not escaped (pytorch#146900), cannot be told apart from
what was meant: that raises.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from stepscope.ingest.exact import NumberText

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[\s,\]}]|$)", re.ASCII)
LONGEST_WHOLE_DIGITS = 4000
"""Python itself refuses to read longer whole numbers."""
WORD = re.compile(r"[-+.\w/]{1,40}(?=[\s,\]}])", re.ASCII)
ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
KEY_AHEAD = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"\s*:', re.DOTALL)
LITERALS = {"true": True, "false": False, "null": None}
NOT_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
DEEPEST = 200


class BeyondRepairError(Exception):
    """The value is damaged in a way that cannot be mended."""


@dataclass(frozen=True, kw_only=True)
class Mended:
    """A value that was read in spite of its damage."""

    value: Any
    end: int
    """Where in the text it ends."""
    kinds: tuple[str, ...]
    """The kind of each damage that was mended, as in `incidents.MEANINGS`."""


def mended(text: str, at: int = 0) -> Mended:
    """Read the value that begins at a place in the text.

    Raises:
        BeyondRepairError: it is damaged in an unknown way, or ends in the middle.
    """
    reader = _Reader(text, at)
    value = reader.value(0)
    return Mended(value=value, end=reader.at, kinds=tuple(reader.kinds))


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.kinds: list[str] = []

    def value(self, depth: int) -> Any:  # noqa: ANN401 (a JSON value is anything)
        character = self._next()
        if character in {"{", "["} and depth < DEEPEST:
            return self._object(depth) if character == "{" else self._list(depth)
        if character in {",", "}", "]"}:
            self.kinds.append("empty-value")
            return None
        return self._string() if character == '"' else self._scalar()

    def _next(self) -> str:
        space = SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def _object(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.at += 1
        while self._item(found, KEY_AHEAD, "}"):
            key = self._string()
            if self._next() != ":":
                raise BeyondRepairError
            self.at += 1
            found[key] = self.value(depth + 1)
        return found

    def _list(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while self._item(found, None, "]"):
            found.append(self.value(depth + 1))
        return found

    def _item(self, before: object, ahead: re.Pattern[str] | None, end: str) -> bool:
        """Step over what separates two items; False, and behind the end, where it ends."""
        commas = 0
        while (character := self._next()) == ",":
            commas += 1
            self.at += 1
        if character == end:
            self.at += 1
            self.kinds += ["extra-comma"] * commas
            return False
        if not character or (ahead and not ahead.match(self.text, self.at)):
            raise BeyondRepairError
        due = 1 if before else 0
        self.kinds += ["extra-comma"] * (commas - due)
        self.kinds += ["missing-comma"] * (due - commas)
        return True

    def _string(self) -> str:
        string = STRING.match(self.text, self.at)
        if string is None:
            raise BeyondRepairError
        self.at = string.end()
        return str(json.loads(ESCAPE.sub(self._escape, string[0]), strict=False))

    def _escape(self, escape: re.Match[str]) -> str:
        if len(escape[0]) > 1:
            return escape[0]
        self.kinds.append("invalid-escape")
        return r"\\"

    def _scalar(self) -> Any:  # noqa: ANN401
        if number := NUMBER.match(self.text, self.at):
            self.at = number.end()
            return _number(number[0])
        word = WORD.match(self.text, self.at)
        if word is None:
            raise BeyondRepairError
        self.at = word.end()
        if word[0] in LITERALS:
            return LITERALS[word[0]]
        self.kinds.append("not-a-number" if word[0] in NOT_NUMBERS else "bare-word")
        return None


def _number(text: str) -> int | NumberText:
    if not set(text).isdisjoint(".eE"):
        return text.encode()
    if len(text) > LONGEST_WHOLE_DIGITS:
        raise BeyondRepairError
    return int(text)
