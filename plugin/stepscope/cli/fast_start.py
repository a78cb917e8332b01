"""How a command that is soon done starts: what it needs is imported at the least cost.

Of a second that advice on a small trace would take, imports are the half.
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
    """Import pandas, the analyses and the rules; where pandas is there already, do nothing."""
    if "pandas" in sys.modules:
        return
    gc.disable()  # nothing of what is imported is ever garbage
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
    """Let pandas do without pyarrow, which no rule uses: it takes half as long as pandas alone.

    Whoever imports pyarrow afterwards gets it.
    """
    if is_needed or "pyarrow" in sys.modules:
        yield
        return
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # so Python marks what is not there
    try:
        yield
    finally:
        del sys.modules["pyarrow"]
