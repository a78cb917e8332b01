"""Summaries of real and made recordings, for tests of where they are kept."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from stepscope import storage
from stepscope.readers.pool import read_in_process
from stepscope.readers.requests import ReadRequest, Stop
from stepscope.readers.tasks import summarise
from stepscope.storage import FileStamp, discover
from stepscope.storage.discover import TraceFile
from stepscope.summaries.summary import Summary

Files = list[tuple[TraceFile, FileStamp]]


def files_at(path: str | Path) -> Files:
    """The recordings at a path, and the state of each file."""
    return [(file, storage.stamp(file.path)) for file in discover.at(str(path))]


@cache
def summary_of(file: TraceFile) -> Summary:
    """A recording's summary, made once."""
    order = ReadRequest(file=file, steps=(("analysing", summarise),), returns_trace=False)
    found: Summary = read_in_process(order, lambda _: None, Stop()).prepared
    return found


def difference(one: Any, other: Any, at: str = "it") -> str:
    """Where two values differ, in type too; nothing where they are the same."""
    if type(one) is not type(other) and not (isinstance(one, Mapping) and type(other) is dict):
        return f"{at}: {type(one)} is not {type(other)}"
    parts, others = _parts(one), _parts(other)
    if parts is None or others is None:
        return "" if _is_same(one, other) else f"{at}: {one!r} is not {other!r}"
    if list(parts) != list(others):
        return f"{at}: it holds {list(parts)}, not {list(others)}"
    found = (difference(parts[name], others[name], f"{at}.{name}") for name in parts)
    return next(filter(None, found), "")


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        is_alike = one.dtype == other.dtype and one.shape == other.shape
        return bool(is_alike and one.tobytes() == other.tobytes())
    if isinstance(one, pd.DataFrame):
        return bool(one.equals(other) and (one.dtypes == other.dtypes).all())
    return bool(one == other) if isinstance(one, msgspec.Struct) else repr(one) == repr(other)


def _parts(value: Any) -> dict[Any, Any] | None:
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return dict(enumerate(value))
    return dict(value) if isinstance(value, Mapping) else None
