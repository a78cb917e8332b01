"""`Trace` is the trace of one worker; `Run` is all traces of a folder."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar
from weakref import ref

import pandas as pd

from stepscope.base import interruption
from stepscope.base.plain_text import plain
from stepscope.dialects import Dialect
from stepscope.ingest import EventColumns
from stepscope.model.execution_trace_link import ExecutionTraceLink
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
"""Numbers of this length fit 64 bits."""
TRUNCATIONS = frozenset({"truncated-gzip", "truncated-json"})
"""Incidents of a truncated file."""


def computed(analysis: Callable[["Trace"], T]) -> Callable[["Trace"], T]:
    """Make an analysis run once per trace, while the trace caches its result.

    Two threads may compute the same result concurrently, which is wasteful but correct. An
    interrupted computation ends here, before its next analysis.
    """
    key = f"{analysis.__module__}.{analysis.__qualname__}"

    @wraps(analysis)
    def once(trace: "Trace") -> T:
        try:
            result: T = trace.results[key]
        except KeyError:
            interruption.check()
            result = trace.results[key] = analysis(trace)
        return result

    return once


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trace:
    """One trace of one worker: its frames, built on first access.

    Each frame's columns are documented in `stepscope.model.frames.<name>.SCHEMA`.
    """

    worker: str
    span: str
    source: Source
    id: str = ""
    path: str = ""
    execution_trace: ExecutionTraceLink | None = None
    """The execution trace in the file's folder, from which input shapes come; None: there is none,
    or the file has shapes.
    """
    results: dict[str, Any] = field(default_factory=dict)
    """Cached results, by the function's name; they may be released at any time."""
    sliced_from: "ref[Trace] | None" = field(default=None)
    """The trace of which this is a slice."""

    @property
    def whole(self) -> "Trace":
        """The trace of which this is a slice; itself if it is none."""
        whole = self.sliced_from() if self.sliced_from is not None else None
        return self if whole is None else whole

    def release_results(self) -> None:
        """Drop cached results except the frames, which all analyses need."""
        for key in [key for key in self.results if not key.startswith(f"{__name__}.")]:
            self.results.pop(key, None)

    @property
    def columns(self) -> EventColumns:
        """All events of the file."""
        return self.source.columns

    @property
    def dialect(self) -> Dialect:
        """The vendor's names."""
        return self.source.dialect

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The file's top-level keys besides the events."""
        return self.source.columns.metadata

    @property
    def rank(self) -> int | None:
        """The rank in the process group (`distributedInfo.rank`), if recorded."""
        info = self.metadata.get("distributedInfo")
        return whole_number(info.get("rank")) if isinstance(info, Mapping) else None

    @property
    def has_linked_inputs(self) -> bool:
        """Whether input shapes come from an execution trace."""
        return self.execution_trace is not None and not self.execution_trace.problem

    @property
    def is_truncated(self) -> bool:
        """Whether the file is truncated; kineto writes device events last."""
        return any(incident.kind in TRUNCATIONS for incident in self.columns.incidents)

    @property
    def is_synthetic(self) -> bool:
        """Whether stepscope's synthesiser wrote the file."""
        mark = self.metadata.get("stepscope")
        return isinstance(mark, Mapping) and bool(mark.get("synthetic"))

    @property
    @computed
    def host_calls(self) -> pd.DataFrame:
        """Operators and annotations, nested: see `frames.host_calls`."""
        return host_calls.build(self.source)

    @property
    def operators(self) -> pd.DataFrame:
        """Operators (`aten::…`): the operator rows of `host_calls`."""
        return self.host_calls[self.host_calls["is_operator"]]

    @property
    def annotations(self) -> pd.DataFrame:
        """`record_function` ranges and the profiler's own: the other rows of `host_calls`."""
        return self.host_calls[~self.host_calls["is_operator"]]

    @property
    @computed
    def runtime_calls(self) -> pd.DataFrame:
        """Calls into the runtime and driver: see `frames.runtime_calls`."""
        return runtime_calls.build(self.source)

    @property
    @computed
    def device_events(self) -> pd.DataFrame:
        """Kernels, copies and memory sets: see `frames.device_events`."""
        return device_events.build(self.source)

    @property
    @computed
    def device_annotations(self) -> pd.DataFrame:
        """Annotations on the devices: see `frames.device_annotations`."""
        return device_annotations.build(self.source)

    @property
    @computed
    def kernels(self) -> pd.DataFrame:
        """Kernels: see `frames.kernels`."""
        return kernels.build(self.source, self.device_events)

    @property
    @computed
    def collectives(self) -> pd.DataFrame:
        """Collectives with their kernels, message and process group: see `frames.collectives`."""
        return collectives.build(
            self.source, self.device_events, self.host_calls, self.runtime_calls
        )

    @property
    @computed
    def copies(self) -> pd.DataFrame:
        """Copies: see `frames.copies`."""
        return copies.build(self.source, self.device_events)

    @property
    @computed
    def counters(self) -> pd.DataFrame:
        """Samples of counters: see `frames.counters`."""
        return counters.build(self.source)

    @property
    @computed
    def memory(self) -> pd.DataFrame:
        """Allocations and releases: see `frames.memory_events`."""
        return memory_events.build(self.source)

    @property
    @computed
    def python_calls(self) -> pd.DataFrame:
        """Python functions: see `frames.python_calls`."""
        return python_calls.build(self.source)

    @property
    @computed
    def steps(self) -> pd.DataFrame:
        """Steps of the loop: see `frames.steps`."""
        return steps.build(self.host_calls)

    @property
    @computed
    def synchronization_events(self) -> pd.DataFrame:
        """Records of waits: see `frames.synchronization_events`."""
        return synchronization_events.build(self.source)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.columns)

    def __repr__(self) -> str:
        """Return one line, since the columns of a trace fill thousands."""
        name = plain(f"{self.worker}, span {self.span}")
        return f"<Trace {name}: {len(self):,} events, {self.dialect.name}>"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Run:
    """All traces of one folder."""

    name: str
    workers: tuple[Trace, ...] = field(default=())

    def __repr__(self) -> str:
        """Return the name and the number of traces."""
        number = len(self.workers)
        return f"<Run {plain(self.name)}: {number:,} trace{'' if number == 1 else 's'}>"


def whole_number(value: object) -> int | None:
    """Return a whole number from a file's header, a number or text; None for other values."""
    return int(text) if WHOLE_NUMBER.fullmatch(text := str(value)) else None


def trace_from_columns(
    columns: EventColumns, *, worker: str, span: str = "1", identity: str = "", path: str = ""
) -> Trace:
    """Return the trace with these columns."""
    return Trace(worker=worker, span=span, source=source(columns), id=identity, path=path)
