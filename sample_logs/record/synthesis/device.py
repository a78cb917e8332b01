"""The device: streams that do one thing at a time, in the order in which they were asked."""

from collections import defaultdict, deque


class Device:
    """When each stream is free, and how much the host may still ask of it."""

    def __init__(self, *, gap_ns: int, queue_depth: int) -> None:
        self._gap_ns = gap_ns
        self._queue_depth = queue_depth
        self._ends_ns: defaultdict[int, deque[int]] = defaultdict(deque)
        self._blocked_until_ns: defaultdict[int, int] = defaultdict(int)

    def admitted_ns(self, stream: int, now_ns: int) -> int:
        """Return when the stream's launch queue has room: a full one blocks the host."""
        ends_ns = self._ends_ns[stream]
        while len(ends_ns) > 1 and ends_ns[0] <= now_ns:
            ends_ns.popleft()
        excess = len(ends_ns) - self._queue_depth
        return max(now_ns, ends_ns[excess]) if excess >= 0 else now_ns

    def run(self, stream: int, ready_ns: int, dur_ns: int) -> int:
        """Do something as soon as it is ready and the stream is free; return when it starts."""
        ends_ns = self._ends_ns[stream]
        start_ns = max(ready_ns, self._blocked_until_ns[stream])
        if ends_ns:
            start_ns = max(start_ns, ends_ns[-1] + self._gap_ns)
        ends_ns.append(start_ns + dur_ns)
        return start_ns

    def drained_ns(self, stream: int | None = None) -> int:
        """Return when all that was asked of a stream, or of every one, is done."""
        if stream is not None:
            ends_ns = self._ends_ns[stream]
            return max(ends_ns[-1] if ends_ns else 0, self._blocked_until_ns[stream])
        return max((ends_ns[-1] for ends_ns in self._ends_ns.values() if ends_ns), default=0)

    def block(self, stream: int, until_ns: int) -> None:
        """Let a stream start nothing new before a time."""
        self._blocked_until_ns[stream] = max(self._blocked_until_ns[stream], until_ns)

    @property
    def streams(self) -> list[int]:
        """Every stream that did something."""
        return sorted(stream for stream, ends_ns in self._ends_ns.items() if ends_ns)
