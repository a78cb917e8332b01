"""Batch size: as recorded in the trace, else from the input shapes of the first layer."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.settings.recorded_settings import (
    RECORDED,
    common_value,
    recorded_settings,
    used_loaders,
)
from stepscope.analyses.settings.user_metadata import hints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

FIRST_DIMENSION = {
    "aten::conv1d": (0, 3),
    "aten::conv2d": (0, 4),
    "aten::conv3d": (0, 5),
    "aten::embedding": (1, 2),
    "aten::linear": (0, 2),
}
"""Operator to (input, least dimensions): that input's first dimension is the batch."""
EMBEDDING = "aten::embedding"
IN_PARTS = "DataParallel"
"""DataParallel splits the loader's batch over the devices."""
Source = Literal["shapes", "program", "trace handler"]
ROWS_ONLY = 2
"""A linear layer's input of two dimensions may hold tokens, not samples."""


@dataclass(frozen=True, kw_only=True)
class BatchSize:
    """Size of one step's batch, with its source."""

    size: int
    operator: str
    """The operator whose input shape gives the size; empty for other sources."""
    dims: str
    """The operator's input shapes, as recorded."""
    is_certain: bool
    """False where the first dimension may be tokens, or differs from step to step."""
    step_count: int
    source: Source = "shapes"

    @property
    def source_text(self) -> str:
        """The source of the size, as a phrase to follow the number."""
        if self.source == "shapes":
            return f"first dimension of {self.operator}"
        return RECORDED if self.source == "trace handler" else "as the program states"


@computed
def batch_size(trace: Trace) -> BatchSize | None:
    """Return the batch size; None without a shape or a recorded value.

    In order of preference: the program's metadata (`hints`), the trace handler's settings, and the
    first dimension of the first convolution, embedding or linear layer on the main thread.
    """
    if (hinted := hints(trace).batch_size) is not None:
        return _given(trace, hinted, "program")
    if (recorded := _recorded(trace)) is not None:
        return _given(trace, recorded, "trace handler")
    firsts = _first_in_steps(trace, _rows_with_shapes(trace, *FIRST_DIMENSION))
    first_calls = trace.host_calls.iloc[firsts]
    named_dims = zip(first_calls["name"].tolist(), first_calls["input_dims"].tolist(), strict=True)
    batches = [batch for name, dims in named_dims if (batch := _batch(name, dims))]
    if not batches:
        return None
    (size, operator, dims, is_samples), _ = Counter(batches).most_common(1)[0]
    same = all(batch[0] == size for batch in batches)
    return BatchSize(
        size=size,
        operator=operator,
        dims=dims,
        is_certain=is_samples and same,
        step_count=len(batches),
    )


def token_count(trace: Trace) -> int | None:
    """Return the tokens of a step: elements of the first ids that it embeds, the most common count.

    None without the shapes of an embedding of ids of two dimensions or more.
    """
    firsts = trace.host_calls.iloc[_first_in_steps(trace, _rows_with_shapes(trace, EMBEDDING))]
    shapes = [_shape(dims, 1) for dims in firsts["input_dims"].tolist()]
    counts = [prod(shape) for shape in shapes if len(shape) > 1]
    return Counter(counts).most_common(1)[0][0] if counts else None


def _given(trace: Trace, size: int, source: Source) -> BatchSize:
    return BatchSize(
        size=size,
        operator="",
        dims="",
        is_certain=True,
        step_count=len(trace.steps),
        source=source,
    )


def _recorded(trace: Trace) -> int | None:
    settings = recorded_settings(trace)
    if settings.distributed.strategy == IN_PARTS:
        return None
    if settings.batch.sample_count is not None:
        return settings.batch.sample_count
    return common_value(loader.batch_size for loader in used_loaders(settings))


def _rows_with_shapes(trace: Trace, *names: str) -> np.ndarray[Any, Any]:
    """Return the rows of the main thread's calls of operators whose shapes were recorded."""
    calls = trace.host_calls
    is_named = name_mask(calls["name"], names.__contains__)
    has_dims = calls["input_dims"].cat.codes.to_numpy() >= 0
    on_main = (calls["thread"] == main_thread(trace)).to_numpy()
    return np.flatnonzero(is_named & has_dims & on_main)


def _first_in_steps(trace: Trace, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    steps = trace.steps
    if not len(steps):
        return rows[:1]
    start = trace.host_calls["start_ns"].to_numpy()[rows]
    begin, end = steps["start_ns"].to_numpy(), steps["end_ns"].to_numpy()
    index = np.searchsorted(start, begin, side="left")
    inside = (index < len(rows)) & (np.append(start, 0)[np.minimum(index, len(rows))] < end)
    return rows[index[inside]]


def _shape(dims: str, argument: int) -> list[int]:
    """Return the shape of an input; empty where it is no tensor or damaged."""
    try:
        shape = json.loads(dims)[argument]
    except (ValueError, IndexError, TypeError, KeyError, RecursionError):
        return []
    is_shape = isinstance(shape, list) and all(type(size) is int for size in shape)
    return shape if is_shape else []


@lru_cache
def _batch(name: str, dims: str) -> tuple[int, str, str, bool] | None:
    """Return batch size, operator, shapes, and whether it counts samples; None: no such shape."""
    argument, least_dimensions = FIRST_DIMENSION[name]
    shape = _shape(dims, argument)
    if len(shape) < least_dimensions:
        return None
    is_samples = not (name == "aten::linear" and len(shape) == ROWS_ONLY)
    return shape[0], name, dims, is_samples
