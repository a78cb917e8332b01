"""Transfer of traces between processes: their columns and small results."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline import prefetch
from stepscope.dialects import all_dialects
from stepscope.ingest import EventColumns
from stepscope.model.execution_trace_link import ExecutionTraceLink
from stepscope.model.frames.source import Source
from stepscope.model.trace import Trace
from stepscope.readers import memory_size

SMALL_BYTES = 1 << 20
"""Maximum size of results to send: tables are smaller; frames are recomputed on demand."""
SENT_WHOLE = prefetch.KEYS
"""Results of the timeline, sent whatever their size: sending raw arrays is faster than recomputing
them.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedTrace:
    """A `Trace` without the parts that can be recomputed."""

    worker: str
    span: str
    id: str
    path: str
    execution_trace: ExecutionTraceLink | None
    columns: EventColumns
    kinds: NDArray[np.int8]
    dialect: str
    results: Mapping[str, bytes]
    whole: Mapping[str, Any]
    """Results of `SENT_WHOLE`."""


def pack(trace: Trace) -> PackedTrace:
    """Return a trace in the form in which it is sent."""
    return PackedTrace(
        worker=trace.worker,
        span=trace.span,
        id=trace.id,
        path=trace.path,
        execution_trace=trace.execution_trace,
        columns=_undecoded(trace.columns),
        kinds=trace.source.kinds,
        dialect=trace.dialect.name,
        results=_results(trace),
        whole={key: trace.results[key] for key in SENT_WHOLE if key in trace.results},
    )


def unpack(packed: PackedTrace) -> Trace:
    """Return the trace that was packed."""
    dialect = all_dialects()[packed.dialect]
    results = {name: pickle.loads(value) for name, value in packed.results.items()}  # noqa: S301
    return Trace(
        worker=packed.worker,
        span=packed.span,
        source=Source(columns=packed.columns, kinds=packed.kinds, dialect=dialect),
        id=packed.id,
        path=packed.path,
        execution_trace=packed.execution_trace,
        results={**results, **packed.whole},
    )


def _undecoded(columns: EventColumns) -> EventColumns:
    """Return columns without decoded arguments, which are decoded again on demand."""
    arguments = {
        key: replace(column, stored=replace(column.stored))  # type: ignore[type-var]
        for key, column in columns.arguments.items()
    }
    return replace(columns, arguments=arguments)


def _results(trace: Trace) -> dict[str, Any]:
    results = {}
    for name, result in memory_size.small_results(trace, SMALL_BYTES).items():
        try:
            results[name] = pickle.dumps(result, protocol=5)
        except (pickle.PicklingError, TypeError, AttributeError):  # it can be recomputed
            continue
    return results
