"""Storage of texts by pandas while traces are read."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pandas as pd

OPTION = "mode.string_storage"


def use_object_strings() -> None:
    """Make pandas store texts as Python objects instead of Arrow arrays, in this whole process.

    Frames store texts as categories and as names of columns: a few hundred, accessed individually,
    for which Arrow takes a quarter more time on a trace of 2 MB. Only stepscope's own programs may
    call this.
    """
    pd.set_option(OPTION, "python")


class _Users:
    """Number of threads in `object_strings`, and the setting before the first of them."""

    lock = Lock()
    count = 0
    before: Any = None


@contextmanager
def object_strings() -> Iterator[None]:
    """Make pandas store texts as Python objects in this block, in a process with other users.

    Several threads may be in the block: the last thread to leave restores the setting.
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
