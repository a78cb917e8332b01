"""The files of one run's recordings, as advised by one set of settings."""

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
"""Of more files, fewer are made."""
LEAST_MERGED = 4
"""Fewer files than that are not worth being written anew."""
MOST_MERGED_BYTES = 64 * 2**20
"""Of files that are put together: one that is read must not be larger than `table_in` takes."""
MOST_SETTINGS = 4
"""Of how many settings a run's recordings are kept; those used least lately are removed."""
TRIES = 3
"""Another program may put files together while they are read: then there is another one."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """Where they are, and by which settings."""

    path: str
    settings: str

    def table(self, columns: tuple[str, ...]) -> pa.Table:
        """Return what all files hold; what is damaged is removed, and said in the log.

        Raises:
            OSError, UnreadableError: the folder cannot be read.
        """
        nothing = pa.schema([SCHEMA.field(name) for name in columns]).empty_table()
        return pa.concat_tables([nothing, *self._parts(columns).values()])

    def add(self, table: pa.Table) -> None:
        """Write a table as a file of its own.

        Raises:
            OSError, UnreadableError: it cannot be written.
        """
        content = parquet_files.parquet_bytes(table)
        object_files.write(self.path, parquet_files.name(self.settings, content), content)

    def tidy(self, newest: Callable[[pa.Table], pa.Table]) -> None:
        """Put many files together to one of their newest rows; remove those of old settings.

        A large one is left alone until others are as large: no row is written again and again.

        Raises:
            OSError, UnreadableError: the folder cannot be read or written.
        """
        self._forget_old_settings()
        sizes = self._sizes()
        merged = _merged(sizes) if len(sizes) > MOST_PARTS else ()
        if len(merged) < LEAST_MERGED:
            return
        parts = self._parts(tuple(SCHEMA.names), merged)
        if not parts:  # another program was quicker
            return
        content = parquet_files.parquet_bytes(newest(pa.concat_tables(parts.values())))
        whole = parquet_files.name(self.settings, content)
        object_files.write(self.path, whole, content)
        object_files.remove(self.path, parts.keys() - {whole})

    def _parts(
        self, columns: tuple[str, ...], only: Collection[str] | None = None
    ) -> dict[str, pa.Table]:
        """Return the table in each file; of a file that goes meanwhile, that which took it in."""
        found: dict[str, pa.Table | None] = {}
        for _ in range(TRIES):
            has_gone = False
            for name, size_bytes in self._sizes().items():
                if name in found or (only is not None and name not in only):
                    continue
                content = object_files.read(self.path, name) if _is_readable(size_bytes) else b""
                has_gone |= content is None
                if content is not None:
                    found[name] = self._table(name, content, columns)
            if not has_gone:
                break
        return {name: table for name, table in found.items() if table is not None}

    def _table(self, name: str, content: bytes, columns: tuple[str, ...]) -> pa.Table | None:
        try:
            return parquet_files.read_table(name, content, columns)
        except MemoryError:
            raise
        except Exception as error:  # whatever is in there, the traces themselves can be read
            object_files.remove(self.path, [name])
            shown = urls.redacted(urls.join(self.path, name))
            log.warning("%s was damaged, and is removed: %s", shown, in_one_line(error))
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
        others = sorted(
            (each for each in used if each != self.settings), key=lambda each: used[each]
        )
        old = set(others[: max(0, len(others) + 1 - MOST_SETTINGS)])
        object_files.remove(self.path, [n for n in listed if parquet_files.settings_of(n) in old])


def _is_readable(size_bytes: int) -> bool:
    """Tell whether a file may be taken into memory; what is larger is none of ours."""
    return size_bytes <= parquet_files.MOST_BYTES


def _merged(sizes: Mapping[str, int]) -> list[str]:
    """Return which files to put together: the smallest, up to one larger than all before it."""
    chosen: list[str] = []
    total = 0
    for name in sorted(sizes, key=sizes.__getitem__):
        is_another_size = len(chosen) > 1 and sizes[name] > 2 * total
        if is_another_size or total + sizes[name] > MOST_MERGED_BYTES:
            break
        chosen.append(name)
        total += sizes[name]
    return chosen
