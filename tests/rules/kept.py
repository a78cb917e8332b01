"""The cases of the rules and what was made of them, for all tests of one process.

`mutants.py` imports `test_rules.py` under another name than pytest, so that has two of everything;
this module is there once.
"""

from functools import cache
from pathlib import Path
from typing import Any

import loading
from stepscope.base.findings import Outcome
from stepscope.model.trace import Trace

TRACES: dict[int, tuple[object, Trace]] = {}
"""A case's trace by the case's identity; the case is kept with it, so that no other has that."""
RANKS: dict[int, tuple[object, list[Trace]]] = {}
SAID: dict[int, tuple[object, list[Outcome]]] = {}


@cache
def documents() -> dict[str, dict[str, Any]]:
    """Return the documents `tests/rules/<name>.yml` by name."""
    folder = Path(__file__).parent
    return {path.stem: loading.document_at(path) for path in sorted(folder.glob("*.yml"))}
