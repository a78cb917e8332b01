"""Reading of pickles of plain values without running any code.

A pickle is a program. This interpreter runs the few instructions that create text, numbers, lists,
dicts and tuples, and refuses all others, above all those that name a function or class. Python's
own `pickle.Unpickler` with a forbidden `find_class` would not suffice: one instruction of five
bytes (LONG_BINPUT) makes it reserve gigabytes, and deeply nested keys overflow its stack.

The interpreter creates nothing larger than the bytes read, counts its objects, and never recurses.
Instructions are those of Python's `pickletools`, of protocols 2 to 5, which `pickle.dump` and
torch's own pickler write (`torch/csrc/jit/serialization/pickler.cpp`).
"""

import pickletools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

LONGEST_INTEGER_BYTES = 16
"""Limit of integers; an address needs 9 bytes."""
DANGEROUS = frozenset(
    {
        "GLOBAL",
        "STACK_GLOBAL",
        "INST",
        "OBJ",
        "REDUCE",
        "BUILD",
        "NEWOBJ",
        "NEWOBJ_EX",
        "EXT1",
        "EXT2",
        "EXT4",
        "PERSID",
        "BINPERSID",
    }
)
"""Instructions that name or call code."""


class PickleRefusedError(ValueError):
    """A pickle is damaged, too large, or has more than plain values; the text is a sentence."""


@dataclass(frozen=True, kw_only=True)
class PickleLimits:
    """Limits per pickle."""

    instructions: int = 150_000_000
    objects: int = 20_000_000
    """Lists, dicts, tuples, texts, and stored values."""


def load(data: bytes, limits: PickleLimits = PickleLimits()) -> object:
    """Return the value of a pickle: None, bool, int, float, str, or lists, dicts, tuples.

    Values that a pickle uses twice are the same object, and a list may contain itself.

    Raises:
        PickleRefusedError: The pickle is damaged, too large, or contains anything else.
    """
    machine = _Machine(data, limits)
    try:
        return machine.run()
    except (IndexError, KeyError, struct.error, TypeError, ValueError) as error:
        if isinstance(error, PickleRefusedError):
            raise
        message = f"It is damaged at byte {machine.at:,}."
        raise PickleRefusedError(message) from error


class _Machine:
    """Runs one pickle; `at` is the position of the next instruction, or of its argument."""

    def __init__(self, data: bytes, limits: PickleLimits) -> None:
        self._data = data
        self._limits = limits
        self.at = 0
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        """The stacks below each mark."""
        self._memo: dict[int, Any] = {}
        self._objects = 0

    def run(self) -> object:
        data, handlers = self._data, [_HANDLERS.get(code) for code in range(256)]
        for _ in range(self._limits.instructions):
            code = data[self.at]
            self.at += 1
            if code == _STOP:
                return self._result()
            if code == _LONG_GET:  # by far the most frequent: frames of stacks are shared
                self._stack.append(self._memo[_U4.unpack_from(data, self.at)[0]])
                self.at += 4
                continue
            handler = handlers[code]
            if handler is None:
                raise PickleRefusedError(_refusal(code))
            handler(self)
        message = f"It has more than {self._limits.instructions:,} instructions."
        raise PickleRefusedError(message)

    def _result(self) -> object:
        (result,) = self._stack  # anything else is damage
        if self._below:
            raise IndexError
        return result

    # --- arguments of instructions --------------------------------------------------------------

    def _take(self, count: int) -> bytes:
        begin, end = self.at, self.at + count
        if count < 0 or end > len(self._data):
            raise IndexError
        self.at = end
        return self._data[begin:end]

    def _number(self, form: struct.Struct) -> int:
        (number,) = form.unpack_from(self._data, self.at)
        self.at += form.size
        return number  # type: ignore[no-any-return]

    def _made(self, value: object) -> None:
        self._objects += 1
        if self._objects > self._limits.objects:
            message = f"It contains more than {self._limits.objects:,} values."
            raise PickleRefusedError(message)
        self._stack.append(value)

    # --- instructions ---------------------------------------------------------------------------

    def protocol(self) -> None:
        if not 2 <= self._number(_U1) <= 5:
            message = "Its protocol is one that torch does not write."
            raise PickleRefusedError(message)

    def frame(self) -> None:
        self._take(8)  # the length of the next frame is not needed

    def mark(self) -> None:
        self._objects += 1
        if self._objects > self._limits.objects:
            self._made(None)
        self._below.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def constant(self, value: object) -> None:
        self._stack.append(value)

    def number(self, form: struct.Struct) -> None:
        self._stack.append(self._number(form))

    def integer(self, form: struct.Struct) -> None:
        size = self._number(form)
        if not 0 <= size <= LONGEST_INTEGER_BYTES:
            message = f"It contains a whole number of {size:,} bytes."
            raise PickleRefusedError(message)
        self._stack.append(int.from_bytes(self._take(size), "little", signed=True))

    def text(self, form: struct.Struct) -> None:
        self._made(self._take(self._number(form)).decode("utf-8", "replace"))

    def empty(self, kind: Callable[[], Any]) -> None:
        self._made(kind())

    def tuple_of(self, count: int) -> None:
        if len(self._stack) < count:
            raise IndexError
        items = tuple(self._stack[len(self._stack) - count :])
        del self._stack[len(self._stack) - count :]
        self._made(items)

    def tuple_to_mark(self) -> None:
        items = tuple(self._to_mark())
        self._made(items)

    def append(self) -> None:
        item = self._stack.pop()
        self._list().append(item)

    def extend(self) -> None:
        items = self._to_mark()
        self._list().extend(items)

    def _list(self) -> list[Any]:
        top = self._stack[-1]
        if type(top) is not list:
            raise TypeError
        return top

    def set_item(self) -> None:
        value = self._stack.pop()
        self._set([self._stack.pop(), value])

    def set_items(self) -> None:
        self._set(self._to_mark())

    def _set(self, items: list[Any]) -> None:
        top = self._stack[-1]
        keys = items[::2]
        if type(top) is not dict or len(items) % 2 or set(map(type, keys)) - {str}:
            raise TypeError
        top.update(zip(keys, items[1::2], strict=True))

    def memoize(self) -> None:
        self._store(len(self._memo))

    def put(self, form: struct.Struct) -> None:
        self._store(self._number(form))

    def _store(self, index: int) -> None:
        self._objects += 1
        if self._objects > self._limits.objects:
            self._made(None)
        self._memo[index] = self._stack[-1]

    def get(self, form: struct.Struct) -> None:
        self._stack.append(self._memo[self._number(form)])


