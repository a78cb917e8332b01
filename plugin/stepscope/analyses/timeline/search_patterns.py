"""What is searched for, as a question asked of one text: plain words, or a regular expression.

Python's own engine may take for ever on some expressions: those are refused. What it tries grows
with the length of the text to the power of the repeats, so that texts are cut where there are
several, and none may stand in another.
"""

import re
import time
from collections.abc import Callable, Iterable
from re import _constants as codes
from re import _parser as parser
from typing import Any

from stepscope.base.errors import UsageError

MOST_LETTERS = 400
MOST_REPEATS = 3
MOST_CHOICES = 16
"""Of `|` and `?`."""
LONGEST_BY_REPEATS = (100_000, 10_000, 1_000, 250)
"""How much of a text is looked at, by the number of repeats: some 10^8 steps at the worst."""
MOST_SECONDS = 2.0
"""For all names together."""
REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT})
Predicate = Callable[[str], bool]


def predicate(text: str, *, is_exact: bool, is_expression: bool) -> Predicate:
    """Return what tells whether a text holds what is searched for.

    Raises:
        UsageError: the expression is none, or may take for ever.
    """
    if len(text) > MOST_LETTERS:
        msg = f"what is searched for has up to {MOST_LETTERS} characters"
        raise UsageError(msg)
    if is_expression:
        return _expression(text, is_exact=is_exact)
    if is_exact:
        return lambda name: text in name
    wanted = text.casefold()
    return lambda name: wanted in name.casefold()


def matches(is_found: Predicate, texts: Iterable[str]) -> list[bool]:
    """Ask of each text.

    Raises:
        UsageError: it takes too long.
    """
    until = time.monotonic() + MOST_SECONDS
    found = []
    for text in texts:
        found.append(is_found(text))
        if time.monotonic() > until:
            msg = f"the expression took longer than {MOST_SECONDS:.0f} s: make it simpler"
            raise UsageError(msg)
    return found


def _expression(text: str, *, is_exact: bool) -> Predicate:
    try:
        tree = parser.parse(text)
        compiled = re.compile(text, 0 if is_exact else re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"{text} is no regular expression: {error}"
        raise UsageError(msg) from error
    count = _Counted()
    count.look_at(tree, is_repeated=False)
    longest = LONGEST_BY_REPEATS[count.repeats]
    return lambda name: compiled.search(name[:longest]) is not None


class _Counted:
    """Counts what makes an expression slow."""

    def __init__(self) -> None:
        self.repeats = 0
        self.choices = 0

    def look_at(self, tree: Any, *, is_repeated: bool) -> None:  # noqa: ANN401 - re's own tree
        for code, argument in tree:
            if code is codes.GROUPREF or code is codes.GROUPREF_EXISTS:
                msg = "a regular expression may not refer to its groups"
                raise UsageError(msg)
            if code in REPEATS or code is codes.POSSESSIVE_REPEAT:
                self._look_at_repeat(argument, is_repeated=is_repeated)
            elif code is codes.BRANCH:
                self._count_choices(len(argument[1]) - 1, is_repeated=is_repeated)
                for each in argument[1]:
                    self.look_at(each, is_repeated=is_repeated)
            else:
                for inner in _within(argument):
                    self.look_at(inner, is_repeated=is_repeated)

    def _look_at_repeat(self, argument: Any, *, is_repeated: bool) -> None:  # noqa: ANN401
        least, most, inner = argument
        if most <= 1:
            self._count_choices(1, is_repeated=is_repeated)
        else:
            self.repeats += 1
            if is_repeated or self.repeats > MOST_REPEATS:
                msg = (
                    f"a regular expression may hold up to {MOST_REPEATS} repeats (*, +, {{n}}),"
                    " and none within another: that could take for ever"
                )
                raise UsageError(msg)
        self.look_at(inner, is_repeated=is_repeated or most > 1)
        del least

    def _count_choices(self, count: int, *, is_repeated: bool) -> None:
        self.choices += count
        if is_repeated or self.choices > MOST_CHOICES:
            msg = (
                f"a regular expression may hold up to {MOST_CHOICES} choices (|, ?),"
                " and none within a repeat: that could take for ever"
            )
            raise UsageError(msg)


def _within(argument: Any) -> list[Any]:  # noqa: ANN401
    """Return the parts of an expression that are in one of its elements: groups, assertions."""
    if isinstance(argument, parser.SubPattern):
        return [argument]
    if isinstance(argument, tuple):
        return [each for each in argument if isinstance(each, parser.SubPattern)]
    return []
