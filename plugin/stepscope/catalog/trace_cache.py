"""Traces in memory: their sizes, and the eviction of those requested least recently."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from stepscope.base import urls
from stepscope.catalog.file_index import FileIndex
from stepscope.catalog.file_state import Ready, Summarised
from stepscope.catalog.log_directories import StampedFile
from stepscope.readers import memory_estimate
from stepscope.readers.memory_budget import MemoryBudget

if TYPE_CHECKING:
    from stepscope.model.trace import Trace

RETAINED_FRACTION = 0.5
"""Fraction of the memory budget for traces that no current request uses."""
FEW_FILES = 8
"""For runs with more files, only summaries are read; events are read on request."""


def all_fit(files: Sequence[StampedFile], bound_bytes: int) -> bool:
    """Return whether the events of all these files fit, estimated from the files' sizes."""
    return sum(_columns_bytes(file.path, stamp.size_bytes) for file, stamp in files) <= bound_bytes


def _columns_bytes(path: str, size_bytes: int) -> int:
    ratio = memory_estimate.GZIP_RATIO if urls.name(path).endswith(".gz") else 1
    return int(size_bytes * ratio * memory_estimate.LEAST_SHARE)


@dataclass(frozen=True, kw_only=True)
class _Size:
    columns_bytes: int
    results_bytes: int
    results_count: int
    """Number of results when measured; results never change."""


class TraceCache:
    """Evicts traces of a file index down to a bound; the last requested one always remains."""

    def __init__(self, files: FileIndex, memory_bytes: int) -> None:
        self._files = files
        self._sizes: dict[tuple[str, int], _Size] = {}
        self._reserved_bytes = 0
        self.bound_bytes = int(memory_bytes * RETAINED_FRACTION)
        self.budget = MemoryBudget(memory_bytes, self.release)

    def release(self, missing_bytes: int) -> None:
        """Evict traces until a file that needs this much more memory can be read."""
        with self._files.lock:
            traces_bytes = self.budget.retained_bytes - self._reserved_bytes
            self.shrink(traces_bytes - missing_bytes)

    def reserve(self, bytes_: int) -> None:
        """Set the memory that API caches take from the budget."""
        with self._files.lock:
            traces_bytes = self.budget.retained_bytes - self._reserved_bytes
            self.budget.set_retained(traces_bytes + bytes_)
            self._reserved_bytes = bytes_

    def shrink(self, bound_bytes: int | None = None) -> None:
        """Evict results, then whole traces, until the rest fits in the bound.

        Runs requested least recently are evicted first, and within the last requested run its
        traces requested least recently.
        """
        with self._files.lock:
            ready = [entry for entry in self._files if isinstance(entry.state, Ready)]
            ready.reverse()  # of traces that were never requested, the last listed is evicted first
            ready.sort(key=self._files.requested_at)
            traces = [entry.state.trace for entry in ready if isinstance(entry.state, Ready)]
            bound_bytes = self.bound_bytes if bound_bytes is None else bound_bytes
            evicted, left_bytes = self._evict(traces, bound_bytes)
            for trace in evicted:
                self._files.put(replace(self._files.entry(trace.id), state=Summarised()))
            self.budget.set_retained(left_bytes + self._reserved_bytes)

    def _evict(self, traces: Sequence["Trace"], bound_bytes: int) -> tuple[list["Trace"], int]:
        """Clear results; return the traces to evict in addition, and the remaining bytes."""
        self._sizes = {_key(trace): self._size(trace) for trace in traces}
        total = sum(size.columns_bytes + size.results_bytes for size in self._sizes.values())
        evicted: list[Trace] = []
        for trace in traces[:-1]:
            if total <= bound_bytes:
                return evicted, total
            total -= self._sizes[_key(trace)].results_bytes
            _clear_results(trace)
        for trace in traces[:-1]:
            if total <= bound_bytes:
                break
            total -= self._sizes.pop(_key(trace)).columns_bytes
            evicted.append(trace)
        return evicted, total

    def _size(self, trace: "Trace") -> _Size:
        # Imported here because it imports pandas, which would delay TensorBoard's start.
        from stepscope.analyses.core.trace_cut import cached_slices
        from stepscope.readers import memory_size

        before = self._sizes.get(_key(trace))
        slices = cached_slices(trace)
        count = len(trace.results) + sum(1 + len(part.results) for part in slices)
        if before is not None and before.results_count == count:
            return before
        slices_bytes = sum(
            part.source.kinds.nbytes + memory_size.results_bytes(part) for part in slices
        )
        return _Size(
            columns_bytes=before.columns_bytes if before else memory_size.columns_bytes(trace),
            results_bytes=slices_bytes + (memory_size.results_bytes(trace) if trace.results else 0),
            results_count=count,
        )


def _clear_results(trace: "Trace") -> None:
    from stepscope.analyses.core.trace_cut import drop_slices

    trace.results.clear()
    drop_slices(trace)


def _key(trace: "Trace") -> tuple[str, int]:
    """Return a key that distinguishes a trace from an earlier one of the same file."""
    return trace.id, id(trace)
