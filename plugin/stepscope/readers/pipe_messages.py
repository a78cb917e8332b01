"""Messages through a pipe: a pickle, and behind it the arrays as they lie in memory.

Both ends are the same program; nothing that a trace holds is ever a pickle.
"""

import pickle
import struct
from io import RawIOBase
from typing import Any

HEAD = struct.Struct("<QI")
"""Bytes of the pickle, number of arrays."""
SIZE = struct.Struct("<Q")


def send(stream: RawIOBase, message: object) -> None:
    """Write a message.

    Raises:
        OSError: the other end has gone.
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
        EOFError: the other end has gone.
    """
    size, count = HEAD.unpack(_read(stream, bytearray(HEAD.size)))
    sizes = [SIZE.unpack(_read(stream, bytearray(SIZE.size)))[0] for _ in range(count)]
    body = _read(stream, bytearray(size))
    return pickle.loads(body, buffers=[_array(stream, each) for each in sizes])  # noqa: S301


def _write(stream: RawIOBase, view: memoryview) -> None:
    while view.nbytes:
        written = stream.write(view)
        view = view[written:]


def _array(stream: RawIOBase, size: int) -> memoryview:
    import numpy as np  # brought by the first array: TensorBoard's start should not wait for it

    return _read(stream, np.empty(size, dtype=np.uint8).data)


def _read(stream: RawIOBase, into: bytearray | memoryview) -> memoryview:
    view = memoryview(into)
    at = 0
    while at < view.nbytes:
        if not (count := stream.readinto(view[at:])):
            raise EOFError
        at += count
    return view
