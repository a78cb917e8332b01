"""Tables as Parquet files that are as they were written, or refused.

A file's name holds a digest of its content, so that one that is damaged, or was not written to its
end, is known by its name. Files come from a place that others may write to: what they say of
themselves is held against bounds before anything is unpacked.
"""

import re
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.summaries.cache_key import KEY_LENGTH, digest
from stepscope.summaries.codec import DamagedError
from stepscope.summaries.summary_rows import SCHEMA

NAME = re.compile(r"part-(?P<settings>[0-9a-f]{16})-(?P<digest>[0-9a-f]{16})\.parquet")
PATTERN = f"v*-*/*/part-{'?' * KEY_LENGTH}-{'?' * KEY_LENGTH}.parquet"
"""What finds all such files below a place."""
MOST_BYTES = 512 * 2**20
"""A thousand rows take a tenth of that."""
MOST_UNPACKED_BYTES = 4 * 2**30
MOST_ROWS = 100_000
MOST_VALUES = 2**28
"""In one column, those of its lists included: a few bytes may say that a value comes so often."""


def name(settings: str, content: bytes) -> str:
    """Return the name of a file that holds this, of recordings that were advised by settings."""
    return f"part-{settings}-{digest(content)}.parquet"


def settings_of(name: str) -> str | None:
    """Return the settings that a file's rows are of; None where it is none of ours."""
    match = NAME.fullmatch(name)
    return match["settings"] if match else None


def parquet_bytes(table: pa.Table) -> bytes:
    """Return a table as the content of a file."""
    sink = BytesIO()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=9,
        use_dictionary=False,  # zstd finds what recurs over pages: a third less for many ranks
        write_statistics=False,  # they would be a third of a small file, and nobody asks for them
        write_page_checksum=True,
    )
    return sink.getvalue()


def read_table(name: str, content: bytes, columns: tuple[str, ...]) -> pa.Table:
    """Return columns of the table in a file.

    Raises:
        DamagedError: it is not as it was written, or takes more memory than it may.
        ArrowException: it is no Parquet file.
    """
    match = NAME.fullmatch(name)
    _require(match is not None and match["digest"] == digest(content), "it is not what was written")
    _require(len(content) <= MOST_BYTES, "it is larger than any file of ours")
    file = pq.ParquetFile(BytesIO(content))
    about = file.metadata
    _require(about.num_rows <= MOST_ROWS, "it has more rows than any file of ours")
    _require(_unpacked_bytes(about) <= MOST_UNPACKED_BYTES, "it takes too much memory")
    _require(_values_in_a_column(about) <= MOST_VALUES, "it has too many values")
    wanted = pa.schema([SCHEMA.field(column) for column in columns])
    there = pa.schema(field for field in file.schema_arrow if field.name in columns)
    _require(there.equals(wanted), "its columns are others")
    table = file.read(list(columns))
    table.validate(full=True)
    return table


def _unpacked_bytes(about: pq.FileMetaData) -> int:
    return sum(about.row_group(place).total_byte_size for place in range(about.num_row_groups))


def _values_in_a_column(about: pq.FileMetaData) -> int:
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    return sum(
        max((group.column(place).num_values for place in range(group.num_columns)), default=0)
        for group in groups
    )


def _require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 (reads as an assertion)
    if not condition:
        raise DamagedError(otherwise)
