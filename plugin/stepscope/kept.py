"""The recordings that are kept: how much memory they take, and what is let go of first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class _Size:
    columns_bytes: int
    results_bytes: int
    results_count: int
    """What had been computed when it was measured; nothing of it ever changes."""

    @property
    def all_bytes(self) -> int:
        return self.columns_bytes + self.results_bytes


class Kept:
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
            trace.results.clear()
        for trace in traces[:-1]:
            if total <= bound_bytes:
                break
            total -= self._sizes.pop(_key(trace)).columns_bytes
            gone.append(trace)
        return gone, total

    def _size(self, trace: "Trace") -> _Size:
        # Imported here because it brings pandas, which TensorBoard's start should not wait for.
        from stepscope import footprint

        known = self._sizes.get(_key(trace))
        count = len(trace.results)
        if known is not None and known.results_count == count:
            return known
        return _Size(
            columns_bytes=known.columns_bytes if known else footprint.columns_bytes(trace),
            results_bytes=footprint.results_bytes(trace) if count else 0,
            results_count=count,
        )


def _key(trace: "Trace") -> tuple[str, int]:
    """Tell a file's recording from the one that is there when it was read again."""
    return trace.id, id(trace)
