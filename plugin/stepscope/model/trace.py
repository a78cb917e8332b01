"""`Trace` is one worker's recording; `Run` is all recordings of a folder."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import pandas as pd

from stepscope.dialects import Dialect
from stepscope.ingest import EventColumns
from stepscope.model.frames import (
    collectives,
    copies,
    counters,
    device_annotations,
    device_events,
    host_calls,
    kernels,
    memory_events,
    python_calls,
    runtime_calls,
    steps,
    synchronization_events,
)
from stepscope.model.frames.source import Source, source

T = TypeVar("T")
WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
"""Any of these fits 64 bits."""
TRUNCATIONS = frozenset({"truncated-gzip", "truncated-json"})
"""Incidents of a file that ends in the middle."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Trace:
    """One recording of one worker: its frames, built when first asked for.

    Each frame's columns are documented in `stepscope.model.frames.<name>.SCHEMA`.
    """

    worker: str
    span: str
    source: Source
    id: str = ""
    path: str = ""
    results: dict[str, Any] = field(default_factory=dict, repr=False)
    """What was computed of it, by the function's name; it may be let go of at any time."""

    @property
    def columns(self) -> EventColumns:
        """Every event as the file has it."""
        return self.source.columns

    @property
    def dialect(self) -> Dialect:
        """The vendor's vocabulary."""
        return self.source.dialect

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The file's top-level keys beside the events."""
        return self.source.columns.metadata

    @property
    def rank(self) -> int | None:
        """The worker's place in the process group (`distributedInfo.rank`), if recorded."""
        info = self.metadata.get("distributedInfo")
        return whole_number(info.get("rank")) if isinstance(info, Mapping) else None

    @property
    def is_truncated(self) -> bool:
        """Whether the file ends in the middle; kineto writes device events last."""
        return any(incident.kind in TRUNCATIONS for incident in self.columns.incidents)

    @property
    def is_synthetic(self) -> bool:
        """Whether stepscope's synthesiser wrote the file."""
        mark = self.metadata.get("stepscope")
        return isinstance(mark, Mapping) and bool(mark.get("synthetic"))

    @property
    def host_calls(self) -> pd.DataFrame:
        """Operators and annotations, nested: see `frames.host_calls`."""
        return _host_calls(self)

    @property
    def operators(self) -> pd.DataFrame:
        """Operators (`aten::…`): the operator rows of `host_calls`."""
        return self.host_calls[self.host_calls["is_operator"]]

    @property
    def annotations(self) -> pd.DataFrame:
        """`record_function` ranges and the profiler's own: the other rows of `host_calls`."""
        return self.host_calls[~self.host_calls["is_operator"]]

    @property
    def runtime_calls(self) -> pd.DataFrame:
        """Calls into the runtime and driver: see `frames.runtime_calls`."""
        return _runtime_calls(self)

    @property
    def device_events(self) -> pd.DataFrame:
        """Kernels, copies and memory sets: see `frames.device_events`."""
        return _device_events(self)

    @property
    def device_annotations(self) -> pd.DataFrame:
        """Annotations as they lie on the devices: see `frames.device_annotations`."""
        return _device_annotations(self)

    @property
    def kernels(self) -> pd.DataFrame:
        """Kernels: see `frames.kernels`."""
        return _kernels(self)

    @property
    def collectives(self) -> pd.DataFrame:
        """Collectives with their kernels, message and process group: see `frames.collectives`."""
        return _collectives(self)

    @property
    def copies(self) -> pd.DataFrame:
        """Copies: see `frames.copies`."""
        return _copies(self)

    @property
    def counters(self) -> pd.DataFrame:
        """Samples of counters: see `frames.counters`."""
        return _counters(self)

    @property
    def memory(self) -> pd.DataFrame:
        """Allocations and releases: see `frames.memory_events`."""
        return _memory(self)

    @property
    def python_calls(self) -> pd.DataFrame:
        """Python functions: see `frames.python_calls`."""
        return _python_calls(self)

    @property
    def steps(self) -> pd.DataFrame:
        """Steps of the loop: see `frames.steps`."""
        return _steps(self)

    @property
    def synchronization_events(self) -> pd.DataFrame:
        """Records of what waited for what: see `frames.synchronization_events`."""
        return _synchronization_events(self)

    def __len__(self) -> int:
        """Return how many events the file holds."""
        return len(self.columns)


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """All recordings of one folder."""

    name: str
    workers: tuple[Trace, ...] = field(default=())


def whole_number(value: object) -> int | None:
    """Return a whole number of a file's header, written as number or text; None where it is none.

    What 64 bits do not hold counts as none: nothing that is numbered so has such a number.
    """
    return int(text) if WHOLE_NUMBER.fullmatch(text := str(value)) else None


def trace_from_columns(
    columns: EventColumns, *, worker: str, span: str = "1", identity: str = "", path: str = ""
) -> Trace:
    """Return the recording whose events these are."""
    return Trace(worker=worker, span=span, source=source(columns), id=identity, path=path)


def computed(analysis: Callable[[Trace], T]) -> Callable[[Trace], T]:
    """Let an analysis be called anywhere, and run once for as long as the trace keeps its result.

    Two threads may compute the same at once, which is wasteful but right.
    """
    key = f"{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def once(trace: Trace) -> T:
        try:
            result: T = trace.results[key]
        except KeyError:
            result = trace.results[key] = analysis(trace)
        return result

    return once


@computed
def _host_calls(trace: Trace) -> pd.DataFrame:
    return host_calls.build(trace.source)


@computed
def _runtime_calls(trace: Trace) -> pd.DataFrame:
    return runtime_calls.build(trace.source)


@computed
def _device_events(trace: Trace) -> pd.DataFrame:
    return device_events.build(trace.source)


@computed
def _device_annotations(trace: Trace) -> pd.DataFrame:
    return device_annotations.build(trace.source)


@computed
def _kernels(trace: Trace) -> pd.DataFrame:
    return kernels.build(trace.source, trace.device_events)


@computed
def _collectives(trace: Trace) -> pd.DataFrame:
    return collectives.build(
        trace.source, trace.device_events, trace.host_calls, trace.runtime_calls
    )


@computed
def _copies(trace: Trace) -> pd.DataFrame:
    return copies.build(trace.source, trace.device_events)


@computed
def _counters(trace: Trace) -> pd.DataFrame:
    return counters.build(trace.source)


@computed
def _memory(trace: Trace) -> pd.DataFrame:
    return memory_events.build(trace.source)


@computed
def _python_calls(trace: Trace) -> pd.DataFrame:
    return python_calls.build(trace.source)


@computed
def _synchronization_events(trace: Trace) -> pd.DataFrame:
    return synchronization_events.build(trace.source)


@computed
def _steps(trace: Trace) -> pd.DataFrame:
    return steps.build(trace.host_calls)
