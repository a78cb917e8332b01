"""How much memory a file will need, told before it is read.

Measured with traces of 43 MB to 2 GB of JSON: the columns take 0.3 to 0.4 bytes a byte of JSON,
reading 0.75 at its height, all analyses together stay below 1, and the timeline, which is made on
top of them for the page, below 1.5.
"""

from stepscope import storage
from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.storage import FileStamp

GZIP_RATIO = 15
"""Times that gzip shrinks a trace: 9 to 20 in real ones."""
LEAST_GZIP_RATIO = 8
GZIP_RATIOS = range(3, 60)
"""A trace that says it shrank by another factor says something wrong."""
NEEDED_SHARE = 1.6
"""Memory that a reading is promised, for each byte of JSON: some more than was measured."""
LEAST_SHARE = 0.3
"""The columns alone."""
PROCESS_BYTES = 128 * 2**20
"""A reader's process before it reads anything."""
LEAST_BYTES = 128 * 2**20
"""For buffers and threads, however small the file is."""
WRAPS_AT = 2**32
"""gzip counts what it shrank modulo this."""
GZIP_MAGIC = b"\x1f\x8b"


def inflated_bytes(path: str, stamp: FileStamp) -> int:
    """Return about how much JSON a file holds."""
    size = stamp.size_bytes
    if urls.is_remote(path):
        return size * GZIP_RATIO if urls.name(path).endswith(".gz") else size
    said = _said_bytes(path)
    if said is None:
        return size
    guess = size * GZIP_RATIO
    likely = said + WRAPS_AT * max(0, round((guess - said) / WRAPS_AT))
    return likely if likely // max(1, size) in GZIP_RATIOS else guess


def needed_bytes(inflated: int) -> int:
    """Return what to set aside for reading and analysing so much JSON."""
    return PROCESS_BYTES + max(LEAST_BYTES, int(inflated * NEEDED_SHARE))


def require_fits(path: str, stamp: FileStamp, inflated: int, budget_bytes: int) -> None:
    """Refuse a file whose size alone says that it cannot be read within a budget.

    Raises:
        UnreadableError: even its columns would not fit.
    """
    sure = min(inflated, stamp.size_bytes * LEAST_GZIP_RATIO)
    least = int(sure * LEAST_SHARE)
    if least <= budget_bytes:
        return
    message = (
        f"This holds about {_gib(inflated)} of JSON: it needs more than {_gib(least)} of memory,"
        f" and {_gib(budget_bytes)} may be used."
    )
    raise UnreadableError(path, message, more_memory(least))


def out_of_memory(path: str, limit_bytes: int) -> UnreadableError:
    """Return the problem of a file whose reading took all the memory that it was given."""
    message = f"This needs more than the {_gib(limit_bytes)} of memory that may be used."
    return UnreadableError(path, message, more_memory(2 * limit_bytes))


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether memory was not enough; a thread without room for its stack says it otherwise."""
    return isinstance(error, MemoryError) or str(error) == "can't start new thread"


def more_memory(bytes_: int) -> str:
    """Return what to do where a file needs more memory."""
    size = f"{-(-bytes_ // 2**30)}G"
    return f"Give more (--memory {size}, or STEPSCOPE_MEMORY={size}), or record fewer steps."


def _said_bytes(path: str) -> int | None:
    """Return what a gzip file says that it holds, modulo 4 GiB; None where it is no such file."""
    try:
        with storage.open_binary(path) as stream:
            if stream.read(2) != GZIP_MAGIC:
                return None
            stream.seek(-4, 2)
            return int.from_bytes(stream.read(4), "little")
    except (OSError, ValueError):
        return None


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
