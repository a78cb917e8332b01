"""A whole file's bytes, inflated if it is gzip, up to a limit."""

import zlib

from stepscope import storage
from stepscope.base.errors import UnreadableError
from stepscope.ingest.inflate import GZIP_MAGIC, GZIP_WINDOW

READ_BYTES = 1 << 20
SEVERAL = "Unpack it first (gunzip FILE)."


def read_whole(path: str, most_bytes: int, remedy: str) -> bytes:
    """Return the file's bytes; `remedy` is for files over the limit.

    Raises:
        UnreadableError: it cannot be read, is damaged gzip, or holds more than `most_bytes`.
    """
    content = bytearray()
    try:
        storage.stamp(path)
        with storage.open_binary(path) as stream:
            piece = stream.read(READ_BYTES)
            member = zlib.decompressobj(GZIP_WINDOW) if piece.startswith(GZIP_MAGIC) else None
            while piece and len(content) <= most_bytes:
                if member is None:
                    content += piece
                    piece = stream.read(READ_BYTES)
                    continue
                content += member.decompress(piece, READ_BYTES)
                piece = member.unconsumed_tail or stream.read(READ_BYTES)
                if member.eof and (member.unused_data + piece).strip(b"\0"):
                    raise UnreadableError(
                        path, "There is more data after its gzip stream.", SEVERAL
                    )
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error
    except zlib.error as error:
        raise UnreadableError(path, "Its gzip stream is damaged.", "Copy it again.") from error
    if len(content) > most_bytes:
        raise UnreadableError(path, f"This holds more than {most_bytes / 2**30:.0f} GiB.", remedy)
    if member is not None and not member.eof:
        raise UnreadableError(path, "Its gzip stream ends in the middle.", "Copy it again.")
    return bytes(content)


def read_head(path: str, count: int) -> bytes:
    """Return the first bytes, inflated; of a damaged file the intact ones.

    Raises:
        UnreadableError: it cannot be read.
    """
    try:
        storage.stamp(path)
        with storage.open_binary(path) as stream:
            first = stream.read(count)
    except OSError as error:
        message = f"This cannot be read: {error.strerror or error}."
        raise UnreadableError(path, message, "Check the file.") from error
    if not first.startswith(GZIP_MAGIC):
        return first
    try:
        return zlib.decompressobj(GZIP_WINDOW).decompress(first, count)
    except zlib.error:
        return b""
