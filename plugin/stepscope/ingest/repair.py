"""Repair of damaged JSON values with the known damage of exporters.

Known kinds are bare words (`N/A`, `nan`, `inf`: kineto#105, PR#128), escapes that JSON lacks
(kineto#336), empty values (pytorch PR#172353), and superfluous or missing commas. Other damage,
such as an unescaped quote in a name (pytorch#146900), is ambiguous and raises.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.ingest.exact_numbers import NumberText

SPACE = re.compile(r"[ \t\r\n]*")
STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
"""Without backtracking: an unterminated text of a million escapes would use a gigabyte."""
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?(?=[\s,\]}]|$)", re.ASCII)
LONGEST_WHOLE_DIGITS = 4000
"""Python itself refuses to read longer whole numbers."""
WORD = re.compile(r"[-+.\w/]{1,40}(?=[\s,\]}])", re.ASCII)
ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
CUT_WORD = re.compile(r"[-+.\w/]{0,40}$", re.ASCII)
KEY = re.compile(STRING.pattern + r"[ \t\r\n]*:", re.DOTALL)
LITERALS = {"true": True, "false": False, "null": None}
NOT_NUMBERS = frozenset({"NaN", "Infinity", "-Infinity"})
DEEPEST = 200


class BeyondRepairError(Exception):
    """The value has unknown damage, or is truncated."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at
        """Its position in the text."""


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """A value that was read despite its damage."""

    value: Any
    end: int
    """Its end in the text."""
    kinds: Mapping[str, int]
    """Number of repairs by kind; the kinds are those of `incidents.MEANINGS`."""


def repair(text: str) -> Repaired:
    """Read the value at the start of the text.

    Raises:
        BeyondRepairError: The value has unknown damage, or is truncated.
    """
    reader = _Reader(text)
    value = reader.value(0)
    return Repaired(value=value, end=reader.at, kinds=reader.kinds)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.kinds: Counter[str] = Counter()

    def value(self, depth: int) -> Any:  # noqa: ANN401 (a JSON value is anything)
        character = self._next()
        if character in {"{", "["} and depth < DEEPEST:
            return self._object(depth) if character == "{" else self._list(depth)
        if character in {",", "}", "]"}:
            self.kinds["empty-value"] += 1
            return None
        return self._string() if character == '"' else self._scalar()

    def _next(self) -> str:
        space = SPACE.match(self.text, self.at)
        self.at = space.end() if space else self.at
        return self.text[self.at : self.at + 1]

    def _object(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self.at += 1
        while self._item(members, "}"):
            key = self._string()
            self._next()
            self.at += 1  # the colon
            members[key] = self.value(depth + 1)
        return members

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        self.at += 1
        while self._item(items, "]"):
            items.append(self.value(depth + 1))
        return items

    def _item(self, before: object, end: str) -> bool:
        """Skip the separator of two items; at the last item, skip the end and return False."""
        commas = 0
        while (character := self._next()) == ",":
            commas += 1
            self.at += 1
        due = 1 if before and character != end else 0
        if commas > due:
            self.kinds["extra-comma"] += commas - due
        elif commas < due:
            self.kinds["missing-comma"] += 1
        if character == end:
            self.at += 1
            return False
        if character in {"", "}", "]"} or (end == "}" and not self._is_at_key()):
            raise BeyondRepairError(self.at)
        return True

    def _is_at_key(self) -> bool:
        """Return whether a key and its colon follow; otherwise move to the failure."""
        if KEY.match(self.text, self.at):
            return True
        string = STRING.match(self.text, self.at)
        if string:
            self.at = string.end()
            self._next()
        elif self.text.startswith('"', self.at):
            self.at = len(self.text)
        return False

    def _string(self) -> str:
        string = STRING.match(self.text, self.at)
        if string is None:
            raise BeyondRepairError(len(self.text))
        self.at = string.end()
        return str(json.loads(ESCAPE.sub(self._escape, string[0]), strict=False))

    def _escape(self, escape: re.Match[str]) -> str:
        if len(escape[0]) > 1:
            return escape[0]
        self.kinds["invalid-escape"] += 1
        return r"\\"

    def _scalar(self) -> Any:  # noqa: ANN401
        if number := NUMBER.match(self.text, self.at):
            return self._number(number)
        word = WORD.match(self.text, self.at)
        if word is None:
            raise BeyondRepairError(
                len(self.text) if CUT_WORD.match(self.text, self.at) else self.at
            )
        self.at = word.end()
        if word[0] in LITERALS:
            return LITERALS[word[0]]
        self.kinds["not-a-number" if word[0] in NOT_NUMBERS else "bare-word"] += 1
        return None

    def _number(self, number: re.Match[str]) -> int | NumberText:
        if set(number[0]).isdisjoint(".eE"):
            if len(number[0]) > LONGEST_WHOLE_DIGITS:
                raise BeyondRepairError(self.at)
            self.at = number.end()
            return int(number[0])
        self.at = number.end()
        return number[0].encode()
