"""What tells one state of a file from another."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FileStamp:
    """A file's size and time of change; two that are equal are of the same content."""

    size_bytes: int
    """0 where a server does not say it."""
    modified_ns: int
    """In Unix time; 0 where a server does not say it."""
    tag: str = ""
    """What remote storage calls this state of the file: its ETag or generation."""
