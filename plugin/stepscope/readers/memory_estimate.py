"""Estimate of the memory that reading a file needs.

Measured with traces of 43 MB to 2 GB of JSON: per byte of JSON, the columns take 0.3 to 0.4 bytes,
reading 0.75 at its peak, all analyses together less than 1.2, and including the page's timeline
less than 1.7.
"""

from stepscope import storage
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.base.formatting import size
from stepscope.storage import FileStamp

GZIP_RATIO = 15
"""Compression of traces by gzip: 9 to 20 in real ones."""
LEAST_GZIP_RATIO = 8
GZIP_RATIOS = range(3, 60)
"""Plausible ratios; a size in a gzip file that implies another ratio is wrong."""
NEEDED_SHARE = 1.8
"""Memory granted per byte of JSON, with some reserve."""
LEAST_SHARE = 0.3
"""Memory of the columns alone, per byte of JSON."""
PROCESS_BYTES = 128 * 2**20
"""Memory of a reader process before it reads a file."""
LEAST_BYTES = 128 * 2**20
"""Buffers and threads."""
WRAPS_AT = 2**32
"""gzip stores the size modulo this."""
GZIP_MAGIC = b"\x1f\x8b"


def inflated_bytes(path: str, stamp: FileStamp) -> int:
    """Return the approximate size of a file's JSON."""
    file_bytes = stamp.size_bytes
    if urls.is_remote(path):
        return file_bytes * GZIP_RATIO if urls.name(path).endswith(".gz") else file_bytes
    stored = _stored_size(path)
    if stored is None:
        return file_bytes
    guess = file_bytes * GZIP_RATIO
    likely = stored + WRAPS_AT * max(0, round((guess - stored) / WRAPS_AT))
    return likely if likely // max(1, file_bytes) in GZIP_RATIOS else guess


def needed_bytes(inflated: int) -> int:
    """Return the memory to reserve for reading and analysing this many bytes of JSON."""
    return PROCESS_BYTES + max(LEAST_BYTES, int(inflated * NEEDED_SHARE))


def require_fits(path: str, stamp: FileStamp, inflated: int, budget_bytes: int) -> None:
    """Raise if a file is too large for a budget.

    Raises:
        UnreadableError: Its columns alone would not fit.
    """
    certain = min(inflated, stamp.size_bytes * LEAST_GZIP_RATIO)
    least = int(certain * LEAST_SHARE)
    if least <= budget_bytes:
        return
    message = (
        f"This contains about {size(inflated)} of JSON: it needs more than {size(least)} of "
        f"memory, but the limit is {size(budget_bytes)}."
    )
    raise UnreadableError(path, message, more_memory(least))


def out_of_memory(path: str, limit_bytes: int) -> UnreadableError:
    """Return the problem of a file whose reading exceeded its memory limit."""
    message = f"This needs more memory than the limit of {size(limit_bytes)}."
    return UnreadableError(path, message, more_memory(2 * limit_bytes))


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error means that memory ran out, for example for a thread's stack."""
    return isinstance(error, MemoryError) or str(error) == "can't start new thread"


def more_memory(bytes_: int) -> str:
    """Return the remedy for a file that needs this much memory."""
    limit = f"{-(-bytes_ // 2**30)}G"
    return (
        f"Raise the limit (--memory {limit}, or STEPSCOPE_MEMORY={limit}), or record fewer steps."
    )


def _stored_size(path: str) -> int | None:
    """Return the size stored in a gzip file, modulo 4 GiB; None for other files."""
    try:
        with storage.open_binary(path) as stream:
            if stream.read(2) != GZIP_MAGIC:
                return None
            stream.seek(-4, 2)
            return int.from_bytes(stream.read(4), "little")
    except (OSError, ValueError):
        return None
