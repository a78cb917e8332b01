"""States of files, and listings of folders page by page."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """A file's size and modification time; files with equal stamps have equal content."""

    size_bytes: int
    """0 if the server does not report it."""
    modified_ns: int
    """Unix time; 0 if the server does not report it."""
    tag: str = ""
    """Remote storage's identifier of this state: its ETag or generation."""
    inode: int = field(default=0, compare=False)
    """Number of the file in this machine's file system; 0 for remote files, and in listings of
    Windows."""

    def is_same_file(self, other: "FileStamp") -> bool:
        """Return whether both are the same state of the same file, not only of equal size."""
        are_inodes_equal = self.inode == other.inode or not (self.inode and other.inode)
        return self == other and are_inodes_equal


Listing = tuple[str, Mapping[str, FileStamp | None]]
"""A folder, and some of its files by name with their stamps, if the listing includes them."""
NameFilter = Callable[[str], object]
"""Returns whether the stamp of a file is needed, by the file's name."""
PAGE_COUNT = 1000
"""Files per page, as S3 sends them."""


def names_only(_name: str) -> bool:
    """Request no stamps."""
    return False
