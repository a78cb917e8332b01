"""Whether two readers gave the same columns: every array, text, argument, incident and place."""

from typing import Any

import numpy as np

from stepscope.ingest import EventColumns
from stepscope.ingest.columns import ARRAYS


def differences(one: EventColumns, other: EventColumns) -> list[str]:
    """What is not the same, in words; nothing where all is."""
    found = [name for name in ARRAYS if not _same(getattr(one, name), getattr(other, name))]
    found += [
        f"{name}: {getattr(one, name)!r} is not {getattr(other, name)!r}"
        for name in (
            "origin_ns",
            "base_time_ns",
            "inflated_bytes",
            "strings",
            "metadata",
            "incidents",
        )
        if getattr(one, name) != getattr(other, name)
    ]
    if set(one.arguments) != set(other.arguments):
        found.append(f"arguments: {set(one.arguments) ^ set(other.arguments)}")
    for key in set(one.arguments) & set(other.arguments):
        mine, theirs = one.arguments[key], other.arguments[key]
        if not (_same(mine.rows, theirs.rows) and _same(mine.values, theirs.values)):
            found.append(f"argument {key}: {mine.values!r} is not {theirs.values!r}")
        elif mine.texts != theirs.texts:
            found.append(f"texts of argument {key}")
    return found


def _same(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and np.array_equal(one, other))
