"""The recordings that are kept: how much memory they take, and what is let go of first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepscope.base import urls
from stepscope.readers import memory_estimate
from stepscope.storage import FileStamp
from stepscope.storage.discover import TraceFile

if TYPE_CHECKING:
    from stepscope.model.trace import Trace

RETAINED_FRACTION = 0.5
"""Of the memory that may be used, what recordings take that nobody looks at just now."""
FEW_FILES = 8
"""A run of more is read for what its recordings say for it; their events wait until asked for."""


def all_fit(files: Sequence[tuple[TraceFile, FileStamp]], bound_bytes: int) -> bool:
    """Tell whether the events of all these files fit, by the files' sizes."""
    return sum(_columns_bytes(file.path, stamp.size_bytes) for file, stamp in files) <= bound_bytes


def _columns_bytes(path: str, size_bytes: int) -> int:
    is_packed = urls.name(path).endswith(".gz")
    return int(
        size_bytes * (memory_estimate.GZIP_RATIO if is_packed else 1) * memory_estimate.LEAST_SHARE
    )


@dataclass(frozen=True, kw_only=True)
class _Size:
    columns_bytes: int
    results_bytes: int
    results_count: int
    """What had been computed when it was measured; nothing of it ever changes."""

    @property
    def all_bytes(self) -> int:
        return self.columns_bytes + self.results_bytes


class TraceCache:
    """Measures recordings, each again only when more was computed of it."""

    def __init__(self) -> None:
        self._sizes: dict[tuple[str, int], _Size] = {}

    def bytes_of(self, traces: Sequence["Trace"]) -> int:
        """Return how much memory some recordings take."""
        self._sizes = {_key(trace): self._size(trace) for trace in traces}
        return sum(size.all_bytes for size in self._sizes.values())

    def beyond(self, traces: Sequence["Trace"], bound_bytes: int) -> tuple[list["Trace"], int]:
        """Let go of what was computed; return the recordings that must go, too, and what is left.

        The recordings come with those first that are wanted least; the last one stays as it is.
        """
        total = self.bytes_of(traces)
        gone: list[Trace] = []
        for trace in traces[:-1]:
            if total <= bound_bytes:
                return gone, total
            total -= self._sizes[_key(trace)].results_bytes
            _forget_results(trace)
        for trace in traces[:-1]:
            if total <= bound_bytes:
                break
            total -= self._sizes.pop(_key(trace)).columns_bytes
            gone.append(trace)
        return gone, total

    def _size(self, trace: "Trace") -> _Size:
        # Imported here because it brings pandas, which TensorBoard's start should not wait for.
        from stepscope.analyses.core.trace_slice import cached_slices
        from stepscope.readers import memory_size

        known = self._sizes.get(_key(trace))
        parts = cached_slices(trace)
        count = len(trace.results) + sum(1 + len(part.results) for part in parts)
        if known is not None and known.results_count == count:
            return known
        of_parts = sum(part.source.kinds.nbytes + memory_size.results_bytes(part) for part in parts)
        return _Size(
            columns_bytes=known.columns_bytes if known else memory_size.columns_bytes(trace),
            results_bytes=of_parts + (memory_size.results_bytes(trace) if trace.results else 0),
            results_count=count,
        )


def _forget_results(trace: "Trace") -> None:
    from stepscope.analyses.core.trace_slice import drop_slices

    trace.results.clear()
    drop_slices(trace)


def _key(trace: "Trace") -> tuple[str, int]:
    """Tell a file's recording from the one that is there when it was read again."""
    return trace.id, id(trace)
