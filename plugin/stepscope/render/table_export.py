"""Tables as files: each recording's rows are written where it was read, then put together.

A table of recordings begins with the columns in `LEADING`; one of whole runs with `run`. Nothing
but one recording's rows is in memory at a time, however many files there are.
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
from stepscope.base import formatting
from stepscope.base.errors import MissingDataError, UnreadableError, as_unreadable
from stepscope.model.frames import Column, Schema
from stepscope.model.table import AnyTable, RunTable
from stepscope.model.trace import Trace
from stepscope.render import table_csv, table_json, table_parquet
from stepscope.render.table_file import About, Withheld
from stepscope.storage.output_files import atomic_output
from stepscope.tables import find

Form = Literal["csv", "json", "parquet"]
LEADING: Schema = (
    Column("run", "category", "text", "The run: the folder that the recording lies in."),
    Column("worker", "category", "text", "The worker, by its file's name."),
    Column("span", "category", "text", "Which of the worker's recordings, from 1."),
    Column("rank", "Int64", "id", "The worker's rank (`distributedInfo`); missing if unknown."),
)
"""What tells recordings apart; a column that a table has itself is left to it."""

MOST_SENT_BYTES = 2**30
"""Of one recording's rows of a table, from another machine."""
MOST_EXACT = 2.0**53
"""Below it a float holds every whole number."""


class Writer(Protocol):
    """Writes tables in one form: a module of `render`."""

    def write_part(self, frame: pd.DataFrame, schema: Schema, sink: BinaryIO) -> None:
        """Write one recording's rows."""

    def join(self, about: About, parts: Iterable[BinaryIO], sink: BinaryIO) -> None:
        """Write the whole table; each part has rows."""


WRITERS: Mapping[Form, Writer] = MappingProxyType(
    {"csv": table_csv, "json": table_json, "parquet": table_parquet}
)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What to write of one recording, and where."""

    tables: tuple[str, ...]
    form: Form
    run: str
    folder: str
    """Where the rows go, a file a table."""
    is_sent: bool = False
    """The folder is on another machine: the rows are part of the answer instead."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One recording's rows of a table, written."""

    path: str
    row_count: int


@dataclass(frozen=True, kw_only=True)
class Sent:
    """One recording's rows of a table, on their way from another machine."""

    name: str
    """Of the file that they go to."""
    content: bytes
    row_count: int


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one recording says for a table of its run."""

    value: Any


@dataclass(frozen=True, kw_only=True)
class Failed:
    """A table that could not be made of one recording, for a reason that nobody foresaw."""

    problem: UnreadableError


Given = Rows | Sent | Part | Withheld | Failed


def leading(table: AnyTable) -> Schema:
    """Return the columns that go before a table's own."""
    own = {column.name for column in table.schema}
    before = LEADING[:1] if isinstance(table, RunTable) else LEADING
    return tuple(column for column in before if column.name not in own)


def schema_of(table: AnyTable) -> Schema:
    """Return all columns of a table of several recordings."""
    return leading(table) + table.schema


def labelled(frame: pd.DataFrame, table: AnyTable, run: str, trace: Trace | None) -> pd.DataFrame:
    """Return a recording's rows, or a run's, with the columns that tell where they are from."""
    values: dict[str, Any] = {"run": run}
    if trace is not None:
        values |= {"worker": trace.worker, "span": trace.span, "rank": trace.rank}
    before = {column.name: _repeated(values[column.name], len(frame)) for column in leading(table)}
    rows = frame.reset_index(drop=True)
    own = {str(name): rows[name] for name in rows.columns}
    return pd.DataFrame(before | own)


def _repeated(value: str | int | None, count: int) -> Any:  # noqa: ANN401 (pandas' arrays)
    if isinstance(value, str):
        codes = np.zeros(count, dtype=np.int8)
        return pd.Categorical.from_codes(codes, categories=pd.Index([value], dtype=object))
    is_missing = np.full(count, value is None)
    return pd.arrays.IntegerArray(np.full(count, value or 0, dtype=np.int64), is_missing)


