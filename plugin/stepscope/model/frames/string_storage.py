"""How pandas keeps texts while recordings are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pandas as pd

OPTION = "mode.string_storage"


def use_object_strings() -> None:
    """Have pandas keep texts as Python's, not as Arrow's, from here on in this process.

    Frames hold texts as categories and have names of columns: a few hundred, asked for one at a
    time. Arrow's take a quarter more time for that on a recording of 2 MB. It is a setting of the
    whole process, so only a program of ours may call this.
    """
    pd.set_option(OPTION, "python")


class _Blocks:
    """How many threads are in a block, and what was set before the first of them."""

    lock = Lock()
    count = 0
    before: Any = None


@contextmanager
def object_strings() -> Iterator[None]:
    """Have pandas do so within the block: in a process that others use, too.

    Several threads may be in one: what was set is set again when the last has left it.
    """
    with _Blocks.lock:
        if not _Blocks.count:
            _Blocks.before = pd.get_option(OPTION)
            use_object_strings()
        _Blocks.count += 1
    try:
        yield
    finally:
        with _Blocks.lock:
            _Blocks.count -= 1
            if not _Blocks.count:
                pd.set_option(OPTION, _Blocks.before)
