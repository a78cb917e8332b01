"""Messages between stepscope and its reader processes: pickles followed by raw arrays.

Both ends are the same program; no data of a trace file is ever unpickled.
"""

import pickle
import struct
from dataclasses import dataclass
from io import RawIOBase
from typing import TYPE_CHECKING, Any

from stepscope.base.errors import UnreadableError

if TYPE_CHECKING:
    from stepscope.readers.trace_transfer import PackedTrace

HEAD = struct.Struct("<QI")
"""Bytes of the pickle, number of arrays."""
SIZE = struct.Struct("<Q")


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """The process accepted the request; if it dies afterwards, the file is the likely cause."""


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A log record of the process."""

    logger: str
    level: int
    message: str


@dataclass(frozen=True, kw_only=True)
class Done:
    """The request succeeded."""

    trace: "PackedTrace | None"
    prepared: Any


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The file cannot be read; the process ends now."""

    problem: UnreadableError
    is_memory: bool
    """Whether the granted memory was insufficient."""
    traceback: str = ""
    """Traceback of an unexpected error."""


class RemoteError(Exception):
    """An exception of another process, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def send(stream: RawIOBase, message: object) -> None:
    """Write a message.

    Raises:
        OSError: The other end is closed.
    """
    arrays: list[pickle.PickleBuffer] = []
    body = pickle.dumps(message, protocol=5, buffer_callback=arrays.append)
    views = [array.raw() for array in arrays]
    sizes = b"".join(SIZE.pack(view.nbytes) for view in views)
    _write(stream, memoryview(HEAD.pack(len(body), len(views)) + sizes + body))
    for view in views:
        _write(stream, view)


def receive(stream: RawIOBase) -> Any:  # noqa: ANN401 (any message)
    """Wait for a message, and return it.

    Raises:
        EOFError: The other end is closed.
    """
    size, count = HEAD.unpack(_read(stream, bytearray(HEAD.size)))
    sizes = [SIZE.unpack(_read(stream, bytearray(SIZE.size)))[0] for _ in range(count)]
    body = _read(stream, bytearray(size))
    return pickle.loads(body, buffers=[_array(stream, size) for size in sizes])  # noqa: S301


def _write(stream: RawIOBase, view: memoryview) -> None:
    while view.nbytes:
        written = stream.write(view)
        view = view[written:]


def _array(stream: RawIOBase, size: int) -> memoryview:
    import numpy as np  # imported late, not to delay TensorBoard's start

    return _read(stream, np.empty(size, dtype=np.uint8).data)


def _read(stream: RawIOBase, into: bytearray | memoryview) -> memoryview:
    view = memoryview(into)
    at = 0
    while at < view.nbytes:
        if not (count := stream.readinto(view[at:])):
            raise EOFError
        at += count
    return view