def with_whole_ids(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Return a frame whose ids are whole numbers, also those that had to be floats to hold NaN."""
    ids = [c.name for c in schema if c.unit == "id" and c.dtype == "float64"]
    return frame.assign(**{name: _whole(frame[name].to_numpy()) for name in ids})


def _whole(values: NDArray[np.float64]) -> Any:  # noqa: ANN401 (pandas' arrays)
    is_known = np.isfinite(values)
    known = np.where(is_known, values, 0.0)
    if (known % 1).any() or (np.abs(known) >= MOST_EXACT).any():
        return values
    return pd.arrays.IntegerArray(known.astype(np.int64), ~is_known)


def stacked(frames: Sequence[pd.DataFrame], schema: Schema) -> pd.DataFrame:
    """Return the frames of several recordings as one; categories are those of all."""
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


def tabulate(trace: Trace, request: Request) -> dict[str, Given]:
    """Write what a recording has of each table; a table that it cannot have costs no other."""
    return {name: _given(trace, name, request) for name in request.tables}


def _given(trace: Trace, name: str, request: Request) -> Given:
    table = find(name)
    try:
        if isinstance(table, RunTable):
            return Part(value=table.part(trace))
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
    except Exception as error:  # a bug in one table must not cost the others
        return Failed(problem=as_unreadable(trace.path or trace.worker, error))


def _written(frame: pd.DataFrame, table: AnyTable, form: Form, path: Path) -> Rows:
    with path.open("wb") as sink:
        _write_part(frame, table, form, sink)
    return Rows(path=str(path), row_count=len(frame))


def _write_part(frame: pd.DataFrame, table: AnyTable, form: Form, sink: BinaryIO) -> None:
    schema = schema_of(table)
    WRITERS[form].write_part(with_whole_ids(frame, schema), schema, sink)


def _rows(frame: pd.DataFrame, name: str, request: Request, trace: Trace) -> Given:
    """Write a recording's rows to the folder, or return them to a machine that has it."""
    table, file_name = find(name), f"{name}.{trace.id}"
    if not request.is_sent:
        return _written(frame, table, request.form, Path(request.folder, file_name))
    sink = BytesIO()
    _write_part(frame, table, request.form, sink)
    if (size := sink.tell()) > MOST_SENT_BYTES:
        message = f"Its rows of {name} take {formatting.size(size)}: too much to be sent."
        remedy = "Export them without --scheduler, or choose another table."
        return Failed(problem=UnreadableError(trace.path or trace.worker, message, remedy))
    return Sent(name=file_name, content=sink.getvalue(), row_count=len(frame))


def landed(given: Mapping[str, Given], folder: str) -> dict[str, Given]:
    """Put rows that came from another machine where those of this one are written."""
    return {name: _landed(each, folder) for name, each in given.items()}


def _landed(given: Given, folder: str) -> Given:
    if not isinstance(given, Sent):
        return given
    path = Path(folder, Path(given.name).name)
    try:
        path.write_bytes(given.content)
    except OSError as error:  # a full disk costs what does not fit
        return Failed(problem=as_unreadable(str(path), error))
    return Rows(path=str(path), row_count=given.row_count)


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """One table of all recordings, ready to be put together."""

    name: str
    rows: tuple[Rows, ...]
    withheld: tuple[Withheld, ...]
    failed: tuple[UnreadableError, ...]

    @property
    def is_there(self) -> bool:
        """Whether any recording has it."""
        return bool(self.rows)


def gathered(name: str, given: Sequence[tuple[str, Given]], form: Form, folder: str) -> Gathered:
    """Return a table of what each recording gave for it, with the run that each is of."""
    answers = [each for _, each in given]
    table = find(name)
    if isinstance(table, RunTable):
        parts: dict[str, list[Any]] = {}
        for run, each in given:
            if isinstance(each, Part):
                parts.setdefault(run, []).append(each.value)
        answers = [each for each in answers if not isinstance(each, Part)]
        for place, (run, values) in enumerate(parts.items()):
            path = Path(folder, f"{name}.{place}")
            answers.append(_built(table, run, values, (form, path)))
    return Gathered(
        name=name,
        rows=tuple(each for each in answers if isinstance(each, Rows)),
        withheld=tuple(each for each in answers if isinstance(each, Withheld)),
        failed=tuple(each.problem for each in answers if isinstance(each, Failed)),
    )


def _built(table: RunTable[Any], run: str, parts: Sequence[Any], to: tuple[Form, Path]) -> Given:
    form, path = to
    try:
        return _written(labelled(table.build(parts), table, run, None), table, form, path)
    except MissingDataError as missing:
        return Withheld(run=run, worker="", span="", reason=missing.reason, remedy=missing.remedy)
    except Exception as error:
        return Failed(problem=as_unreadable(run, error))


def write(table: Gathered, form: Form, sink: BinaryIO) -> None:
    """Write a whole table."""
    known = find(table.name)
    about = About(
        table=table.name,
        title=known.title,
        meaning=known.meaning,
        schema=schema_of(known),
        version=__version__,
        withheld=table.withheld,
    )
    paths = [rows.path for rows in table.rows if rows.row_count]
    WRITERS[form].join(about, _opened(paths), sink)


def _opened(paths: Iterable[str]) -> Iterator[BinaryIO]:
    for path in paths:
        with Path(path).open("rb") as part:
            yield part


def write_file(table: Gathered, form: Form, path: Path) -> None:
    """Write a whole table to a file, there once it is complete; compressed where it ends in .gz."""
    with atomic_output(str(path)) as sink:
        write(table, form, sink)