_U1, _U2, _U4, _U8, _S4 = (struct.Struct(form) for form in ("<B", "<H", "<I", "<Q", "<i"))
_FLOAT = struct.Struct(">d")
_CODES = {opcode.name: ord(opcode.code) for opcode in pickletools.opcodes}
_STOP = _CODES["STOP"]
_LONG_GET = _CODES["LONG_BINGET"]
_NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}
Handler = Callable[[_Machine], None]
ArgumentT = TypeVar("ArgumentT")


def _with(method: Callable[[_Machine, ArgumentT], None], argument: ArgumentT) -> Handler:
    return lambda machine: method(machine, argument)


_HANDLERS: dict[int, Handler] = {
    _CODES[name]: handler
    for name, handler in {
        "PROTO": _Machine.protocol,
        "FRAME": _Machine.frame,
        "MARK": _Machine.mark,
        "NONE": _with(_Machine.constant, None),
        "NEWTRUE": _with(_Machine.constant, True),  # noqa: FBT003
        "NEWFALSE": _with(_Machine.constant, False),  # noqa: FBT003
        "BININT": _with(_Machine.number, _S4),
        "BININT1": _with(_Machine.number, _U1),
        "BININT2": _with(_Machine.number, _U2),
        "BINFLOAT": _with(_Machine.number, _FLOAT),
        "LONG1": _with(_Machine.integer, _U1),
        "LONG4": _with(_Machine.integer, _S4),
        "SHORT_BINUNICODE": _with(_Machine.text, _U1),
        "BINUNICODE": _with(_Machine.text, _U4),
        "BINUNICODE8": _with(_Machine.text, _U8),
        "EMPTY_LIST": _with(_Machine.empty, list),
        "EMPTY_DICT": _with(_Machine.empty, dict),
        "EMPTY_TUPLE": _with(_Machine.empty, tuple),
        "TUPLE": _Machine.tuple_to_mark,
        "TUPLE1": _with(_Machine.tuple_of, 1),
        "TUPLE2": _with(_Machine.tuple_of, 2),
        "TUPLE3": _with(_Machine.tuple_of, 3),
        "APPEND": _Machine.append,
        "APPENDS": _Machine.extend,
        "SETITEM": _Machine.set_item,
        "SETITEMS": _Machine.set_items,
        "MEMOIZE": _Machine.memoize,
        "BINPUT": _with(_Machine.put, _U1),
        "LONG_BINPUT": _with(_Machine.put, _U4),
        "BINGET": _with(_Machine.get, _U1),
        "LONG_BINGET": _with(_Machine.get, _U4),
    }.items()
}


def _refusal(code: int) -> str:
    name = _NAMES.get(code, "")
    if name in DANGEROUS:
        return f"It contains code ({name}), unlike any memory snapshot: it was not opened."
    return (
        f"It contains an instruction that no memory snapshot has ({name or f'instruction {code}'})."
    )
