"""Jobs of many ranks whose truth is known, as what their recordings say: no trace is written.

Ranks compute, then meet: micro-batch after micro-batch in the tensor-parallel groups of each stage
and between stages, at the end of a step in the data-parallel groups, and all together. Ranks are
numbered as Megatron does: tensor parallelism fastest, pipeline stages slowest.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.process_groups import Signs, role
from stepscope.analyses.communication.rank_assignment import RankEvidence
from stepscope.analyses.communication.rank_steps import Curve, RankSteps
from stepscope.analyses.communication.rank_summary import (
    Key,
    RankCollectives,
    RankGroup,
    RankSummary,
    RankTotals,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
US = 1_000
EPOCH_NS = 1_790_000_000 * 10**9
BYTES = {"tp": 16 << 20, "pp": 4 << 20, "ep": 8 << 20, "dp": 256 << 20, "world": 4}
TRANSFER_US = {"tp": 60.0, "pp": 30.0, "ep": 80.0, "dp": 400.0, "world": 20.0}


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a job is like."""

    data: int
    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    """Neighbours in the data-parallel groups that exchange tokens."""
    step_count: int = 5
    part_count: int = 2
    """Micro-batches."""
    layer_count: int = 4
    """Of each stage."""
    bucket_count: int = 4
    compute_us: float = 500.0
    """Of a layer, forward as well as backward."""
    jitter: float = 0.02
    """By what share computing times differ, up and down."""
    slow: Mapping[int, float] = field(default_factory=dict)
    """Rank to how much longer it computes: 0.3 is 30 %."""
    slow_steps: range = range(1_000)
    slow_by: str = "kernel"
    """The category that grows: `kernel`, `dataloader`, `memcpy` or `other`."""
    stage_cost: Mapping[int, float] = field(default_factory=dict)
    """Stage to how much longer all of its ranks compute, by design."""
    host_size: int = 8
    clock_ns: Mapping[int, int] = field(default_factory=dict)
    """Host to how far its clock is ahead."""
    memory_bytes: Mapping[int, float] = field(default_factory=dict)
    """Rank to its peak, where that is not as most ranks'."""
    kernel_count: Mapping[int, float] = field(default_factory=dict)
    is_described: bool = True
    """Whether groups say what they are for."""
    has_passes: bool = True
    """Whether the recordings tell the forward pass from the backward pass."""
    seed: int = 0

    @property
    def world_size(self) -> int:
        """How many ranks it has."""
        return self.data * self.tensor * self.pipeline

    @property
    def grid(self) -> Ints:
        """Its ranks by stage, data-parallel and tensor-parallel place."""
        return np.arange(self.world_size).reshape(self.pipeline, self.data, self.tensor)

    def groups(self, axis: str) -> Ints:
        """Return the groups along an axis, a row each."""
        across, by_stage = self.grid.transpose(0, 2, 1), self.grid.transpose(1, 2, 0)
        return {
            "tp": self.grid.reshape(-1, self.tensor),
            "dp": across.reshape(-1, self.data),
            "ep": across.reshape(-1, self.expert),
            "pp": by_stage.reshape(-1, self.pipeline),
            "world": self.grid.reshape(1, -1),
        }[axis]

    def host(self, rank: int) -> str:
        """Return the name of a rank's machine."""
        return f"node{rank // self.host_size:03}"


DESCRIPTIONS = {"tp": "mesh_tp", "dp": "mesh_dp", "ep": "mesh_ep", "pp": "mesh_pp"}
IN_FORWARD = {"tp": 0.5, "dp": 0.0}
KINDS = {"tp": "all_reduce", "dp": "all_reduce", "ep": "all_to_all", "world": "all_reduce"}


@dataclass(frozen=True, kw_only=True, eq=False)
class _Met:
    """Ranks that met in collectives of one sort at one time: an entry a member."""

    axis: str
    rank: Ints
    start_ns: Ints
    end_ns: Ints
    step: int
    source: Ints
    """-1 of what is no transfer between two."""
    destination: Ints


