"""Copies between memories."""

import re

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.frames import Column, Schema, device_events
from stepscope.frames.naming import named
from stepscope.frames.source import Source

SCHEMA: Schema = (
    *device_events.SCHEMA,
    Column("direction", "category", "text", "`HtoD`, `DtoH`, `DtoD`, `PtoP`, `HtoH` or `other`."),
    Column("is_pageable", "bool", "", "The host side is pageable; False where it cannot be told."),
    Column("bytes", "float64", "bytes", "Bytes copied; NaN where not recorded."),
)
DIRECTION = re.compile(
    r"(HtoD|DtoH|DtoD|PtoP|HtoH)|(HostToDevice|DeviceToHost|DeviceToDevice)", re.I
)
LONG = {"hosttodevice": "HtoD", "devicetohost": "DtoH", "devicetodevice": "DtoD"}
DIRECTIONS = ("HtoD", "DtoH", "DtoD", "PtoP", "HtoH", "other")


def direction(name: str) -> str:
    """Return a copy's direction from its name (`Memcpy HtoD (Pageable -> Device)`)."""
    match = DIRECTION.search(name)
    if match is None:
        return "other"
    return match[1] or LONG[match[2].lower()]


def build(source: Source, events: pd.DataFrame) -> pd.DataFrame:
    """Return the copies among the device events, in `SCHEMA` columns."""
    copies = events[events["kind"] == int(Kind.COPY)].reset_index(drop=True)
    rows = copies["event"].to_numpy()
    names = copies["name"].cat
    texts = [str(name) for name in names.categories]
    which = np.array([DIRECTIONS.index(direction(text)) for text in texts] + [5])
    codes = names.codes.to_numpy()
    return copies.assign(
        direction=pd.Categorical.from_codes(
            which[codes], categories=pd.Index(DIRECTIONS, dtype=object)
        ),
        is_pageable=named(copies["name"], lambda name: "Pageable" in name),
        bytes=source.number("bytes", rows),
    )
