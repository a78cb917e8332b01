"""Conversion of rows to a table and back, and the newest rows of a table."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import pyarrow as pa

from stepscope.base.errors import in_one_line
from stepscope.storage import FileStamp
from stepscope.summaries.codec import Codec, codec
from stepscope.summaries.summary_rows import Row, WholeRow

log = logging.getLogger("stepscope.summaries")

T = TypeVar("T")
R = TypeVar("R")


def as_table(rows: Sequence[WholeRow]) -> pa.Table:
    """Return rows as a table, except those that cannot be stored."""

    def encoded(some: Sequence[WholeRow]) -> list[pa.Table]:
        return [pa.Table.from_struct_array(codec(WholeRow).encode(some))]

    return pa.concat_tables([encoded([])[0], *_convert(encoded, rows, "stored")])


def as_rows(table: pa.Table, of: type[Row]) -> list[Row]:
    """Return the rows of a table, except damaged ones."""
    values = codec(cast("Any", of))  # mypy thinks that a class without `__eq__` has no hash
    # Batch by batch, since concatenating them first would copy everything.
    wholes = [batch.to_struct_array() for batch in table.to_batches() if len(batch)]
    return [row for whole in wholes for row in _rows_in(whole, values)]


def _rows_in(whole: pa.StructArray, values: Codec) -> list[Row]:
    def decoded(rows: Sequence[int]) -> list[Row]:
        return values.decode(whole[rows[0] : rows[-1] + 1])

    return _convert(decoded, range(len(whole)), "used")


def newest(table: pa.Table, states: Mapping[str, FileStamp] | None = None) -> pa.Table:
    """Return the newest row of each file; with `states`, only of files in these states."""
    stamps = zip(
        *(table[name].to_pylist() for name in ("size_bytes", "modified_ns", "tag")), strict=True
    )
    latest: dict[str, tuple[int, int]] = {}
    rows = zip(table["file"].to_pylist(), table["written_ns"].to_pylist(), stamps, strict=True)
    for index, (file, written_ns, (size_bytes, modified_ns, tag)) in enumerate(rows):
        state = FileStamp(size_bytes=size_bytes, modified_ns=modified_ns, tag=tag)
        is_current = states is None or states.get(file) == state
        if is_current and (written_ns, index) >= latest.get(file, (0, 0)):
            latest[file] = (written_ns, index)
    indexes = sorted(index for _, index in latest.values())
    is_all = len(indexes) == len(table)  # the usual case, and copying is slow
    return table if is_all else table.take(pa.array(indexes, pa.int64()))


def _convert(work: Callable[[Sequence[T]], list[R]], of: Sequence[T], doing: str) -> list[R]:
    """Convert all items at once; if that fails, one by one without the failing ones."""
    try:
        return work(of)
    except Exception as error:
        if len(of) <= 1:
            log.warning("a summary cannot be %s: %s", doing, in_one_line(error))
            return []
    return [result for item in of for result in _convert(work, [item], doing)]
