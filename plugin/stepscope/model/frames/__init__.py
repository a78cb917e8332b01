"""Frames: one per file, with its columns in `SCHEMA`, and `build` from a `Source`.

Every row is one event; `event` is its index in the file and its key in all frames. Times are int64
nanoseconds from the trace's first event; text is categorical; fractions are 0 to 1.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: str
    """numpy's name of the dtype, or `category` for text."""
    unit: str
    """`ns`, `bytes`, `share`, `count`, `id`, `text`, and similar."""
    meaning: str


Schema = tuple[Column, ...]

TIMING: Schema = (
    Column("event", "int64", "id", "Index of the event in the file, its key in all frames."),
    Column("name", "category", "text", "The event's name as the profiler wrote it."),
    Column("start_ns", "int64", "ns", "Start, from the trace's first event."),
    Column("duration_ns", "int64", "ns", "Duration; negative ones count as 0."),
    Column("end_ns", "int64", "ns", "`start_ns + duration_ns`."),
)
"""The columns that every frame of timed events begins with."""
THREAD = Column("thread", "category", "text", "The host thread, as `pid/tid`.")
