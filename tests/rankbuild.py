"""Runs of many ranks whose truth is known: clocks, lateness, transfers, who takes part.

Ranks compute, then meet in collectives, step after step. A collective begins on a rank when that
rank comes, and ends on all within its transfer after the last has come. `run` says what was true;
`document` writes what one rank's profiler would have seen, by its own clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

US = 1000
EPOCH_NS = 1_790_000_000 * 10**9


@dataclass(frozen=True, kw_only=True)
class Group:
    """A process group."""

    name: str
    ranks: tuple[int, ...]
    description: str = "undefined"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run is like."""

    groups: Sequence[Group]
    """In each step, every rank meets the others of each of its groups, in this order."""
    world_size: int
    step_count: int = 6
    compute_us: float = 500.0
    transfer_us: float = 40.0
    slow_us: Mapping[int, float] = field(default_factory=dict)
    """How much longer a rank computes before each collective."""
    slow_from: int = 0
    """The step from which on it does."""
    offset_us: Mapping[int, float] = field(default_factory=dict)
    """By how much a rank's clock is ahead of the true time."""
    jitter: float = 0.02
    """By what share computing times differ, up and down, and transfers up to five times as much."""
    drift: Mapping[int, float] = field(default_factory=dict)
    """How much faster it runs."""
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One collective on one rank, in true time."""

    group: Group
    step: int
    sequence: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What happened."""

    plan: Plan
    seen: Mapping[int, Sequence[Seen]]
    computed: Mapping[int, Sequence[tuple[int, int]]]
    steps: Mapping[int, Sequence[tuple[int, int]]]

    def by_clock(self, rank: int, true_ns: int) -> int:
        """What a rank's clock shows."""
        ahead = self.plan.offset_us.get(rank, 0.0) * US
        return true_ns + round(ahead + self.plan.drift.get(rank, 0.0) * true_ns)


def grid(world_size: int, tensor: int) -> list[Group]:
    """Tensor-parallel groups of neighbours, and data-parallel groups across them."""
    near = [range(at, at + tensor) for at in range(0, world_size, tensor)]
    far = [range(at, world_size, tensor) for at in range(tensor)]
    return [
        *(
            Group(name=f"t{at}", description="mesh_tp", ranks=tuple(of))
            for at, of in enumerate(near)
        ),
        *(
            Group(name=f"d{at}", description="mesh_dp", ranks=tuple(of))
            for at, of in enumerate(far)
        ),
    ]


def run(plan: Plan) -> Truth:
    """Let the ranks run."""
    random = np.random.default_rng(plan.seed)
    now = dict.fromkeys(range(plan.world_size), 1_000_000)
    seen: dict[int, list[Seen]] = {rank: [] for rank in now}
    computed: dict[int, list[tuple[int, int]]] = {rank: [] for rank in now}
    steps: dict[int, list[tuple[int, int]]] = {rank: [] for rank in now}
    sequence = dict.fromkeys((group.name for group in plan.groups), 0)
    for step in range(plan.step_count):
        began = dict(now)
        for group in plan.groups:
            sequence[group.name] += 1
            for rank in group.ranks:
                slow_us = plan.slow_us.get(rank, 0.0) if step >= plan.slow_from else 0.0
                varies = 1 + random.uniform(-plan.jitter, plan.jitter)
                took_us = plan.compute_us * varies + slow_us
                until = now[rank] + round(took_us * US)
                computed[rank].append((now[rank], until))
                now[rank] = until + 2 * US
            last_ns = max(now[rank] for rank in group.ranks)
            for rank in group.ranks:
                quicker = random.uniform(0, 5 * plan.jitter)
                end_ns = last_ns + round(plan.transfer_us * US * (1 - quicker))
                seen[rank].append(
                    Seen(group=group, step=step, sequence=sequence[group.name],
                         start_ns=now[rank], end_ns=end_ns)
                )  # fmt: skip
                now[rank] = end_ns + 2 * US
        for rank in now:
            steps[rank].append((began[rank], now[rank]))
    return Truth(plan=plan, seen=seen, computed=computed, steps=steps)


def document(
    truth: Truth, rank: int, *, with_sequence: bool = True, host: str | None = None
) -> dict[str, Any]:
    """Return one rank's trace as kineto writes it; `ts` is in microseconds of its clock."""

    def event(category: str, name: str, times: tuple[int, int], **arguments: Any) -> dict[str, Any]:
        start, end = (truth.by_clock(rank, at) for at in times)
        place = (0, arguments["stream"]) if category == "kernel" else (100, 100)
        return {"ph": "X", "cat": category, "name": name, "pid": place[0], "tid": place[1],
                "ts": start / US, "dur": (end - start) / US, "args": arguments}  # fmt: skip

    events = [
        event("user_annotation", f"ProfilerStep#{at}", times)
        for at, times in enumerate(truth.steps[rank])
    ]
    events += [event("kernel", "gemm", times, stream=7, device=0) for times in truth.computed[rank]]
    for one in truth.seen[rank]:
        told: dict[str, Any] = {
            "Collective name": "allreduce",
            "In msg nelems": 1_000_000,
            "Out msg nelems": 1_000_000,
            "dtype": "Float",
            "Group size": len(one.group.ranks),
            "Process Group Name": one.group.name,
            "Process Group Description": one.group.description,
            "Process Group Ranks": str(list(one.group.ranks)),
            "stream": 20,
            "device": 0,
        }
        if with_sequence:
            told["Seq"] = one.sequence
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        events.append(event("kernel", name, (one.start_ns, one.end_ns), **told))
    known = {"host_name": host} if host else {}
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Test GPU"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": truth.plan.world_size},
        "baseTimeNanoseconds": EPOCH_NS,
        **known,
        "traceEvents": events,
    }
