"""Copies between memories."""

import re
from operator import attrgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.dialects import Kind
from stepscope.model.frames import Column, Schema, device_events
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.source import Rows, Source
from stepscope.model.table import Table

SCHEMA: Schema = (
    *device_events.SCHEMA,
    Column("direction", "category", "text", "`HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH` or `other`."),
    Column("is_pageable", "bool", "", "The host side is pageable; False where it cannot be told."),
    Column("bytes", "float64", "bytes", "Bytes copied; NaN where not recorded."),
)
DIRECTION = re.compile(
    r"(?P<from>[HDP])to(?P<to>[HDP])"
    r"|(?P<from_long>host|device)[ _]?to[ _]?(?P<to_long>host|device)"
    # Intel's: Memory is the host's too, but not from SYCL's allocator; Shared may be either's
    r"|\b(?P<from_short>[MHDS])2(?P<to_short>[MHDS])\b",
    re.IGNORECASE,
)
TOLD_BY = ("direction", "operation")
"""Arguments that say it where the name does not (MTIA, Ascend)."""
MOST_BYTES = 2.0**63
"""What says more is damage, no copy."""
SIZES = ("bytes", "size", "size(B)", "dataSize(B)")
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "other")
UNTOLD = DIRECTIONS.index("other")


def direction(text: str) -> str:
    """Return a copy's direction from its name (`Memcpy HtoD (Pageable -> Device)`)."""
    match = DIRECTION.search(text)
    if match is None:
        return "other"
    origin, target = (part[0].upper().replace("M", "H") for part in match.groups() if part)
    found = f"{origin}to{target}"
    return found if found in DIRECTIONS else "other"


def build(source: Source, events: pd.DataFrame) -> pd.DataFrame:
    """Return the copies among the device events, in `SCHEMA` columns."""
    copies = events[events["kind"] == int(Kind.COPY)].reset_index(drop=True)
    rows = copies["event"].to_numpy()
    told = [copies["name"].array, *(source.label(key, rows) for key in TOLD_BY)]
    which = _directions(told[0])
    for column in told[1:]:
        which = np.where(which == UNTOLD, _directions(column), which)
    return copies.assign(
        direction=pd.Categorical.from_codes(which, categories=pd.Index(DIRECTIONS, dtype=object)),
        is_pageable=name_mask(copies["name"], lambda name: "Pageable" in name),
        bytes=moved_bytes(source, rows),
    )


def moved_bytes(source: Source, rows: Rows) -> NDArray[np.float64]:
    """Return how many bytes each of these events moved; NaN where nothing says it."""
    size = _told_bytes(source, rows)
    untold = np.flatnonzero(np.isnan(size))
    if len(untold):
        size[untold] = _bytes_of_calls(source, rows[untold])
    return size


def _told_bytes(source: Source, rows: Rows) -> NDArray[np.float64]:
    size = np.full(len(rows), np.nan)
    for key in SIZES:
        size = np.where(np.isnan(size), source.number(key, rows), size)
    return np.where((size >= 0) & (size < MOST_BYTES), size, np.nan)


def _bytes_of_calls(source: Source, rows: Rows) -> NDArray[np.float64]:
    """Return what the calls say that asked for these events, as ROCm's do whose copies do not.

    Where several events are of one call, none of them is all that it asked for.
    """
    calls = source.rows(Kind.RUNTIME_CALL)
    size = _told_bytes(source, calls)
    calls, size = calls[~np.isnan(size)], size[~np.isnan(size)]
    correlation = source.correlation(rows)
    known = pd.Series(size, index=source.correlation(calls))
    known = known[~known.index.duplicated()]
    found = np.array(known.reindex(correlation), dtype=np.float64)
    found[pd.Series(correlation).duplicated(keep=False).to_numpy() | (correlation < 0)] = np.nan
    return found


def _directions(texts: pd.Categorical) -> NDArray[np.int64]:
    """Return, for each text, its direction's place in `DIRECTIONS`."""
    found = [DIRECTIONS.index(direction(str(text))) for text in texts.categories]
    return np.asarray(np.array([*found, UNTOLD], dtype=np.int64)[texts.codes])


TABLES = {
    "copy-events": Table(
        title="Copy events",
        meaning="One row per copy between memories: when, where, which way, and how many bytes.",
        schema=SCHEMA,
        build=attrgetter("copies"),
    ),
}
