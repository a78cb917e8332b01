"""Tables as files: each trace's rows are written by its reader, then joined.

A table of traces begins with the columns in `LEADING`, a table of runs with `run`. Only one trace's
rows are in memory at a time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import union_categoricals

from stepscope._version import __version__
from stepscope.base import formatting, host_limits
from stepscope.base.errors import MissingDataError, UnreadableError, as_unreadable
from stepscope.model.frames import Column, Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.model.trace import Trace
from stepscope.render import table_csv, table_json, table_parquet
from stepscope.render.table_file import TableHeader, Withheld
from stepscope.storage.output_files import atomic_output
from stepscope.tables import find

Form = Literal["csv", "json", "parquet"]
LEADING: Schema = (
    Column("run", "category", "text", "The run: the folder of the trace."),
    Column("worker", "category", "text", "The worker, by its file's name."),
    Column("span", "category", "text", "Number of the worker's trace, from 1."),
    Column("rank", "Int64", "id", "The worker's rank (`distributedInfo`); missing if unknown."),
)
"""Columns that identify a trace, unless the table has them itself."""
MOST_BYTES = 600 * 2**20
"""Resident memory from which on results are released."""
MOST_SENT_BYTES = 2**30
"""Most bytes of one trace's rows of a table from another machine."""
MOST_EXACT = 2.0**53
"""Below it a float holds every integer."""


