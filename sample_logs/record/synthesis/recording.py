"""What a profiler saw: neutral records, before any format gives them its own words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOST_KINDS = ("operator", "annotation", "memory", "python", "runtime", "driver")
DEVICE_KINDS = ("kernel", "copy", "memset", "mirror")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One event: what, when, and where; `lane` is a host thread's number or a stream."""

    kind: str
    name: str
    start_ns: int
    dur_ns: int
    lane: int
    external_id: int | None = None
    correlation: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end_ns(self) -> int:
        """When it was over."""
        return self.start_ns + self.dur_ns


@dataclass(frozen=True, kw_only=True)
class Recording:
    """All events of one process, in order of their start."""

    records: tuple[Record, ...]
    threads: Mapping[int, str]
    streams: tuple[int, ...]
    start_ns: int
    end_ns: int
