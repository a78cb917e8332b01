"""What a slice is, as the timeline colours it: a small code a slice."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.data_loading import LOADING
from stepscope.analyses.idle.ledger import CAUSES
from stepscope.dialects import Kind
from stepscope.model.frames.source import Rows, Source

CATEGORIES: dict[str, str] = {
    "kernel": "Kernel",
    "communication": "Communication",
    "memcpy": "Memcpy",
    "memset": "Memset",
    "runtime": "Runtime",
    "dataloader": "DataLoader",
    "cpu": "Operator",
    "annotation": "Annotation",
    "python": "Python",
    "device-annotation": "Device annotation",
    "overhead": "Profiler",
    "synchronization": "Synchronization",
    "step": "Step",
    "other": "Other",
    **{f"idle-{cause}": f"Idle: {label}" for cause, (label, _) in CAUSES.items()},
}
"""Category id to label; a slice's code is the place here."""
CODES = {category: code for code, category in enumerate(CATEGORIES)}
OF_KIND = {
    Kind.OPERATOR: "cpu",
    Kind.ANNOTATION: "annotation",
    Kind.RUNTIME_CALL: "runtime",
    Kind.KERNEL: "kernel",
    Kind.COPY: "memcpy",
    Kind.MEMORY_SET: "memset",
    Kind.PYTHON_CALL: "python",
    Kind.DEVICE_ANNOTATION: "device-annotation",
    Kind.OVERHEAD: "overhead",
    Kind.SYNCHRONIZATION: "synchronization",
}


def category_codes(source: Source, rows: Rows, *, is_step: bool = False) -> NDArray[np.uint8]:
    """Return the category of each of these events; on the track of the steps they are steps."""
    if is_step:
        return np.full(len(rows), CODES["step"], dtype=np.uint8)
    of_kind = np.full(max(Kind) + 1, CODES["other"], dtype=np.uint8)
    for kind, category in OF_KIND.items():
        of_kind[int(kind)] = CODES[category]
    kinds = source.kinds[rows]
    found = of_kind[kinds]
    _put(source, rows, found, (Kind.ANNOTATION, LOADING.search, "dataloader"))
    _put(source, rows, found, (Kind.KERNEL, source.dialect.collective.search, "communication"))
    return found


def _put(source: Source, rows: Rows, found: NDArray[np.uint8], what: tuple) -> None:  # type: ignore[type-arg]
    """Put events of a kind whose names say more into a category of their own."""
    kind, says_more, category = what
    mine = np.flatnonzero(source.kinds[rows] == int(kind))
    codes = source.columns.name[rows[mine]]
    strings = source.columns.strings
    is_wanted = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    for code in np.unique(codes[codes >= 0]).tolist():
        is_wanted[code] = bool(says_more(strings[code]))
    found[mine[is_wanted[codes]]] = CODES[category]
