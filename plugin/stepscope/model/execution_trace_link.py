"""Input shapes, types and values from an execution trace, for a trace recorded without shapes.

A call has the same id in both files of a process: `rf_id` in the execution trace, `Record function
id` (older torch: `External id`) in the trace. Calls are linked only if their names agree too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.dialects import Kind
from stepscope.ingest import ArgumentColumn, EventColumns, execution_traces
from stepscope.ingest.columns import Plain
from stepscope.ingest.execution_traces import NodeInputs
from stepscope.model.arrays import Ints
from stepscope.model.frames.source import Source, source
from stepscope.storage.discover import TraceFile, other_json_files

ID_ARGUMENTS = ("Record function id", "External id")
SHAPE_ARGUMENTS = ("Input Dims", "Input dims", "Input type")
LEAST_AGREEMENT = 0.99
"""Fraction of the calls with a common id whose names agree; the names of damaged events differ."""
MOST_CANDIDATES = 32
"""Number of files whose first bytes are read."""
RECORD_BOTH = (
    "Record both in one run: torch.profiler.profile(..., execution_trace_observer=observer)."
)
NAME_FILES = "Begin the execution trace's name with the worker's: <worker>.et.json."


@dataclass(frozen=True, kw_only=True)
class ExecutionTraceLink:
    """The execution trace in a trace's folder, and whether its calls were linked."""

    file_name: str
    linked_count: int = 0
    """Number of the trace's calls that are in it."""
    call_count: int = 0
    """Number of calls of the trace that have an id."""
    lost_count: int = 0
    """Number of its nodes that are not valid JSON."""
    problem: str = ""
    """Why nothing was linked, as a clause."""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """The events of a trace with an id."""

    events: Ints
    identities: list[int]
    names: list[str]


def with_execution_trace(
    file: TraceFile, columns: EventColumns
) -> tuple[EventColumns, ExecutionTraceLink | None]:
    """Return columns with the inputs from an execution trace in the file's folder.

    None: there is no execution trace, or the trace has shapes.
    """
    candidates = tuple(_candidates(file)) if _lacks_shapes(columns) else ()
    if not candidates:
        return columns, None
    classified = source(columns)
    processes = _processes(classified)
    paths = [path for path, process in candidates if process in processes]
    if not paths:
        return columns, ExecutionTraceLink(
            file_name=urls.name(candidates[0][0]),
            problem="it is of another process than the trace",
            remedy=RECORD_BOTH,
        )
    calls = _calls(classified)
    attempts = [_attempt(path, calls) for path in paths if _is_named(path, file)]
    attempts = attempts or [_attempt(path, calls) for path in paths]
    agreeing = [attempt for attempt in attempts if not attempt[0].problem]
    link, inputs = (agreeing or attempts)[0]
    if len(agreeing) > 1:
        names = " and ".join(other.file_name for other, _ in agreeing)
        problem = f"the calls of {names} agree with the trace's equally well"
        link = replace(link, linked_count=0, problem=problem, remedy=NAME_FILES)
    return columns if link.problem else _with_inputs(columns, calls.events, inputs), link


def _lacks_shapes(columns: EventColumns) -> bool:
    """Return whether a trace has calls with ids, and no input shapes."""
    has = columns.arguments.keys()
    return has.isdisjoint(SHAPE_ARGUMENTS) and not has.isdisjoint(ID_ARGUMENTS)


def _is_named(path: str, file: TraceFile) -> bool:
    """Return whether a file's name begins with the trace's worker."""
    return urls.name(path).startswith(f"{file.worker}.")


def _candidates(file: TraceFile) -> Iterator[tuple[str, int]]:
    """Yield the execution traces in a trace's folder with their processes."""
    try:
        paths = other_json_files(file.folder)
    except (OSError, UnreadableError):
        return
    paths.sort(key=lambda path: (not _is_named(path, file), path))
    for path in [path for path in paths if path != file.path][:MOST_CANDIDATES]:
        try:
            process = execution_traces.process_of(path)
        except UnreadableError:
            continue
        if process is not None:
            yield path, process


def _processes(classified: Source) -> frozenset[int]:
    """Return the processes of the host's calls."""
    codes = np.unique(classified.columns.pid[classified.kinds == int(Kind.OPERATOR)])
    texts = [classified.columns.strings[code] for code in codes.tolist() if code >= 0]
    return frozenset(int(text) for text in texts if text.isdecimal())


def _calls(classified: Source) -> _Calls:
    events = np.sort(classified.rows(Kind.OPERATOR, Kind.ANNOTATION))
    identity = classified.whole(ID_ARGUMENTS[0], events, *ID_ARGUMENTS[1:])
    events, identities = events[identity > 0], identity[identity > 0].tolist()
    strings = (*classified.columns.strings, "")
    names = [strings[code] for code in classified.columns.name[events].tolist()]
    return _Calls(events=events, identities=identities, names=names)


def _attempt(path: str, calls: _Calls) -> tuple[ExecutionTraceLink, list[NodeInputs | None]]:
    """Return the inputs of the trace's calls in one execution trace, None where it has none."""
    link = ExecutionTraceLink(file_name=urls.name(path), call_count=len(calls.events))
    try:
        execution_trace = execution_traces.read(path)
    except UnreadableError as error:
        problem = error.message.rstrip(".")
        return replace(link, problem=problem[:1].lower() + problem[1:], remedy=error.remedy), []
    nodes = [execution_trace.calls.get(identity) for identity in calls.identities]
    common = [(node, name) for node, name in zip(nodes, calls.names, strict=True) if node]
    differing = [(node, name) for node, name in common if node.name != name]
    if not common:
        problem = "no call of the trace has an id that is in it"
        return replace(link, problem=problem, remedy=RECORD_BOTH), []
    if len(differing) > (1 - LEAST_AGREEMENT) * len(common):
        node, name = differing[0]
        problem = (
            f"its ids are of other calls: of {len(common):,} common ids, {len(differing):,} have "
            f"different names, such as {name} in the trace and {node.name} in it"
        )
        return replace(link, problem=problem, remedy=RECORD_BOTH), []
    inputs = [
        node if node and node.dims and node.name == name else None
        for node, name in zip(nodes, calls.names, strict=True)
    ]
    return replace(
        link,
        linked_count=len(common) - len(differing),
        lost_count=execution_trace.lost_count,
    ), inputs


def _with_inputs(
    columns: EventColumns, events: Ints, inputs: Sequence[NodeInputs | None]
) -> EventColumns:
    """Return columns with the arguments that kineto writes with `record_shapes=True`."""
    linked = [node for node in inputs if node is not None]
    rows = events[[node is not None for node in inputs]].astype(np.int32)
    arguments = {
        "Input Dims": [node.dims for node in linked],
        "Input type": [node.types for node in linked],
        "Concrete Inputs": [node.values for node in linked],
    }
    added = {key: _argument_column(rows, texts) for key, texts in arguments.items()}
    return replace(columns, arguments={**columns.arguments, **added})


def _argument_column(rows: NDArray[np.int32], texts: Sequence[str]) -> ArgumentColumn:
    codes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    values = np.array([codes[text] for text in texts], dtype=np.int32)
    return ArgumentColumn(rows=rows, stored=Plain(values=values, texts=tuple(codes)))
