"""Looking for damage costs little beside making the frames that are looked at."""

import dataclasses
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from loading import ROOT
from stepscope import ingest
from stepscope.analyses.core.links import links
from stepscope.analyses.health import health
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.ingest import ArgumentColumn, EventColumns
from stepscope.ingest.columns import CODES, Plain
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.trace import Trace, trace_from_columns

pytestmark = pytest.mark.slow

SAMPLE = ROOT / "sample_logs/synthetic_tiny_batch/fault"
TIMES = 100
"""1.6 million events."""
MOST_OF_FRAMES = 0.3
"""On two cores: 0.03 s of 0.5 s."""


def repeated(columns: EventColumns) -> EventColumns:
    """The recording again and again, each time later and with launches of its own."""
    own = columns.start_ns[columns.start_ns != NO_TIME]
    period = int(own.max() - own.min()) + 1_000_000
    starts = (
        np.where(columns.start_ns == NO_TIME, NO_TIME, columns.start_ns + period * n)
        for n in range(TIMES)
    )
    changed: dict[str, Any] = {
        name: np.tile(getattr(columns, name), TIMES)
        for name in (*CODES, "duration_ns", "offset_bytes")
    }
    changed["start_ns"] = np.concatenate(list(starts))
    changed["arguments"] = {
        key: _argument(key, column, len(columns)) for key, column in columns.arguments.items()
    }
    return dataclasses.replace(columns, **changed)


def _argument(key: str, column: ArgumentColumn, event_count: int) -> ArgumentColumn:
    rows = _shifted(column.rows, event_count).astype(np.int32)
    values = column.values
    is_launch = key == "correlation"
    values = _shifted(values, int(values.max()) + 1) if is_launch else np.tile(values, TIMES)
    return ArgumentColumn(rows=rows, stored=Plain(values=values, texts=column.texts))


def _shifted(values: NDArray[np.integer[Any]], by: int) -> NDArray[np.int64]:
    parts: Iterable[NDArray[np.int64]] = (values.astype(np.int64) + by * n for n in range(TIMES))
    return np.concatenate(list(parts))


def seconds_of(trace: Trace) -> tuple[float, float]:
    """How long the frames take, and then the checks."""
    begun = time.process_time()
    _ = trace.device_events, trace.runtime_calls, trace.host_calls, trace.python_calls, trace.memory
    links(trace)
    step_breakdown(trace)
    made = time.process_time()
    items = health(trace)
    ended = time.process_time()
    assert {item.kind for item in items if item.severity != "info"} == {"repeated-steps"}
    return made - begun, ended - made


def test_all_checks_together_cost_less_than_a_third_of_the_frames() -> None:
    columns = repeated(ingest.read(str(next(SAMPLE.glob("*.json.gz")))))
    assert len(columns) > 1_600_000
    frames, checks = min(
        (seconds_of(trace_from_columns(columns, worker="worker")) for _ in range(3)),
        key=lambda seconds: seconds[1] / seconds[0],
    )
    assert checks < MOST_OF_FRAMES * frames, (frames, checks)
