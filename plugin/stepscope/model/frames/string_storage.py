"""Storage of texts by pandas while traces are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pandas as pd

OPTION = "mode.string_storage"


def use_object_strings() -> None:
    """Make pandas store texts as Python's, not as Arrow's, in this whole process.

    Frames hold texts as categories and names of columns: a few hundred, accessed one at a time, for
    which Arrow takes a quarter more time on a trace of 2 MB. Only stepscope's own programs may call
    this.
    """
    pd.set_option(OPTION, "python")


class _Users:
    """Number of threads in `object_strings`, and the setting before the first of them."""

    lock = Lock()
    count = 0
    before: Any = None


@contextmanager
def object_strings() -> Iterator[None]:
    """Make pandas store texts as Python's in this block, in a process that others use too.

    Several threads may be in the block: the last one to leave restores the setting.
    """
    with _Users.lock:
        if not _Users.count:
            _Users.before = pd.get_option(OPTION)
            use_object_strings()
        _Users.count += 1
    try:
        yield
    finally:
        with _Users.lock:
            _Users.count -= 1
            if not _Users.count:
                pd.set_option(OPTION, _Users.before)
