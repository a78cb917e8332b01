"""Times of a synthetic job: all ranks together, step after step.

Ranks compute, then communicate. A collective starts on a rank when the rank enters it, and ends on
all ranks of a group together, a transfer time after the last has entered. The host launches ahead,
and waits for the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.job_plan import RANKS_A_HOST, Job
from benchmarks.job_segments import LATENCY_NS, Collective, Segment, Turn

JITTER = 0.02
RANKS_DIFFER = 0.003
"""Standard deviation of the speed of ranks."""
CLOCKS_DIFFER_NS, MOST_NS = 2e6, 8e6
BEGIN_NS = 20e6
SLOW_SHARE = 0.35
"""Additional time of the straggler's DataLoader, as a fraction of the step."""
GAP_NS = 1000.0
"""Gap between two pieces on the device."""
LEAVE_SPREAD_NS = 1500.0
"""Time in which all ranks of a group leave a collective."""
AROUND_NS = 100e3
"""Time from the profiler's start to the first step, and from the last step to its end."""
HOST, DEVICE, COMM = range(3)
Times = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clocks:
    """By rank and clock: a time of a piece is `base_ns + scale * time`, in true time.

    Each turn of each step has three: for its host, its device and its collective (of length 1).
    They are followed by one for each step, and one for the whole trace, also of length 1.
    """

    base_ns: Times
    scale: Times
    ahead_ns: Times
    """Offset of each rank's clock, which is that of its host."""

    @staticmethod
    def of_turn(step: int, turn_count: int, turn: int, lane: int) -> int:
        """Return the clock of a turn's host, device or collective."""
        return 3 * (step * turn_count + turn) + lane


def play(job: Job, turns: Sequence[Turn]) -> Clocks:
    """Simulate the ranks."""
    ranks = _Ranks(job, turns)
    for step in range(job.step_count):
        began = ranks.host.copy()
        for turn in range(len(turns)):
            ranks.take(turns[turn], Clocks.of_turn(step, len(turns), turn, HOST))
        ranks.note(3 * job.step_count * len(turns) + step, began, ranks.host - began)
    ended = np.maximum(ranks.host, ranks.device)
    ranks.note(-1, ranks.began - AROUND_NS, ended - ranks.began + 2 * AROUND_NS)
    hosts = np.arange(job.rank_count) // RANKS_A_HOST
    ahead = ranks.random.normal(0, CLOCKS_DIFFER_NS, hosts.max() + 1).clip(-MOST_NS, MOST_NS)
    return Clocks(base_ns=ranks.base_ns, scale=ranks.scale, ahead_ns=ahead[hosts])


class _Ranks:
    """Progress of every rank: its host, its device, and its communication."""

    def __init__(self, job: Job, turns: Sequence[Turn]) -> None:
        self._job, count = job, job.rank_count
        self._slow_ns = SLOW_SHARE * sum(turn.segment.device_ns for turn in turns)
        self.random = np.random.default_rng(0)
        differ = self.random.normal(0, RANKS_DIFFER, count).clip(
            -3 * RANKS_DIFFER, 3 * RANKS_DIFFER
        )
        self._speed = 1 + differ
        clock_count = 3 * job.step_count * len(turns) + job.step_count + 1
        self.base_ns, self.scale = np.zeros((count, clock_count)), np.ones((count, clock_count))
        self.began = BEGIN_NS + self.random.uniform(0, 3 * AROUND_NS, count)
        self.host = self.device = self._sent = self._asked = self.began

    def note(self, clock: int, begin_ns: Times, scale: Times) -> None:
        """Set a clock of all ranks."""
        self.base_ns[:, clock], self.scale[:, clock] = begin_ns, scale

    def take(self, turn: Turn, clock: int) -> None:
        """Run a piece on every rank, with its clocks from a number on."""
        piece = turn.segment
        host_ns = self._host_ns(turn)
        self.note(clock + HOST, self.host, host_ns / piece.host_ns)
        if piece.device_ns:
            begin_ns = np.maximum(self.device + GAP_NS, self.host + piece.lead_ns)
            varies = self._varied()
            self.note(clock + DEVICE, begin_ns, varies)
            self.device = begin_ns + piece.device_ns * varies
        if turn.kind == "ask":
            self._asked = self.device
        if piece.collective is not None:
            self._meet(piece, piece.collective, clock)
        self.host = self.host + host_ns

    def _host_ns(self, turn: Turn) -> Times:
        if turn.kind == "wait":
            return np.maximum(self._asked - self.host, 0) + turn.segment.host_ns
        host_ns = turn.segment.host_ns * self._varied()
        if turn.kind == "load":
            host_ns[self._job.straggler] += self._slow_ns
        return host_ns

    def _meet(self, piece: Segment, meeting: Collective, clock: int) -> None:
        called = self.host + piece.called_ns * self.scale[:, clock + HOST]
        came = np.maximum.reduce((self.device + LATENCY_NS, self._sent + LATENCY_NS, called))
        transfer_ns = meeting.transfer_us * 1000 * (1 + self.random.uniform(-JITTER, JITTER))
        left = _last(came, self._job.groups[meeting.group]) + transfer_ns
        left += self.random.uniform(0, LEAVE_SPREAD_NS, len(left))
        self.note(clock + COMM, came, left - came)
        self._sent = left
        if meeting.is_waited_for:
            self.device = np.maximum(self.device, left)

    def _varied(self) -> Times:
        """Return the factor of a piece's duration on each rank."""
        return self._speed * (1 + self.random.uniform(-JITTER, JITTER, len(self._speed)))


def _last(came: Times, group_of: NDArray[np.int64]) -> Times:
    """Return, by rank, the time at which the last rank of its group entered."""
    last = np.full(group_of.max() + 1, -np.inf)
    np.maximum.at(last, group_of, came)
    return last[group_of]
