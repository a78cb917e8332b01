"""Category of each slice, which sets its colour: a small code."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.data_loading import LOADING
from stepscope.analyses.idle.ledger import CAUSES
from stepscope.dialects import Kind
from stepscope.model.arrays import Ints
from stepscope.model.frames.source import Source

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
"""Category id to label, in the order of the codes."""
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


def category_codes(source: Source, rows: Ints, *, is_step: bool = False) -> NDArray[np.uint8]:
    """Return the category of each of these events; events of the step track are steps."""
    if is_step:
        return np.full(len(rows), CODES["step"], dtype=np.uint8)
    of_kind = np.full(max(Kind) + 1, CODES["other"], dtype=np.uint8)
    for kind, category in OF_KIND.items():
        of_kind[int(kind)] = CODES[category]
    kinds = source.kinds[rows]
    codes = of_kind[kinds]
    _set_category(source, rows, codes, (Kind.ANNOTATION, LOADING.search, "dataloader"))
    _set_category(
        source, rows, codes, (Kind.KERNEL, source.dialect.collective.search, "communication")
    )
    return codes


def _set_category(
    source: Source,
    rows: Ints,
    result: NDArray[np.uint8],
    special: tuple[Kind, Callable[[str], object], str],
) -> None:
    """Change the category of the events of a kind whose names match."""
    kind, matches, category = special
    rows_of_kind = np.flatnonzero(source.kinds[rows] == int(kind))
    codes = source.columns.name[rows[rows_of_kind]]
    strings = source.columns.strings
    is_match = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    for code in np.unique(codes[codes >= 0]).tolist():
        is_match[code] = bool(matches(strings[code]))
    result[rows_of_kind[is_match[codes]]] = CODES[category]
