"""Parquet files of summaries, checked before they are read.

A file's name contains a digest of its content, which reveals damaged and incomplete files. Others
may write to the folder, so the sizes in a file's metadata are bounded before it is decompressed.
"""

import re
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq

from stepscope.storage.cache_folder import require
from stepscope.summaries.cache_key import KEY_LENGTH, digest
from stepscope.summaries.summary_rows import SCHEMA

NAME = re.compile(r"part-(?P<settings>[0-9a-f]{16})-(?P<digest>[0-9a-f]{16})\.parquet")
PATTERN = f"v*-*/*/part-{'?' * KEY_LENGTH}-{'?' * KEY_LENGTH}.parquet"
"""Matches all such files below the store's folder."""
MOST_BYTES = 512 * 2**20
"""Size limit; a thousand rows take a tenth of it."""
MOST_UNPACKED_BYTES = 4 * 2**30
MOST_ROWS = 100_000
MOST_VALUES = 2**28
"""Limit per column, including list items: a few bytes may encode a value repeated very often."""


def name(settings: str, content: bytes) -> str:
    """Return the name of a file with this content and settings key."""
    return f"part-{settings}-{digest(content)}.parquet"


def settings_of(name: str) -> str | None:
    """Return the settings key in a file's name; None for other files."""
    match = NAME.fullmatch(name)
    return match["settings"] if match else None


def parquet_bytes(table: pa.Table) -> bytes:
    """Return the content of a file with a table."""
    sink = BytesIO()
    pq.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=9,
        use_dictionary=False,  # zstd finds repetitions across pages: a third smaller for many ranks
        write_statistics=False,  # unused, and a third of a small file
        write_page_checksum=True,
    )
    return sink.getvalue()


def read_table(name: str, content: bytes, columns: tuple[str, ...]) -> pa.Table:
    """Return columns of the table in a file.

    Raises:
        DamagedError: The file is damaged or too large.
        ArrowException: It is not a Parquet file.
    """
    match = NAME.fullmatch(name)
    require(
        match is not None and match["digest"] == digest(content),
        "its content does not match its digest",
    )
    require(len(content) <= MOST_BYTES, "it is larger than any file that stepscope writes")
    file = pq.ParquetFile(BytesIO(content))
    about = file.metadata
    require(about.num_rows <= MOST_ROWS, "it has more rows than any file that stepscope writes")
    require(_unpacked_bytes(about) <= MOST_UNPACKED_BYTES, "it needs too much memory")
    require(_values_in_a_column(about) <= MOST_VALUES, "it has too many values")
    expected = pa.schema([SCHEMA.field(column) for column in columns])
    actual = pa.schema(field for field in file.schema_arrow if field.name in columns)
    require(actual.equals(expected), "its columns differ")
    table = file.read(list(columns))
    table.validate(full=True)
    return table


def _unpacked_bytes(about: pq.FileMetaData) -> int:
    return sum(about.row_group(index).total_byte_size for index in range(about.num_row_groups))


def _values_in_a_column(about: pq.FileMetaData) -> int:
    groups = [about.row_group(index) for index in range(about.num_row_groups)]
    return sum(
        max((group.column(index).num_values for index in range(group.num_columns)), default=0)
        for group in groups
    )
