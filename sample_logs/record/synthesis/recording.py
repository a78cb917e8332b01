"""The recording of a profiler: records that do not depend on a trace format."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

HOST_KINDS = ("operator", "annotation", "memory", "python", "runtime", "driver")
DEVICE_KINDS = ("kernel", "copy", "memset", "mirror")


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One event; `lane` is the number of a host thread, or a stream."""

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
        """End of the event."""
        return self.start_ns + self.dur_ns


@dataclass(frozen=True, kw_only=True)
class Recording:
    """All events of one process, in order of their start."""

    records: tuple[Record, ...]
    threads: Mapping[int, str]
    streams: tuple[int, ...]
    start_ns: int
    end_ns: int
