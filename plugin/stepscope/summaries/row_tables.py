"""Rows as a table and back, and which of a table's rows count."""

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
    """Return rows as a table; one with a value that cannot be kept is left out."""

    def encoded(some: Sequence[WholeRow]) -> list[pa.Table]:
        return [pa.Table.from_struct_array(codec(WholeRow).encode(some))]

    return pa.concat_tables([encoded([])[0], *_one_by_one_where_needed(encoded, rows, "kept")])


def as_rows(table: pa.Table, of: type[Row]) -> list[Row]:
    """Return the rows of a table; one that does not hold what it should is left out."""
    values = codec(cast("Any", of))  # mypy thinks that a class without `__eq__` has no hash
    # Batch by batch: to put them together first would copy all that they hold.
    wholes = [batch.to_struct_array() for batch in table.to_batches() if len(batch)]
    return [row for whole in wholes for row in _rows_in(whole, values)]


def _rows_in(whole: pa.StructArray, values: Codec) -> list[Row]:
    def decoded(places: Sequence[int]) -> list[Row]:
        return values.decode(whole[places[0] : places[-1] + 1])

    return _one_by_one_where_needed(decoded, range(len(whole)), "used")


def newest(table: pa.Table, states: Mapping[str, FileStamp] | None = None) -> pa.Table:
    """Return the newest row of each file; where states are given, of files that are in theirs."""
    stamps = zip(
        *(table[name].to_pylist() for name in ("size_bytes", "modified_ns", "tag")), strict=True
    )
    chosen: dict[str, tuple[int, int]] = {}
    rows = zip(table["file"].to_pylist(), table["written_ns"].to_pylist(), stamps, strict=True)
    for place, (file, written_ns, (size_bytes, modified_ns, tag)) in enumerate(rows):
        state = FileStamp(size_bytes=size_bytes, modified_ns=modified_ns, tag=tag)
        is_wanted = states is None or states.get(file) == state
        if is_wanted and (written_ns, place) >= chosen.get(file, (0, 0)):
            chosen[file] = (written_ns, place)
    places = sorted(place for _, place in chosen.values())
    is_all = len(places) == len(table)  # as it is nearly always: to copy them takes the most time
    return table if is_all else table.take(pa.array(places, pa.int64()))


def _one_by_one_where_needed(
    work: Callable[[Sequence[T]], list[R]], of: Sequence[T], doing: str
) -> list[R]:
    """Return what some work gives of all, or where that fails of each for which it does not."""
    try:
        return work(of)
    except Exception as error:
        if len(of) <= 1:
            log.warning("a summary cannot be %s: %s", doing, in_one_line(error))
            return []
    return [each for one in of for each in _one_by_one_where_needed(work, [one], doing)]
