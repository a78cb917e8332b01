"""Jobs of "Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025).

A row of their tables is one operation of one worker (a data-parallel rank's stage). The order of a
pipeline's operations is that of the first step on the first data-parallel rank; all others run the
same program.

- Computing: one after the other on a stage.
- Each kind of transfer between stages: one after the other on a stage. A receive waits for the
  computing before the one that needs it; a send for the one that made its data.
- A transfer is a send with the receive of the stage beside it.
- Parameters are gathered before the first forward pass of their chunk of the model. Gradients are
  reduced after the last backward pass, then the optimizer runs; all workers meet before it.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics as statistics
from stepscope.model.arrays import Ints, Mask
from stepscope.replay.operations import OperationGraph, Operations, operation_graph

FORWARD, BACKWARD = COMPUTING = ("forward-compute", "backward-compute")
SENDS, RECEIVES = ("forward-send", "backward-send"), ("forward-recv", "backward-recv")
TRANSFERS = (*SENDS, *RECEIVES)
PEER = {
    "forward-send": ("forward-recv", 1),
    "forward-recv": ("forward-send", -1),
    "backward-send": ("backward-recv", -1),
    "backward-recv": ("backward-send", 1),
}
"""Kind of the other end of a transfer, and how many stages later it runs."""
GATHER, SCATTER = "params-all-gather", "grads-reduce-scatter"
LAYER_NORM, EMBEDDING = "layernorm-grads-all-reduce", "embedding-grads-all-reduce"
SEPARATE, CLIP, OPTIMIZER = "separate-grads-all-reduce", "optimizer-clip-main-grad", "optimizer"
COLLECTION = "gc"
OF_DATA_RANKS = (GATHER, SCATTER, SEPARATE)
COMMUNICATION = frozenset({*TRANSFERS, *OF_DATA_RANKS, LAYER_NORM, EMBEDDING, CLIP})
CLOCK_ERROR = 5e-5
"""Seconds by which clocks of stages may differ."""

Name = tuple[int, str, int]
"""Stage, kind and number of an operation of one step of one data-parallel rank."""
Dependency = tuple[Name, Name]


@dataclass(frozen=True, kw_only=True)
class Meetings:
    """Operations of one step of one data-parallel rank that meet others."""

    number: dict[Name, int]
    """Number of the transfer or collective; several operations have the same one."""
    all_data_ranks: frozenset[int]
    """Numbers of those in which all data-parallel ranks take part."""


class PipelineJob:
    """A job with its graph; arrays have an entry per operation, times are nanoseconds."""

    def __init__(self, path: Path) -> None:
        table = pd.read_parquet(path)
        table["end_ts"] = table["start_ts"].astype(float) + table["duration"].astype(float)
        table["optype"] = table["optype"].astype(str)
        self.table = table

    @cached_property
    def program(self) -> pd.DataFrame:
        """Operations of the first step on the first data-parallel rank, by start."""
        is_first = (self.table["step"] == self.table["step"].min()) & (self.table["dp_rank"] == 0)
        program: pd.DataFrame = self.table[is_first].sort_values(["start_ts", "seq_id", "optype"])
        return program

    @cached_property
    def unit(self) -> Ints:
        """Number of each operation's pair of step and data-parallel rank."""
        return self.table.groupby(["step", "dp_rank"]).ngroup().to_numpy().astype(np.int64)

    @cached_property
    def step(self) -> Ints:
        """Number of each operation's step, from 0."""
        return self.table.groupby("step").ngroup().to_numpy().astype(np.int64)

    @cached_property
    def operations(self) -> Operations:
        """All operations, with the program's dependencies in each step and rank."""
        depends, meetings = dependencies(self.program)
        row = self._rows(sorted({name for pair in depends for name in pair}))
        edges = [(row[before], row[after]) for before, after in depends]
        numbers = np.array([meetings.number.get(name, -1) for name in named_all(self.table)])
        meets = numbers >= 0
        is_wide = np.isin(numbers, list(meetings.all_data_ranks))
        where = 2 * np.where(is_wide, self.step, self.unit) + is_wide
        meeting = where * (numbers.max() + 1) + numbers
        join = np.full(len(numbers), -1)
        join[meets] = pd.factorize(meeting[meets])[0]
        return Operations(
            join=join,
            is_released=np.zeros(len(join), dtype=bool),
            start_ns=np.zeros(len(join), dtype=np.int64),
            source=np.concatenate([before for before, _ in edges]),
            target=np.concatenate([after for _, after in edges]),
        )

    def _rows(self, names: list[Name]) -> dict[Name, Ints]:
        """Return the rows of each of the program's operations, a row per unit."""
        keys = ["stage", "optype", "seq_id"]
        table = self.table.assign(row=np.arange(len(self.table)), unit=self.unit)
        by_name = {name: group for name, group in table.groupby(keys)}  # noqa: C416 (not a dict of columns)
        return {name: by_name[name].sort_values("unit")["row"].to_numpy() for name in names}

    @cached_property
    def graph(self) -> OperationGraph:
        """Graph of the operations."""
        return operation_graph(self.operations)

    @cached_property
    def duration_ns(self) -> Ints:
        """Time of each operation; of those that meet others, without waiting for the last."""
        join, start = self.operations.join, self.table["start_ts"].to_numpy().astype(float)
        last = np.full(int(join.max()) + 1, -np.inf)
        meets = join >= 0
        np.maximum.at(last, join[meets], start[meets])
        took = self.table["duration"].to_numpy().astype(float)
        took[meets] = self.table["end_ts"].to_numpy()[meets] - last[join[meets]]
        return np.asarray(np.rint(np.maximum(0, took) * 1e9), dtype=np.int64)

    @cached_property
    def ideal_ns(self) -> Ints:
        """The same if all were alike: mean of computing, median of communication, by kind."""
        kind, names = pd.factorize(self.table["optype"])
        mean = statistics.mean(self.duration_ns, kind, len(names))
        median = statistics.quantile(self.duration_ns, kind, len(names), 0.5)
        is_sent = np.isin(names.to_numpy(), list(COMMUNICATION))
        return np.asarray(np.rint(np.where(is_sent, median, mean)), dtype=np.int64)[kind]

    def mean_step(self, duration_ns: Ints) -> float:
        """Return the mean step of the job, in seconds."""
        times = self.graph.times(duration_ns)
        count = int(self.step.max()) + 1
        first, _ = statistics.extremes(times.start_ns, self.step, count)
        _, last = statistics.extremes(times.end_ns, self.step, count)
        return float((last - first).mean() / 1e9)

    def mean_step_mixed(self, where: Mask, inside_ns: Ints, outside_ns: Ints) -> float:
        """Return the mean step with some durations for some operations, in seconds."""
        return self.mean_step(np.where(where, inside_ns, outside_ns))

    def explained(self, where: Mask) -> float:
        """Return the fraction of the slowdown that goes if some operations were ideal."""
        recorded, ideal = self.mean_step(self.duration_ns), self.mean_step(self.ideal_ns)
        mended = self.mean_step_mixed(where, self.ideal_ns, self.duration_ns)
        return (recorded - mended) / (recorded - ideal)

    def slowdowns(self, column: str) -> dict[int, float]:
        """Return how much longer an ideal step takes with one rank's or stage's own durations."""
        ideal = self.mean_step(self.ideal_ns)
        values = self.table[column].to_numpy()
        return {
            int(value): self.mean_step_mixed(values == value, self.duration_ns, self.ideal_ns)
            / ideal
            for value in np.unique(values)
        }

    def slowest_workers(self, share: float = 0.03) -> list[int]:
        """Return the workers that slow the job most: a share of them, at least one."""
        by_data_rank, by_stage = self.slowdowns("dp_rank"), self.slowdowns("stage")
        workers = self.table[["rank", "dp_rank", "stage"]].drop_duplicates()
        score = {
            int(rank): min(by_data_rank[int(data)], by_stage[int(stage)])
            for rank, data, stage in workers.itertuples(index=False)
        }
        ordered = sorted(score, key=lambda rank: (-score[rank], rank))
        return ordered[: -(-len(ordered) * round(100 * share) // 100)]


def dependencies(program: pd.DataFrame) -> tuple[list[Dependency], Meetings]:
    """Return what each operation of a program waits for, and what it meets."""
    stages = {int(at): program[program["stage"] == at] for at in program["stage"].unique()}
    depends: list[Dependency] = []
    peers: defaultdict[frozenset[Name], list[Name]] = defaultdict(list)
    for stage, rows in stages.items():
        names = {kind: names_of(rows, stage, kind) for kind in sorted(set(rows["optype"]))}
        computing = [*named(rows[rows["optype"].isin(COMPUTING)], stage)]
        depends += chain(computing)
        for kind in TRANSFERS:
            depends += chain(names.get(kind, []))
            matched = list(matched_computing(rows, stage, kind))
            depends += around_transfers(matched, kind)
            for pair, name in transfer_pairs(rows, stage, len(stages), matched):
                peers[pair].append(name)
        depends += before_backward(computing, names)
        depends += chain([*named(rows[rows["optype"].isin((GATHER, SCATTER))], stage)])
        depends += around_data_ranks(rows, stage)
        depends += closing(rows, stage)
    return depends, meetings_of(program, list(peers.values()))


def meetings_of(program: pd.DataFrame, transfers: list[list[Name]]) -> Meetings:
    """Return the numbers of transfers, whose ends are given, and of collectives."""
    ends = {name for pair in transfers for name in pair}
    names = named_all(program)
    alone = [[name] for name in names if name[1] in TRANSFERS and name not in ends]
    number = {name: at for at, pair in enumerate([*transfers, *alone]) for name in pair}
    wide = collectives(names, len(transfers) + len(alone))
    everywhere = {at for (_, kind, _), at in wide.items() if kind != EMBEDDING}
    return Meetings(number=number | wide, all_data_ranks=frozenset(everywhere))


def named(rows: pd.DataFrame, stage: int) -> Iterator[Name]:
    """Yield the names of a stage's operations."""
    for kind, number in zip(rows["optype"], rows["seq_id"], strict=True):
        yield stage, str(kind), int(number)


def named_all(program: pd.DataFrame) -> list[Name]:
    """Return the names of all operations of a program."""
    columns = program[["stage", "optype", "seq_id"]].itertuples(index=False)
    return [(int(stage), str(kind), int(number)) for stage, kind, number in columns]


def names_of(rows: pd.DataFrame, stage: int, kind: str) -> list[Name]:
    """Return the names of one kind of operations, by start."""
    return list(named(rows[rows["optype"] == kind], stage))


def chain(names: list[Name]) -> list[Dependency]:
    """Return the dependencies of operations that run one after the other."""
    return list(itertools.pairwise(names))


def matched_computing(rows: pd.DataFrame, stage: int, kind: str) -> Iterator[tuple[Name, Name]]:
    """Yield each transfer with the computing that needs its data, or made it.

    Transfers after the last computing of their pass, or before the first, were never launched. The
    first receive may be missing.
    """
    direction, end = kind.split("-")
    computing = rows[rows["optype"] == f"{direction}-compute"]
    transfers = rows[rows["optype"] == kind]
    if end == "recv":
        is_launched = transfers["start_ts"] <= computing["start_ts"].max() + CLOCK_ERROR
    else:
        is_launched = transfers["end_ts"] >= computing["end_ts"].min() - CLOCK_ERROR
    launched = names_of(transfers[is_launched], stage, kind)
    lacking = len(computing) - len(launched) if end == "recv" and launched else 0
    for at, name in enumerate(launched, start=lacking):
        yield name, (stage, f"{direction}-compute", at)


def around_transfers(matched: list[tuple[Name, Name]], kind: str) -> Iterator[Dependency]:
    """Yield the dependencies between transfers of a kind and computing."""
    for transfer, computing in matched:
        if kind in SENDS:
            yield computing, transfer
            continue
        yield transfer, computing
        stage, pass_kind, number = computing
        if number:
            yield (stage, pass_kind, number - 1), transfer


def transfer_pairs(
    rows: pd.DataFrame, stage: int, stage_count: int, matched: list[tuple[Name, Name]]
) -> Iterator[tuple[frozenset[Name], Name]]:
    """Yield each real transfer of a kind with the numbered pair that it is an end of.

    With several chunks of the model per stage, the model's first chunk receives nothing.
    """
    chunks = {name: int(chunk) for name, chunk in zip(named(rows, stage), rows["gmc"], strict=True)}
    last = (int(rows["mc"].max()) + 1) * stage_count - 1
    real = 0
    for name, computing in matched:
        peer, later = PEER[name[1]]
        if 0 <= chunks[computing] + later <= last:
            other = ((stage + later) % stage_count, peer, real)
            yield frozenset({other, (stage, name[1], real)}), name
            real += 1


def before_backward(computing: list[Name], names: dict[str, list[Name]]) -> Iterator[Dependency]:
    """Yield what the first transfers of gradients wait for: the last forward pass but one."""
    kinds = [kind for _, kind, _ in computing]
    first = kinds.index(BACKWARD)
    if first < 2:
        return
    for kind in ("backward-recv", "backward-send"):
        for name in names.get(kind, []):
            if name[2] == 0:
                yield computing[first - 2], name


def around_data_ranks(rows: pd.DataFrame, stage: int) -> Iterator[Dependency]:
    """Yield what waits for gathered parameters, and what early reductions of gradients wait for."""
    by_chunk = {int(chunk): rows[rows["mc"] == chunk] for chunk in rows["mc"].unique()}
    gathers = rows[rows["optype"] == GATHER].sort_values("seq_id")
    gathers = gathers.drop_duplicates("mc", keep="last")
    for (_, kind, number), chunk in zip(named(gathers, stage), gathers["mc"], strict=True):
        forward = by_chunk[chunk][by_chunk[chunk]["optype"] == FORWARD]
        yield from (((stage, kind, number), name) for name in [*named(forward, stage)][:1])
    if not (rows["optype"] == SEPARATE).any():
        return
    scatters = rows[rows["optype"] == SCATTER].sort_values("seq_id").drop_duplicates("mc")
    for name, chunk in zip(named(scatters, stage), scatters["mc"], strict=True):
        backward = by_chunk[chunk][by_chunk[chunk]["optype"] == BACKWARD].sort_values("end_ts")
        yield from ((before, name) for before in [*named(backward, stage)][-1:])


def closing(rows: pd.DataFrame, stage: int) -> list[Dependency]:
    """Return the order of what follows the last computing of a stage."""
    kinds = set(rows["optype"])
    computing = rows[rows["optype"].isin(COMPUTING)].sort_values("end_ts")
    last = [*named(computing, stage)][-1]
    scatters = sorted(names_of(rows, stage, SCATTER))
    is_early = SEPARATE in kinds
    start = [last, *([(stage, COLLECTION, 0)] if COLLECTION in kinds else [])]
    middle = [(stage, kind, 0) for kind in (LAYER_NORM, EMBEDDING) if kind in kinds]
    late = [(stage, SEPARATE, 0)] if is_early else scatters
    end = [(stage, kind, 0) for kind in (CLIP, OPTIMIZER)]
    ordered = [*start, *middle, *late, *end]
    after_scatters = [(scatters[-1], ordered[len(start)])] if is_early and scatters else []
    return chain(ordered) + after_scatters


def collectives(names: list[Name], first: int) -> dict[Name, int]:
    """Return the number of the collective that operations are parts of, from `first`."""
    numbers: dict[object, int] = {}
    result = {}
    for stage, kind, number in names:
        if kind in OF_DATA_RANKS:
            key: object = (stage, kind, number)
        elif kind in (EMBEDDING, CLIP):
            key = kind
        else:
            continue
        result[stage, kind, number] = numbers.setdefault(key, first + len(numbers))
    return result