class Writer(Protocol):
    """Module of `render` that writes tables in one form."""

    def write_part(self, frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
        """Write one trace's rows."""

    def join(self, about: TableHeader, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
        """Write the whole table; each part has rows."""


WRITERS: Mapping[Form, Writer] = MappingProxyType(
    {"csv": table_csv, "json": table_json, "parquet": table_parquet}
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """The tables to write of one trace, and the folder for their rows, a file per table."""

    tables: tuple[str, ...]
    form: Form
    run: str
    folder: str
    is_sent: bool = False
    """Whether the folder is on another machine: the result then holds the rows."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One trace's rows of a table in a file."""

    path: str
    row_count: int


@dataclass(frozen=True, kw_only=True)
class SentRows:
    """One trace's rows of a table from another machine; `name` is the file to write."""

    name: str
    content: bytes
    row_count: int


@dataclass(frozen=True, kw_only=True)
class RunPart:
    """Summary of one trace for a table of its run."""

    value: Any


@dataclass(frozen=True, kw_only=True)
class FailedTable:
    """A table that failed for one trace with an unexpected error."""

    problem: UnreadableError


TableResult = Rows | SentRows | RunPart | Withheld | FailedTable


def leading(table: AnyTable) -> Schema:
    """Return the leading columns of a table."""
    names = {column.name for column in table.schema}
    before = LEADING[:1] if isinstance(table, RunTable) else LEADING
    return tuple(column for column in before if column.name not in names)


def schema_of(table: AnyTable) -> Schema:
    """Return all columns of a table of several traces."""
    return leading(table) + table.schema


def labelled(frame: pd.DataFrame, table: AnyTable, run: str, trace: Trace | None) -> pd.DataFrame:
    """Return rows of a trace or run with the leading columns."""
    values: dict[str, Any] = {"run": run}
    if trace is not None:
        values |= {"worker": trace.worker, "span": trace.span, "rank": trace.rank}
    before = {column.name: _repeated(values[column.name], len(frame)) for column in leading(table)}
    rows = frame.reset_index(drop=True)
    return pd.DataFrame(before | {str(name): rows[name] for name in rows.columns})


def _repeated(value: str | int | None, count: int) -> Any:  # noqa: ANN401 (pandas' arrays)
    if isinstance(value, str):
        codes = np.zeros(count, dtype=np.int8)
        return pd.Categorical.from_codes(codes, categories=pd.Index([value], dtype=object))
    is_missing = np.full(count, value is None)
    return pd.arrays.IntegerArray(np.full(count, value or 0, dtype=np.int64), is_missing)


def with_whole_ids(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return a frame with integer ids, also where they were floats because of NaN."""
    ids = [c.name for c in schema if c.unit == "id" and c.dtype == "float64"]
    return frame.assign(**{name: _whole(frame[name].to_numpy()) for name in ids})


def _whole(values: NDArray[np.float64]) -> Any:  # noqa: ANN401 (pandas' arrays)
    is_number = np.isfinite(values)
    ids = np.where(is_number, values, 0.0)
    if (ids % 1).any() or (np.abs(ids) >= MOST_EXACT).any():
        return values
    return pd.arrays.IntegerArray(ids.astype(np.int64), ~is_number)


def stacked(frames: Sequence[pd.DataFrame], schema: Schema) -> pd.DataFrame:
    """Return the frames of several traces as one, with the union of categories."""
    if not frames:
        return pd.DataFrame({c.name: pd.Series([], dtype=c.dtype) for c in schema})
    columns = {c.name: [frame[c.name] for frame in frames] for c in schema}
    return pd.DataFrame({name: _stacked(parts) for name, parts in columns.items()})


def _stacked(parts: Sequence[pd.Series]) -> Any:  # noqa: ANN401
    first = parts[0].dtype
    if isinstance(first, pd.CategoricalDtype):
        return union_categoricals(list(parts))
    if pd.api.types.is_extension_array_dtype(first):
        return pd.concat(list(parts), ignore_index=True)
    values = np.concatenate([part.to_numpy() for part in parts])
    return pd.Series(values, dtype=first)


def tabulate(trace: Trace, request: Request) -> dict[str, TableResult]:
    """Write a trace's rows of each table; a table that it cannot have does not stop the others.

    Results that the trace caches are released when the process has grown beyond `MOST_BYTES`.
    """
    results = {}
    for name in request.tables:
        results[name] = _table_result(trace, name, request)
        if host_limits.resident_bytes() > MOST_BYTES:
            trace.release_results()
            host_limits.release_freed_memory()
    return results


def _table_result(trace: Trace, name: str, request: Request) -> TableResult:
    table = find(name)
    try:
        if isinstance(table, RunTable):
            return RunPart(value=table.part(trace))
        frame = labelled(table.build(trace), table, request.run, trace)
        return _rows(frame, name, request, trace)
    except MissingDataError as missing:
        return Withheld(
            run=request.run,
            worker=trace.worker,
            span=trace.span,
            reason=missing.reason,
            remedy=missing.remedy,
        )
    except Exception as error:  # a bug in one table must not stop the others
        return FailedTable(problem=as_unreadable(trace.path or trace.worker, error))


def _written(frame: pd.DataFrame, table: AnyTable, form: Form, path: Path) -> Rows:
    with path.open("wb") as sink:
        _write_part(frame, table, form, sink)
    return Rows(path=str(path), row_count=len(frame))


def _write_part(frame: pd.DataFrame, table: AnyTable, form: Form, sink: BinaryIO) -> None:
    schema = schema_of(table)
    WRITERS[form].write_part(with_whole_ids(frame, schema), schema, sink)


def _rows(frame: pd.DataFrame, name: str, request: Request, trace: Trace) -> TableResult:
    """Write a trace's rows to the folder, or return them for another machine."""
    table, file_name = find(name), f"{name}.{trace.id}"
    if not request.is_sent:
        return _written(frame, table, request.form, Path(request.folder, file_name))
    sink = BytesIO()
    _write_part(frame, table, request.form, sink)
    if (size := sink.tell()) > MOST_SENT_BYTES:
        message = f"The rows of {name} take {formatting.size(size)}: too much to send."
        remedy = "Export them without --scheduler, or select another table."
        return FailedTable(problem=UnreadableError(trace.path or trace.worker, message, remedy))
    return SentRows(name=file_name, content=sink.getvalue(), row_count=len(frame))


def store_sent_rows(results: Mapping[str, TableResult], folder: str) -> dict[str, TableResult]:
    """Write rows that came from another machine to the folder."""
    return {name: _stored(result, folder) for name, result in results.items()}


def _stored(result: TableResult, folder: str) -> TableResult:
    if not isinstance(result, SentRows):
        return result
    path = Path(folder, Path(result.name).name)
    try:
        path.write_bytes(result.content)
    except OSError as error:  # such as a full disk
        return FailedTable(problem=as_unreadable(str(path), error))
    return Rows(path=str(path), row_count=result.row_count)


@dataclass(frozen=True, kw_only=True)
class GatheredTable:
    """One table of all traces, ready to be joined."""

    name: str
    rows: tuple[Rows, ...]
    withheld: tuple[Withheld, ...]
    failed: tuple[UnreadableError, ...]


def gather(
    name: str, given: Sequence[tuple[str, TableResult]], form: Form, folder: str
) -> GatheredTable:
    """Return a table of all traces' results; each comes with its run."""
    results = [result for _, result in given]
    table = find(name)
    if isinstance(table, RunTable):
        parts: dict[str, list[Any]] = {}
        for run, result in given:
            if isinstance(result, RunPart):
                parts.setdefault(run, []).append(result.value)
        results = [result for result in results if not isinstance(result, RunPart)]
        for index, (run, values) in enumerate(parts.items()):
            path = Path(folder, f"{name}.{index}")
            results.append(_built(table, run, values, (form, path)))
    return GatheredTable(
        name=name,
        rows=tuple(result for result in results if isinstance(result, Rows)),
        withheld=tuple(result for result in results if isinstance(result, Withheld)),
        failed=tuple(result.problem for result in results if isinstance(result, FailedTable)),
    )


def _built(
    table: RunTable[Any], run: str, parts: Sequence[Any], to: tuple[Form, Path]
) -> TableResult:
    form, path = to
    try:
        return _written(labelled(table.build(parts), table, run, None), table, form, path)
    except MissingDataError as missing:
        return Withheld(run=run, worker="", span="", reason=missing.reason, remedy=missing.remedy)
    except Exception as error:
        return FailedTable(problem=as_unreadable(run, error))


def write(table: GatheredTable, form: Form, sink: BinaryIO) -> None:
    """Write a whole table."""
    public = find(table.name)
    header = TableHeader(
        table=table.name,
        title=public.title,
        meaning=public.meaning,
        schema=schema_of(public),
        version=__version__,
        withheld=table.withheld,
    )
    paths = [rows.path for rows in table.rows if rows.row_count]
    WRITERS[form].join(header, _opened(paths), sink)


def _opened(paths: Iterable[str]) -> Iterator[BinaryIO]:
    for path in paths:
        with Path(path).open("rb") as part:
            yield part


def write_file(table: GatheredTable, form: Form, path: Path) -> None:
    """Write a whole table to a file atomically; compressed where the name ends in .gz."""
    with atomic_output(str(path)) as sink:
        write(table, form, sink)
