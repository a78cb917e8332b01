"""Copies between memories."""

import re
from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema, device_events
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

SCHEMA: Schema = (
    *device_events.SCHEMA,
    Column("direction", "category", "text", "`HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH` or `other`."),
    Column("is_pageable", "bool", "", "The host side is pageable; False if unknown."),
    Column("bytes", "float64", "bytes", "Bytes copied; NaN: not recorded."),
)
DIRECTION = re.compile(
    r"(?P<from>[HDP])to(?P<to>[HDP])"
    r"|(?P<from_long>host|device)[ _]?to[ _]?(?P<to_long>host|device)"
    # Intel: Memory is also the host's, but not from SYCL's allocator; Shared may be either
    r"|\b(?P<from_short>[MHDS])2(?P<to_short>[MHDS])\b",
    re.IGNORECASE,
)
DIRECTION_ARGUMENTS = ("direction", "operation")
"""Arguments with the direction, if the name has none (MTIA, Ascend)."""
MOST_BYTES = 2.0**63
"""Larger numbers are damage."""
SIZES = ("bytes", "size", "size(B)", "dataSize(B)")
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "other")
UNKNOWN = DIRECTIONS.index("other")


def direction(text: str) -> str:
    """Return a copy's direction from its name (`Memcpy HtoD (Pageable -> Device)`)."""
    match = DIRECTION.search(text)
    if match is None:
        return "other"
    origin, target = (part[0].upper().replace("M", "H") for part in match.groups() if part)
    name = f"{origin}to{target}"
    return name if name in DIRECTIONS else "other"


def build(source: Source, events: pd.DataFrame) -> pd.DataFrame:
    """Return the copies among the device events, in `SCHEMA` columns."""
    copies = events[events["kind"] == int(Kind.COPY)].reset_index(drop=True)
    rows = copies["event"].to_numpy()
    texts = [copies["name"].array, *(source.label(key, rows) for key in DIRECTION_ARGUMENTS)]
    codes = _directions(texts[0])
    for column in texts[1:]:
        codes = np.where(codes == UNKNOWN, _directions(column), codes)
    return copies.assign(
        direction=pd.Categorical.from_codes(codes, categories=pd.Index(DIRECTIONS, dtype=object)),
        is_pageable=name_mask(copies["name"], lambda name: "Pageable" in name),
        bytes=moved_bytes(source, rows),
    )


def moved_bytes(source: Source, rows: Ints) -> Floats:
    """Return the bytes that each of these events copied; NaN if unknown."""
    size = _recorded_bytes(source, rows)
    unknown = np.flatnonzero(np.isnan(size))
    if len(unknown):
        size[unknown] = _bytes_of_calls(source, rows[unknown])
    return size


def _recorded_bytes(source: Source, rows: Ints) -> Floats:
    size = np.full(len(rows), np.nan)
    for key in SIZES:
        size = np.where(np.isnan(size), source.number(key, rows), size)
    return np.where((size >= 0) & (size < MOST_BYTES), size, np.nan)


def _bytes_of_calls(source: Source, rows: Ints) -> Floats:
    """Return the bytes of the calls that launched these events: ROCm's copies lack them.

    Several events of one call get NaN, since none of them copied all of its bytes.
    """
    calls = source.rows(Kind.RUNTIME_CALL)
    size = _recorded_bytes(source, calls)
    calls, size = calls[~np.isnan(size)], size[~np.isnan(size)]
    correlation = source.correlation(rows)
    size_of = pd.Series(size, index=source.correlation(calls))
    size_of = size_of[~size_of.index.duplicated()]
    sizes = np.array(size_of.reindex(correlation), dtype=np.float64)
    sizes[pd.Series(correlation).duplicated(keep=False).to_numpy() | (correlation < 0)] = np.nan
    return sizes


def _directions(texts: pd.Categorical) -> Ints:
    """Return the index of the direction of each text in `DIRECTIONS`."""
    codes = [DIRECTIONS.index(direction(str(text))) for text in texts.categories]
    return np.asarray(np.array([*codes, UNKNOWN], dtype=np.int64)[texts.codes])


public_table(
    "copy-events",
    SCHEMA,
    "One row per copy between memories: its time, direction and bytes.",
)(attrgetter("copies"))
