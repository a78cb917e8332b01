"""Conversion of host frames to the spans of `call_tree`."""

import pandas as pd

from stepscope.model.call_tree import Spans


def spans(frame: pd.DataFrame) -> Spans:
    """Return a host frame's threads, starts and ends; threads are its codes."""
    return (
        frame["thread"].cat.codes.to_numpy(),
        frame["start_ns"].to_numpy(),
        frame["end_ns"].to_numpy(),
    )
