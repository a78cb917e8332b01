"""Regular expressions that take time linear in the text.

Python's engine tries alternatives one after the other, in exponential time at worst, while no other
thread runs. Here Python only parses the expression: it becomes a nondeterministic automaton, whose
sets of nodes are the states of a deterministic one, built as texts need them.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from re import _constants as codes
from re import _parser as parser
from typing import Any, NamedTuple

from stepscope.base.errors import UsageError

MOST_NODES = 1000
"""Of an expression; a repeat `{n}` copies its part."""
MOST_CACHED = 200_000
"""Nodes and transitions of cached states: some 30 MB."""
PIECE = 1 << 16
"""Characters between two checks of the time limit."""
END, FINAL_NEWLINE = "end", "newline at the end"
"""Symbols after the characters of a text; `$` also matches before the newline that ends it."""
REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT)
CLASSES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}
UNSUPPORTED = {
    codes.ASSERT: "look-ahead and look-behind, (?=…) and (?<=…)",
    codes.ASSERT_NOT: "negative look-ahead and look-behind, (?!…) and (?<!…)",
    codes.FAILURE: "empty look-ahead, (?!)",
    codes.ATOMIC_GROUP: "atomic groups, (?>…)",
    codes.GROUPREF: r"references to groups, \1",
    codes.GROUPREF_EXISTS: "conditions on groups, (?(1)…)",
    codes.POSSESSIVE_REPEAT: "possessive repeats, *+",
}
Test = Callable[[str], object]
Assertion = Callable[[str, str], bool]
"""Receives the previous character, empty at the start of the text, and the next symbol."""


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A node of the automaton: without a test it is passed without a character."""

    following: tuple[int, ...] = ()
    test: Test | None = None
    assertion: Assertion | None = None


@dataclass(frozen=True, eq=False)
class _State:
    """The nodes that the text so far leads to, and the states after each next symbol."""

    nodes: frozenset[int]
    previous: str
    following: dict[str, "_State"] = field(default_factory=dict)


class _Automaton(NamedTuple):
    nodes: list[_Node]
    start: int


MATCH = 0
"""The node at which the expression has matched."""
MATCHED = _State(frozenset({MATCH}), "")


class LinearExpression:
    """A regular expression, for one thread."""

    def __init__(self, text: str, *, is_exact: bool) -> None:
        """Parse an expression; unless `is_exact`, it ignores case.

        Raises:
            UsageError: it is invalid, too large, or has syntax that is not supported.
        """
        try:
            tree = parser.parse(text, 0 if is_exact else re.IGNORECASE)
            self._nodes, self._start = _Builder().automaton(tree)
        except (re.error, OverflowError, RecursionError) as error:
            msg = f"{text} is no regular expression: {error}"
            raise UsageError(msg) from error
        self._forget()

    def is_in(self, text: str, check_time: Callable[[], None]) -> bool:
        """Return whether a part of a text matches; `check_time` raises to end long searches."""
        state, body = self._first, text.removesuffix("\n")
        for begin in range(0, len(body), PIECE):
            check_time()
            for character in body[begin : begin + PIECE]:
                following = state.following.get(character)
                if following is None:
                    check_time()
                    following = self._step(state, character)
                if following is MATCHED:
                    return True
                state = following
        for symbol in (END,) if body == text else (FINAL_NEWLINE, END):
            state = state.following.get(symbol) or self._step(state, symbol)
            if state is MATCHED:
                return True
        return False

    def _forget(self) -> None:
        """Remove all cached states."""
        self._states: dict[tuple[frozenset[int], str], _State] = {}
        self._cached = 0
        self._first = _State(frozenset(), "")

    def _step(self, state: _State, symbol: str) -> _State:
        """Return the state after a symbol, and cache it."""
        if self._cached > MOST_CACHED:
            self._forget()
        nodes = self._reached(state, symbol)
        following = MATCHED
        if MATCH not in nodes:
            character = "\n" if symbol is FINAL_NEWLINE else symbol
            key = self._passing(nodes, character), _context(character)
            following = self._states.setdefault(key, _State(*key))
        state.following[symbol] = following
        self._cached += 1 + len(following.nodes)
        return following

    def _reached(self, state: _State, symbol: str) -> set[int]:
        """Return all nodes before a symbol; a match may begin at each character."""
        reached = {self._start, *state.nodes}
        waiting = list(reached)
        while waiting:
            node = self._nodes[waiting.pop()]
            if node.test is not None:
                continue
            if node.assertion is not None and not node.assertion(state.previous, symbol):
                continue
            new = [index for index in node.following if index not in reached]
            reached.update(new)
            waiting += new
        return reached

    def _passing(self, nodes: Iterable[int], character: str) -> frozenset[int]:
        """Return the nodes after those that accept a character."""
        tested = ((self._nodes[index], self._nodes[index].test) for index in nodes)
        passed = [node for node, test in tested if test is not None and test(character)]
        return frozenset(index for node in passed for index in node.following)


