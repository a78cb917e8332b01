"""Fast imports for short commands.

Of a second for advice on a small trace, imports take half.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.base.config import Settings


def import_advice(settings: "Settings") -> None:
    """Import pandas, the analyses and the rules, unless pandas is imported already."""
    if "pandas" in sys.modules:
        return
    gc.disable()  # imported modules are never garbage
    try:
        with _without_pyarrow(is_needed=settings.cache.folder is not None):
            import_module("pandas")
        import_module("stepscope.advice")
        import_module("stepscope.rules").all_rules()
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def _without_pyarrow(*, is_needed: bool) -> Iterator[None]:
    """Keep pandas from importing pyarrow, which takes half as long again and no rule uses.

    Later imports of pyarrow work.
    """
    if is_needed or "pyarrow" in sys.modules:
        yield
        return
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # marks a missing module
    try:
        yield
    finally:
        del sys.modules["pyarrow"]