class _Job:
    """A job while it runs: when each rank is free again, and what happened."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.random = np.random.default_rng(job.seed)
        self.now = np.full(job.world_size, 1_000_000, dtype=np.int64)
        self.met: list[_Met] = []
        self.computed = np.zeros((job.step_count, job.world_size), dtype=np.int64)
        self.lost = np.zeros((job.step_count, job.world_size), dtype=np.int64)
        slow = np.zeros(job.world_size)
        slow[list(job.slow)] = list(job.slow.values())
        self.slow = slow
        stages = [job.stage_cost.get(stage, 0.0) for stage in range(job.pipeline)]
        self.cost = np.repeat(1.0 + np.array(stages), job.data * job.tensor)

    def compute(self, ranks: Ints, step: int) -> None:
        job = self.job
        varies = 1 + self.random.uniform(-job.jitter, job.jitter, len(ranks))
        took = np.round(job.compute_us * US * varies * self.cost[ranks]).astype(np.int64)
        slower = self.slow[ranks] if step in job.slow_steps else np.zeros(len(ranks))
        longer = np.round(job.compute_us * US * slower).astype(np.int64)
        self.now[ranks] += took + longer
        self.computed[step, ranks] += took + (longer if job.slow_by == "kernel" else 0)
        self.lost[step, ranks] += longer if job.slow_by != "kernel" else 0

    def meet(self, axis: str, groups: Ints, step: int, *, is_direct: bool = False) -> None:
        """Let each row of ranks meet; where it is a transfer, from its first to its second."""
        if groups.shape[1] < 2:
            return
        start = self.now[groups]
        varies = self.random.uniform(0, 0.1, groups.shape)
        transfer = np.round(TRANSFER_US[axis] * US * (1 - varies)).astype(np.int64)
        end = start.max(axis=1, keepdims=True) + transfer
        none = np.full(groups.size, -1)
        ends = (np.repeat(groups[:, at], 2) for at in (0, 1))
        source, destination = ends if is_direct else (none, none)
        self.met.append(
            _Met(axis=axis, rank=groups.ravel(), start_ns=start.ravel(), end_ns=end.ravel(),
                 step=step, source=source, destination=destination)
        )  # fmt: skip
        self.now[groups] = end + 2 * US

    def layers(self, stage: int, step: int) -> None:
        job = self.job
        mine = job.grid[stage]
        ranks = mine.ravel()
        for _ in range(job.layer_count):
            self.compute(ranks, step)
            self.meet("tp", mine.reshape(-1, job.tensor), step)
        if job.expert > 1:
            self.meet("ep", mine.T.reshape(-1, job.expert), step)

    def step(self, step: int) -> None:
        job, stages = self.job, range(self.job.pipeline)
        for _ in range(job.part_count):
            for stage in stages:
                if stage:
                    self.hand(stage - 1, stage, step)
                self.layers(stage, step)
        for _ in range(job.part_count):
            for stage in reversed(stages):
                if stage + 1 < job.pipeline:
                    self.hand(stage + 1, stage, step)
                self.layers(stage, step)
        for _ in range(job.bucket_count):
            self.compute(job.grid.ravel(), step)
            self.meet("dp", job.groups("dp"), step)
        self.meet("world", job.groups("world"), step)

    def hand(self, source: int, destination: int, step: int) -> None:
        both = np.stack((self.job.grid[source].ravel(), self.job.grid[destination].ravel()), 1)
        self.meet("pp", both, step, is_direct=True)


def parts_of(job: Job) -> list[RankSummary]:
    """Run a job, and return what the recording of each of its ranks says."""
    running = _Job(job)
    bounds = [running.now.copy()]
    for step in range(job.step_count):
        running.step(step)
        bounds.append(running.now.copy())
    return _parts(running, np.array(bounds))


@cache
def _text(ranks: tuple[int, ...]) -> str:
    return json.dumps(list(ranks), separators=(",", ":"))


def _parts(running: _Job, bounds: Ints) -> list[RankSummary]:
    job, met = running.job, running.met
    axes = ["tp", "dp", "ep", "pp", "world"]
    members = {axis: [tuple(row) for row in job.groups(axis).tolist()] for axis in axes}
    group_of = {axis: np.empty(job.world_size, dtype=np.int64) for axis in axes}
    for axis in axes:
        for at, row in enumerate(members[axis]):
            group_of[axis][list(row)] = at
    together: Callable[[str], Ints] = lambda name: np.concatenate(  # noqa: E731
        [getattr(each, name) for each in met]
    )
    rank, start, end = together("rank"), together("start_ns"), together("end_ns")
    sizes = [len(each.rank) for each in met]
    sort = np.repeat([axes.index(each.axis) for each in met], sizes)
    step = np.repeat([each.step for each in met], sizes)
    source, destination = together("source"), together("destination")
    order = np.lexsort((start, rank))
    cut = np.searchsorted(rank[order], np.arange(job.world_size + 1))
    parts = []
    for who in range(job.world_size):
        rows = order[cut[who] : cut[who + 1]]
        found = {
            name: values[rows]
            for name, values in (("axis", sort), ("start", start), ("end", end), ("step", step),
                                 ("source", source), ("destination", destination))
        }  # fmt: skip
        groups = {name: (at, members[name][at]) for name in axes
                  for at in (int(group_of[name][who]),)}  # fmt: skip
        parts.append(_part(running, who, bounds[:, who], found, groups))
    return parts


def _part(
    running: _Job,
    rank: int,
    bounds: Ints,
    found: Mapping[str, Ints],
    groups: Mapping[str, tuple[int, tuple[int, ...]]],
) -> RankSummary:
    job = running.job
    names = list(groups)
    ahead = EPOCH_NS + job.clock_ns.get(rank // job.host_size, 0)
    collectives = _collectives(found, groups, ahead)
    steps = _steps(running, rank, bounds, found, ahead)
    count = job.step_count
    communication = int((found["end"] - found["start"]).sum())
    whole = int(bounds[-1] - bounds[0])
    computed, lost = int(running.computed[:, rank].sum()), int(running.lost[:, rank].sum())
    parts_ns = dict.fromkeys(
        ("kernel", "communication", "memcpy", "memset", "runtime", "dataloader", "cpu", "other"), 0
    )
    parts_ns |= {"kernel": computed // count, "communication": communication // count}
    if lost:
        parts_ns[job.slow_by] = lost // count
    parts_ns["other"] += whole // count - sum(parts_ns.values())
    used = [name for name in names if name in {names[at] for at in set(found["axis"].tolist())}]
    return RankSummary(
        evidence=RankEvidence(worker=f"rank{rank}", span="1", name=f"rank{rank}.pt.trace.json.gz",
                              header=rank, content=None, device=rank % job.host_size),
        host=job.host(rank),
        device_name="Test GPU",
        has_device=True,
        world_size=job.world_size,
        totals=RankTotals(
            step_count=count,
            step_ns=whole / count,
            computing_ns=computed / count,
            communication_ns=communication / count,
            exposed_ns=communication / count,
            idle_ns=(whole - computed - communication) / count,
            parts_ns=parts_ns,
            kernel_count=job.kernel_count.get(rank, 1_000.0),
            operator_count=500.0,
            element_count=np.nan,
            memory_peak_bytes=job.memory_bytes.get(rank, 60e9),
        ),
        collectives=collectives,
        steps=steps,
        devices=(),
        groups=tuple(
            _group(job, name, groups[name], mine, int((found["end"] - found["start"])[mine].sum()))
            for name in used
            for mine in (found["axis"] == names.index(name),)
        ),
        process_id=1_000 + rank,
    )  # fmt: skip


def _name(axis: str, at: int) -> str:
    return "0" if axis == "world" else f"{axis}{at}"


def _group(
    job: Job, axis: str, place: tuple[int, tuple[int, ...]], mine: NDArray[np.bool_], total: int
) -> RankGroup:
    at, ranks = place
    description = DESCRIPTIONS.get(axis, "default_pg") if job.is_described else "undefined"
    kinds = ("recv", "send") if axis == "pp" else (KINDS[axis],)
    found = role(
        Signs(
            description=description,
            ranks=ranks,
            size=len(ranks),
            kinds=frozenset(kinds),
            world_size=job.world_size,
            has_data_parallel=False,
            forward_share=IN_FORWARD.get(axis) if job.has_passes else None,
        )
    )
    return RankGroup(
        name=_name(axis, at),
        ranks=_text(ranks),
        description=description,
        backend="nccl",
        size=len(ranks),
        role=found.name or "",
        role_confidence=found.confidence or "",
        role_reason=found.reason,
        kinds=kinds,
        call_count=int(mine.sum()),
        total_ns=total,
        exposed_ns=total,
        total_bytes=float(mine.sum() * BYTES[axis]),
    )


def _collectives(
    found: Mapping[str, Ints],
    groups: Mapping[str, tuple[int, tuple[int, ...]]],
    ahead: int,
) -> RankCollectives:
    names = list(groups)
    triples = np.stack((found["axis"], found["source"], found["destination"]), axis=1)
    distinct, code = np.unique(triples, axis=0, return_inverse=True)
    keys = []
    for which, source, destination in distinct.tolist():
        axis = names[which]
        at, ranks = groups[axis]
        kind = "send" if axis == "pp" else KINDS[axis]
        size = -1.0 if kind == "all_to_all" else float(BYTES[axis])
        keys.append(
            Key(group=_name(axis, at), ranks=_text(ranks), kind=kind, dtype="bfloat16", bytes=size,
                source=source, destination=destination)
        )  # fmt: skip
    sequence = np.full(len(code), -1, dtype=np.int64)
    for which, name in enumerate(names):
        if name != "pp":
            mine = found["axis"] == which
            sequence[mine] = np.arange(mine.sum())
    sizes = np.array([BYTES[name] for name in names], dtype=float)
    return RankCollectives(
        keys=tuple(keys),
        key=code.ravel().astype(np.int32),
        sequence=sequence,
        start_ns=found["start"] + ahead,
        ready_ns=found["start"] + ahead,
        duration_ns=found["end"] - found["start"],
        message_bytes=sizes[found["axis"]],
        step=found["step"].astype(np.int64),
        hidden_ns=np.zeros(len(code), dtype=np.int64),
        event=np.arange(len(code), dtype=np.int64) * 7,
    )


def _steps(
    running: _Job, rank: int, bounds: Ints, found: Mapping[str, Ints], ahead: int
) -> RankSteps:
    start, end = bounds[:-1], bounds[1:]
    count = len(start)
    sent = np.zeros(count, dtype=np.int64)
    np.add.at(sent, found["step"], found["end"] - found["start"])
    edges = np.stack((found["start"], found["end"]), axis=1).ravel()
    until = np.repeat(np.cumsum(found["end"] - found["start"]), 2)
    until[::2] -= found["end"] - found["start"]
    computed, lost = running.computed[:, rank], running.lost[:, rank]
    none = np.zeros(count, dtype=np.int64)
    by = running.job.slow_by
    return RankSteps(
        number=np.arange(count, dtype=np.int64),
        start_ns=start + ahead,
        duration_ns=end - start,
        computing_ns=computed,
        overlapped_ns=none,
        exposed_ns=sent,
        copies_ns=lost if by == "memcpy" else none,
        loading_ns=lost if by == "dataloader" else none,
        idle_ns=(end - start - computed - sent).astype(np.float64),
        exposed=Curve(at_ns=edges + ahead, until_ns=until),
        has_steps=True,
    )


def shape(world_size: int, **more: Any) -> Job:
    """Return a job of this size: TP 8, and from 256 ranks on four stages."""
    tensor = min(8, world_size)
    stages = 4 if world_size >= 256 else 2 if world_size >= 64 else 1
    data = world_size // tensor // stages
    chosen: dict[str, Any] = {"data": data, "tensor": tensor, "pipeline": stages}
    return Job(**(chosen | {"expert": min(4, data)} | more))
