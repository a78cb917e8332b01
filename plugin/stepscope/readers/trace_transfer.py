"""A recording as it crosses from one process to another: its columns, and small results."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline import prefetch
from stepscope.dialects import all_dialects
from stepscope.ingest import EventColumns
from stepscope.model.frames.source import Source
from stepscope.model.trace import Trace
from stepscope.readers import memory_size

SMALL_BYTES = 1 << 20
"""Results up to this size go along: tables and answers do, frames are made again when asked for."""
SENT_WHOLE = prefetch.KEYS
"""The timeline's: arrays cross the pipe as they lie in memory, in a small part of the time that
they take to be made."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedTrace:
    """A `Trace` without what can be found again."""

    worker: str
    span: str
    id: str
    path: str
    columns: EventColumns
    kinds: NDArray[np.int8]
    dialect: str
    results: Mapping[str, bytes]
    whole: Mapping[str, Any]
    """Results that are sent whatever their size."""


def pack(trace: Trace) -> PackedTrace:
    """Return a recording as it can be sent."""
    return PackedTrace(
        worker=trace.worker,
        span=trace.span,
        id=trace.id,
        path=trace.path,
        columns=_undecoded(trace.columns),
        kinds=trace.source.kinds,
        dialect=trace.dialect.name,
        results=_results(trace),
        whole={key: trace.results[key] for key in SENT_WHOLE if key in trace.results},
    )


def unpack(sent: PackedTrace) -> Trace:
    """Return the recording that was sent."""
    dialect = all_dialects()[sent.dialect]
    return Trace(
        worker=sent.worker,
        span=sent.span,
        source=Source(columns=sent.columns, kinds=sent.kinds, dialect=dialect),
        id=sent.id,
        path=sent.path,
        results={
            **{name: pickle.loads(each) for name, each in sent.results.items()},  # noqa: S301
            **sent.whole,
        },
    )


def _undecoded(columns: EventColumns) -> EventColumns:
    """Leave out what was decoded: it is decoded again where it is asked for."""
    arguments = {
        key: replace(column, stored=replace(column.stored))  # type: ignore[type-var]
        for key, column in columns.arguments.items()
    }
    return replace(columns, arguments=arguments)


def _results(trace: Trace) -> dict[str, Any]:
    found = {}
    for name, result in memory_size.small_results(trace, SMALL_BYTES).items():
        try:
            found[name] = pickle.dumps(result, protocol=5)
        except (pickle.PicklingError, TypeError, AttributeError):  # it can be computed again
            continue
    return found
