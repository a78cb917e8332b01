"""When everything in a synthetic job happens: all ranks at once, step after step.

Ranks compute, then meet. A collective starts on a rank when that comes, and ends on all of a group
at once, its transfer after the last has come. The host launches ahead, and waits for the loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.job_plan import RANKS_A_HOST, Job
from benchmarks.job_segments import LATENCY_NS, Collective, Segment, Turn

JITTER = 0.02
RANKS_DIFFER = 0.003
"""Standard deviation of how fast ranks are in all they do."""
CLOCKS_DIFFER_NS, MOST_NS = 2e6, 8e6
BEGIN_NS = 20e6
SLOW_SHARE = 0.35
"""How much of a step the straggler's DataLoader takes longer."""
GAP_NS = 1000.0
"""Between two pieces on the device."""
LEAVE_WITHIN_NS = 1500.0
"""In how short a time the ranks of a group leave a collective."""
AROUND_NS = 100e3
"""From the profiler's start to the first step, and from the last one to its end."""
HOST, DEVICE, COMM = range(3)
Times = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clocks:
    """By rank and clock: a time of a piece is `base_ns + scale * time`, in true time.

    Each turn of each step has three: its host's, its device's, its collective's (which lasts 1).
    Behind them each step has one, and the whole recording; these last 1, too.
    """

    base_ns: Times
    scale: Times
    ahead_ns: Times
    """By how much each rank's own clock is ahead: that of its host."""

    @staticmethod
    def of_turn(step: int, turn_count: int, turn: int, what: int) -> int:
        """Return which clock a turn's host, device or collective has."""
        return 3 * (step * turn_count + turn) + what


def play(job: Job, turns: Sequence[Turn]) -> Clocks:
    """Let the ranks run."""
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
    """How far every rank has come: its host, its device, and what it sends."""

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
        """Let every rank do a piece; its clocks begin at a number."""
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
        left += self.random.uniform(0, LEAVE_WITHIN_NS, len(left))
        self.note(clock + COMM, came, left - came)
        self._sent = left
        if meeting.is_waited_for:
            self.device = np.maximum(self.device, left)

    def _varied(self) -> Times:
        """Return by what factor a piece takes longer on each rank this time."""
        return self._speed * (1 + self.random.uniform(-JITTER, JITTER, len(self._speed)))


def _last(came: Times, group_of: NDArray[np.int64]) -> Times:
    """Return by rank when the last of its group has come."""
    last = np.full(group_of.max() + 1, -np.inf)
    np.maximum.at(last, group_of, came)
    return last[group_of]