class _Builder:
    """Builds an automaton from Python's parse tree, from its end to its start."""

    def __init__(self) -> None:
        self._nodes = [_Node()]

    def automaton(self, tree: parser.SubPattern) -> _Automaton:
        return _Automaton(start=self._sequence(tree, MATCH, tree.state.flags), nodes=self._nodes)

    def _add(self, node: _Node) -> int:
        if len(self._nodes) == MOST_NODES:
            msg = f"a regular expression may have {MOST_NODES} characters with its repeats' copies"
            raise UsageError(msg)
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _sequence(self, items: Any, following: int, flags: int) -> int:  # noqa: ANN401 - re's tree
        for code, argument in reversed(list(items)):
            following = self._item(code, argument, following, flags)
        return following

    def _item(self, code: Any, argument: Any, following: int, flags: int) -> int:  # noqa: ANN401
        if code in UNSUPPORTED:
            msg = f"a regular expression here may not have {UNSUPPORTED[code]}"
            raise UsageError(msg)
        if code in REPEATS:
            return self._repeat(argument, following, flags)
        if code is codes.SUBPATTERN:
            _, added, removed, items = argument
            kinds = re.ASCII | re.UNICODE if added & (re.ASCII | re.UNICODE) else 0
            return self._sequence(items, following, (flags & ~kinds & ~removed) | added)
        return self._add(self._node(code, argument, following, flags))

    def _node(self, code: Any, argument: Any, following: int, flags: int) -> _Node:  # noqa: ANN401
        if code is codes.BRANCH:
            starts = [self._sequence(items, following, flags) for items in argument[1]]
            return _Node(following=tuple(starts))
        if code is codes.AT:
            return _Node(assertion=_assertion(argument, flags), following=(following,))
        return _Node(test=_test(code, argument, flags), following=(following,))

    def _repeat(self, argument: Any, following: int, flags: int) -> int:  # noqa: ANN401
        least, most, items = argument
        start = following
        if most is codes.MAXREPEAT:
            loop = self._add(_Node())
            body = self._sequence(items, loop, flags)
            self._nodes[loop] = _Node(following=(body, following))
            start, least = (body, least - 1) if least else (loop, 0)
        else:
            for _ in range(most - least):
                body = self._sequence(items, start, flags)
                start = self._add(_Node(following=(body, following)))
        for _ in range(least):
            body = self._sequence(items, start, flags)
            if body == start:  # a part without nodes, whatever its number
                break
            start = body
        return start


def _test(code: Any, argument: Any, flags: int) -> Test:  # noqa: ANN401
    """Return the test of one character: Python's, of a set of characters."""
    pattern = "."
    if code is codes.IN:
        pattern = f"[{''.join(_member(*item) for item in argument)}]"
    elif code is not codes.ANY:
        pattern = f"[{'^' * (code is codes.NOT_LITERAL)}{_escaped(argument)}]"
    return re.compile(pattern, flags & (re.ASCII | re.DOTALL | re.IGNORECASE)).fullmatch


def _member(code: Any, argument: Any) -> str:  # noqa: ANN401
    if code is codes.RANGE:
        return "-".join(map(_escaped, argument))
    if code is codes.CATEGORY:
        return CLASSES[argument]
    return "^" if code is codes.NEGATE else _escaped(argument)


def _escaped(point: int) -> str:
    return rf"\U{point:08x}"


def _context(character: str) -> str:
    """Return a character that no assertion tells from this one."""
    if re.match(r"\w", character):
        return "a" if character.isascii() else "é"
    return "\n" if character == "\n" else " "


def _assertion(code: Any, flags: int) -> Assertion:  # noqa: ANN401
    is_multiline = bool(flags & re.MULTILINE)
    is_word = re.compile(r"\w", flags & re.ASCII).fullmatch

    def is_boundary(previous: str, symbol: str) -> bool:
        return (is_word(previous) is None) != (is_word(symbol) is None)

    assertions: dict[Any, Assertion] = {
        codes.AT_BEGINNING: lambda previous, _: not previous or (is_multiline and previous == "\n"),
        codes.AT_BEGINNING_STRING: lambda previous, _: not previous,
        codes.AT_END: lambda _, symbol: (
            symbol in (END, FINAL_NEWLINE) or (is_multiline and symbol == "\n")
        ),
        codes.AT_END_STRING: lambda _, symbol: symbol == END,
        codes.AT_BOUNDARY: is_boundary,
        codes.AT_NON_BOUNDARY: lambda previous, symbol: not is_boundary(previous, symbol),
    }
    return assertions[code]
