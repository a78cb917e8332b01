"""The device: streams that execute work in the order of its submission."""

from collections import defaultdict, deque


class Device:
    """Streams with their queues: the time at which each is free, and the room in its queue."""

    def __init__(self, *, gap_ns: int, queue_depth: int) -> None:
        self._gap_ns = gap_ns
        self._queue_depth = queue_depth
        self._ends_ns: defaultdict[int, deque[int]] = defaultdict(deque)
        self._blocked_until_ns: defaultdict[int, int] = defaultdict(int)

    def admitted_ns(self, stream: int, now_ns: int) -> int:
        """Return the time at which the stream's queue has room; a full queue blocks the host."""
        ends_ns = self._ends_ns[stream]
        while len(ends_ns) > 1 and ends_ns[0] <= now_ns:
            ends_ns.popleft()
        excess = len(ends_ns) - self._queue_depth
        return max(now_ns, ends_ns[excess]) if excess >= 0 else now_ns

    def run(self, stream: int, ready_ns: int, dur_ns: int) -> int:
        """Run work as soon as it is ready and the stream is free; return its start."""
        ends_ns = self._ends_ns[stream]
        start_ns = max(ready_ns, self._blocked_until_ns[stream])
        if ends_ns:
            start_ns = max(start_ns, ends_ns[-1] + self._gap_ns)
        ends_ns.append(start_ns + dur_ns)
        return start_ns

    def drained_ns(self, stream: int | None = None) -> int:
        """Return the end of all work on a stream, or on all streams."""
        if stream is not None:
            ends_ns = self._ends_ns[stream]
            return max(ends_ns[-1] if ends_ns else 0, self._blocked_until_ns[stream])
        return max((ends_ns[-1] for ends_ns in self._ends_ns.values() if ends_ns), default=0)

    def block(self, stream: int, until_ns: int) -> None:
        """Let a stream start no work before a time."""
        self._blocked_until_ns[stream] = max(self._blocked_until_ns[stream], until_ns)

    @property
    def streams(self) -> list[int]:
        """All streams with work."""
        return sorted(stream for stream, ends_ns in self._ends_ns.items() if ends_ns)
