"""The stored summaries of one run, for one set of settings."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from stepscope.base import urls
from stepscope.base.errors import in_one_line
from stepscope.storage import object_files
from stepscope.summaries import parquet_files
from stepscope.summaries.summary_rows import SCHEMA

log = logging.getLogger("stepscope.summaries")

MOST_PARTS = 8
"""Number of files beyond which they are merged."""
LEAST_MERGED = 4
"""Minimum number of files to merge."""
MOST_MERGED_BYTES = 64 * 2**20
"""Size of merged files, within the limit of `read_table`."""
MOST_SETTINGS = 4
"""Number of settings whose summaries are retained; the least recently used are removed."""
TRIES = 3
"""Attempts to read: another program may merge files meanwhile; then the merged file is read."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Folder of a run's summaries, and the settings key."""

    path: str
    settings: str

    def table(self, columns: tuple[str, ...]) -> pa.Table:
        """Return the rows of all files; damaged files are removed, and logged.

        Raises:
            OSError, UnreadableError: The folder cannot be read.
        """
        empty = pa.schema([SCHEMA.field(name) for name in columns]).empty_table()
        return pa.concat_tables([empty, *self._parts(columns).values()])

    def add(self, table: pa.Table) -> None:
        """Write a table to a new file.

        Raises:
            OSError, UnreadableError: The file cannot be written.
        """
        content = parquet_files.parquet_bytes(table)
        object_files.write(self.path, parquet_files.name(self.settings, content), content)

    def tidy(self, newest: Callable[[pa.Table], pa.Table]) -> None:
        """Merge many files into one with only their newest rows; remove those of old settings.

        A large file is merged only when the others have grown as large, so rows are rarely
        rewritten.

        Raises:
            OSError, UnreadableError: The folder cannot be read or written.
        """
        self._forget_old_settings()
        sizes = self._sizes()
        merged = _merged(sizes) if len(sizes) > MOST_PARTS else ()
        if len(merged) < LEAST_MERGED:
            return
        parts = self._parts(tuple(SCHEMA.names), merged)
        if not parts:  # another program has merged them
            return
        content = parquet_files.parquet_bytes(newest(pa.concat_tables(parts.values())))
        whole = parquet_files.name(self.settings, content)
        object_files.write(self.path, whole, content)
        object_files.remove(self.path, parts.keys() - {whole})

    def _parts(
        self, columns: tuple[str, ...], only: Collection[str] | None = None
    ) -> dict[str, pa.Table]:
        """Return the table of each file; for a file merged meanwhile, that of the merged file."""
        tables: dict[str, pa.Table | None] = {}
        for _ in range(TRIES):
            has_gone = False
            for name, size_bytes in self._sizes().items():
                if name in tables or (only is not None and name not in only):
                    continue
                content = object_files.read(self.path, name) if _is_readable(size_bytes) else b""
                has_gone |= content is None
                if content is not None:
                    tables[name] = self._table(name, content, columns)
            if not has_gone:
                break
        return {name: table for name, table in tables.items() if table is not None}

    def _table(self, name: str, content: bytes, columns: tuple[str, ...]) -> pa.Table | None:
        try:
            return parquet_files.read_table(name, content, columns)
        except MemoryError:
            raise
        except Exception as error:  # the traces themselves can be read
            object_files.remove(self.path, [name])
            path = urls.redacted(urls.join(self.path, name))
            log.warning("%s was damaged and is removed: %s", path, in_one_line(error))
            return None

    def _sizes(self) -> dict[str, int]:
        return {
            name: stamp.size_bytes
            for name, stamp in object_files.listed(self.path).items()
            if parquet_files.settings_of(name) == self.settings
        }

    def _forget_old_settings(self) -> None:
        used: dict[str, int] = {}
        listed = object_files.listed(self.path)
        for name, stamp in listed.items():
            if (settings := parquet_files.settings_of(name)) is not None:
                used[settings] = max(used.get(settings, 0), stamp.modified_ns)
        others = sorted(used.keys() - {self.settings}, key=used.__getitem__)
        old = set(others[: max(0, len(others) + 1 - MOST_SETTINGS)])
        object_files.remove(self.path, [n for n in listed if parquet_files.settings_of(n) in old])


def _is_readable(size_bytes: int) -> bool:
    """Return whether a file is small enough to be read."""
    return size_bytes <= parquet_files.MOST_BYTES


def _merged(sizes: Mapping[str, int]) -> list[str]:
    """Return the files to merge: the smallest, up to one larger than all before it."""
    names: list[str] = []
    total = 0
    for name in sorted(sizes, key=sizes.__getitem__):
        is_another_size = len(names) > 1 and sizes[name] > 2 * total
        if is_another_size or total + sizes[name] > MOST_MERGED_BYTES:
            break
        names.append(name)
        total += sizes[name]
    return names
