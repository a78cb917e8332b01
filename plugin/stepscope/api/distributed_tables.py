"""The tables of the Distributed view: collectives, process groups, devices; and one collective."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.ranked_run import RankRun, as_ranges
from stepscope.analyses.communication.run_collectives import (
    align_collective,
    collective_kinds,
    exposed_ns,
)
from stepscope.analyses.communication.run_groups import RunGroup
from stepscope.analyses.core import group_statistics as statistics
from stepscope.api.distributed_messages import By, CollectiveMember, CollectiveRanks, CollectiveRef
from stepscope.api.messages import Column, Table
from stepscope.api.metrics import finite, whole
from stepscope.api.public_tables import cells
from stepscope.api.run_ranks import SharedRun
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import SCHEMA_VERSION

NO_COLLECTIVES = (
    "No collective of more than one rank was recorded, or none whose time is known. A device's"
    " collectives need its activity: profile(activities=[ProfilerActivity.CPU,"
    " ProfilerActivity.CUDA])."
)
NO_GROUPS = (
    "No process group was recorded. torch 2.3 and later write them where"
    " torch.distributed.init_process_group(...) comes before the profiler."
)
NO_DEVICES = "Nothing ran on a device, and the files list none."
IDENTITY = (
    Column("operation", "Collective", "text", "What it does."),
    Column("group", "Group", "text", "The process group, by its description where it has one."),
    Column("message_bytes", "Size", "bytes", "Message: the larger of what goes in and comes out,"
           " on the rank with most."),
)  # fmt: skip
MORE = (
    Column("dtype", "Type", "text", "Type of an element."),
    Column("role", "Role", "text", "What the group seems to be for: DP, TP, PP, …."),
    Column("group_size", "Group size", "count", "How many ranks the group has."),
)
RATES = (
    Column("algorithm_bytes_per_second", "Algorithm bandwidth", "bytes/s", "Message over"
           " transfer, without the waiting (nccl-tests' algbw)."),
    Column("bus_bytes_per_second", "Bus bandwidth", "bytes/s", "The same times nccl-tests' factor"
           " for kind and number of ranks (busbw): comparable with what the link can do."),
)  # fmt: skip
SKEW = Column(
    "start_skew_ns",
    "Skew",
    "ns",
    "From the first rank's start to the last one's, on one clock. A dash: clocks were not aligned.",
)
KINDS = (
    *IDENTITY,
    Column("call_count", "Calls", "count", "How many collectives, each counted once."),
    Column("mean_ns", "Duration", "ns", "Mean duration, over collectives and ranks."),
    Column("transfer_ns", "Transfer", "ns", "Mean over the collectives of the shortest duration"
           " over the ranks: who came last waited for nobody."),
    Column("wait_ns", "Wait", "ns", "Mean duration beyond the transfer."),
    Column("total_ns", "Time a rank", "ns", "Sum of durations on a rank; the mean over ranks."),
    Column("total_wait_ns", "Waiting a rank", "ns", "What of that is waiting for other ranks."),
    Column("total_transfer_ns", "Transfer a rank", "ns", "What of it is transfer.", hidden=True),
    Column("exposed_ns", "Exposed a rank", "ns", "What of the time no computing hides."),
    *RATES,
    SKEW,
    Column("rank_count", "Ranks", "count", "On how many ranks they were found."),
    *MORE,
    Column("total_bytes", "Total size", "bytes", "Sum of their messages.", hidden=True),
)  # fmt: skip
EACH = (
    *IDENTITY,
    Column("step", "Step", "count", "Number of the ProfilerStep that asked for it."),
    Column("sequence", "Number", "count", "Its number in the group (torch's Seq).", hidden=True),
    Column("mean_ns", "Duration", "ns", "Mean duration over the ranks."),
    Column("transfer_ns", "Transfer", "ns", "Shortest duration over the ranks."),
    Column("wait_ns", "Wait", "ns", "Mean over the ranks of the time beyond the transfer."),
    Column("exposed_ns", "Exposed", "ns", "Mean over the ranks of what nothing hides."),
    Column("longest_ns", "Longest", "ns", "Longest duration over the ranks.", hidden=True),
    Column("margin_ns", "By", "ns", "How much shorter it was than the next.", hidden=True),
    *RATES,
    SKEW,
    Column("rank_count", "Ranks", "count", "On how many ranks it was found."),
    Column("last", "Came last", "text", "The rank of the shortest duration."),
    *MORE,
    Column("missing", "Missing ranks", "text", "Ranks of the group without it."),
)
GROUPS = (
    Column("group", "Group", "text", "Its description, and the name that torch gave it."),
    Column("role", "Role", "text", "DP, FSDP, TP, PP, EP, CP; a dash where nothing tells."),
    Column("group_size", "Size", "count", "How many ranks it has."),
    Column("call_count", "Calls a rank", "count", "Mean over the recordings that used it."),
    Column("total_bytes", "Traffic a rank", "bytes", "Sum of the messages; mean over the ranks."),
    Column("total_ns", "Time a rank", "ns", "Sum of durations; mean over the ranks."),
    Column("wait_ns", "Waiting a rank", "ns", "What of that is waiting for other ranks."),
    Column("exposed_ns", "Exposed a rank", "ns", "What of the time no computing hides."),
    Column("recorded_count", "Recorded", "count", "Recordings that know it."),
    Column("ranks", "Ranks", "text", "Which."),
    Column("kinds", "Collectives", "text", "Kinds that were seen in it."),
    Column("backend", "Backend", "text", "Its libraries."),
    Column("role_confidence", "Role is sure", "text", "How sure the role is."),
    Column("role_reason", "Why that role", "text", "What tells it.", hidden=True),
    Column("name", "Name", "code", "The name that torch gave it.", hidden=True),
)
DEVICES = (
    Column("rank", "Rank", "text", "The rank, or the worker where nothing tells it."),
    Column("name", "Name", "text", "What deviceProperties calls it."),
    Column("memory_bytes", "Memory", "bytes", "All that it has."),
    Column("processor_count", "SMs", "count", "Streaming multiprocessors, or compute units."),
    Column("busy_share", "Busy", "share", "Of the recorded steps; a dash where it was not used."),
    Column("device", "Device", "count", "The device's number."),
    Column("host", "Node", "text", "The machine's name (torch's host_name)."),
    Column("process", "Process", "text", "The process's number on its machine."),
    Column("compute_capability", "Compute capability", "text", "Of NVIDIA's devices."),
    Column("worker", "Worker", "text", "The worker whose recording it is.", hidden=True),
)

Cells = dict[str, list[Any]]


def table_of(columns: Sequence[Column], values: Cells, *, sort: str, empty: str) -> Table:
    """Return rows as a table."""
    count = len(values[columns[0].key])
    return Table(
        schema=SCHEMA_VERSION,
        columns=tuple(columns),
        row_count=count,
        values={column.key: values[column.key] for column in columns},
        sort=sort,
        groups=(),
        group="",
        total_ns=0,
        empty=empty,
    )


def rank_label(run: RankRun, place: int) -> str:
    """Return what a recording is called: its rank, else its worker."""
    rank = run.ranks[place].rank
    return f"rank {rank}" if rank is not None else run.parts[place].evidence.worker


def collectives(
    shared: SharedRun, by: By, chosen: NDArray[np.bool_], limit: int
) -> tuple[Table, tuple[CollectiveRef, ...]]:
    """Return the chosen collectives by kind or one by one, and what each row leads to."""
    columns: Sequence[Column]
    if by == "kind":
        frame = collective_kinds(shared.run, shared.matched, chosen)
        match = frame["worst"].to_numpy()
        columns, sort = KINDS, "total_ns"
    else:
        frame = _each(shared, chosen)
        match = frame.index.to_numpy()
        columns, sort = EACH, "wait_ns"
    count = len(frame)
    frame, match = frame.head(limit), match[:limit]
    values = _identity(shared, frame) | {
        each.key: cells(frame[each.key].reset_index(drop=True), each.unit)
        for each in columns
        if each.key in frame and each.key not in {"kind", "group"}
    }
    table = table_of(columns, values, sort=sort, empty=NO_COLLECTIVES)
    return _counted(table, count), tuple(_opens(shared, int(which)) for which in match)


def _counted(table: Table, count: int) -> Table:
    """Return a table that says how many rows there are in all, where not all of them are sent."""
    return msgspec.structs.replace(table, all_row_count=count if count > table.row_count else None)


def _identity(shared: SharedRun, frame: pd.DataFrame) -> Cells:
    groups = {(group.name, _text(group.ranks)): group for group in shared.groups}
    keys = zip(frame["group"], frame["group_ranks"], strict=True)
    found = [groups.get((name or "", ranks or "")) for name, ranks in keys]
    names = [
        described(group) if group is not None else name
        for group, name in zip(found, frame["group"], strict=True)
    ]
    return {
        "operation": frame["kind"].tolist(),
        "group": names,
        "role": [group.role or None if group is not None else None for group in found],
        "group_size": cells(frame["group_size"].reset_index(drop=True), "count"),
    }


def _text(ranks: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, ranks)) + "]" if ranks else ""


def described(group: RunGroup) -> str:
    """Return a group's name as people know it: description and number."""
    if group.description in {"", "undefined"}:
        return group.name
    return f"{group.description} ({group.name})" if group.name else group.description


def _opens(shared: SharedRun, match: int) -> CollectiveRef:
    first = int(shared.run.matches.first[match])
    place = int(shared.run.matches.trace_index[first])
    worker = shared.run.parts[place].evidence.worker
    return CollectiveRef(worker=worker, event=int(shared.events[first]))


def _each(shared: SharedRun, chosen: NDArray[np.bool_]) -> pd.DataFrame:
    """Return a row a collective, those with most waiting first, by the match's number."""
    found = shared.run.matches
    member = np.flatnonzero(chosen)
    count = len(found.first)
    match = found.match[member]
    size = np.bincount(match, minlength=count)
    rows = shared.matched.assign(
        group_size=shared.matched["expected_count"],
        dtype=_dtypes(shared.run),
        mean_ns=statistics.mean(found.duration_ns[member], match, count),
        wait_ns=statistics.mean(found.wait_ns[member], match, count),
        exposed_ns=statistics.mean(exposed_ns(shared.run)[member], match, count),
    )[size > 0]
    rows["wait_ns"] = rows["wait_ns"].where(rows["rank_count"] > 1)
    for name in ("step", "sequence"):
        rows[name] = rows[name].where(rows[name] >= 0)
    rows["last"] = [f"rank {int(each)}" if each == each else None for each in rows["last_rank"]]  # noqa: PLR0124 (NaN)
    rows["missing"] = [each or None for each in rows["missing_ranks"]]
    return rows.sort_values("wait_ns", ascending=False, kind="stable", na_position="last")


def _dtypes(run: RankRun) -> NDArray[np.object_]:
    """Return each match's type of an element; None where it is not known."""
    found = run.matches
    known_types = np.array([*(key.dtype or None for key in found.keys), None], dtype=object)
    return np.asarray(known_types[found.key[found.first]])


def group_table(shared: SharedRun) -> Table:
    """Return the process groups of a run."""
    groups = shared.groups
    values: Cells = {
        "group": [described(group) for group in groups],
        "role": [group.role or None for group in groups],
        "role_confidence": [group.role_confidence or None for group in groups],
        "role_reason": [group.role_reason for group in groups],
        "backend": [group.backend or None for group in groups],
        "group_size": [group.size or None for group in groups],
        "ranks": [as_ranges(group.ranks) or None for group in groups],
        "recorded_count": [group.recorded_count for group in groups],
        "kinds": [", ".join(group.kinds) or None for group in groups],
        "call_count": [group.call_count for group in groups],
        "total_bytes": [whole(group.total_bytes) for group in groups],
        "total_ns": [whole(group.total_ns) for group in groups],
        "wait_ns": [whole(group.wait_ns) for group in groups],
        "exposed_ns": [whole(group.exposed_ns) for group in groups],
        "name": [group.name for group in groups],
    }
    return table_of(GROUPS, values, sort="total_ns", empty=NO_GROUPS)


def device_table(run: RankRun) -> Table:
    """Return the devices of a run, by rank."""
    rows = [(at, each) for at, part in enumerate(run.parts) for each in part.devices]
    process = [run.parts[at].process_id for at, _ in rows]
    values: Cells = {
        "rank": [rank_label(run, at) for at, _ in rows],
        "host": [run.parts[at].host for at, _ in rows],
        "process": [None if number is None else str(number) for number in process],
        "device": [each.number for _, each in rows],
        "name": [each.name for _, each in rows],
        "memory_bytes": [each.memory_bytes for _, each in rows],
        "compute_capability": [each.compute_capability for _, each in rows],
        "processor_count": [each.processor_count for _, each in rows],
        "busy_share": [each.busy_share for _, each in rows],
        "worker": [run.parts[at].evidence.worker for at, _ in rows],
    }
    return table_of(DEVICES, values, sort="", empty=NO_DEVICES)


def select_members(shared: SharedRun, step: int | None, worker: str) -> NDArray[np.bool_]:
    """Tell which members of matches are of a step and a worker, where one is named.

    Raises:
        UnknownNameError: the run has no such worker.
    """
    found = shared.run.matches
    chosen = np.ones(len(found.match), dtype=bool)
    if step is not None:
        chosen &= found.step == step
    if worker:
        chosen &= found.trace_index == _place(shared.run, worker)
    return chosen


def _place(run: RankRun, worker: str) -> int:
    for at, part in enumerate(run.parts):
        if part.evidence.worker == worker:
            return at
    msg = f"the run has no worker {worker!r}"
    raise UnknownNameError(msg)


def one_collective(shared: SharedRun, worker: str, event: int) -> CollectiveRanks:
    """Return the collective of which an event of a worker is a part.

    Raises:
        UnknownNameError: there is none.
    """
    found = shared.run.matches
    at = np.flatnonzero(
        (shared.events == event) & (found.trace_index == _place(shared.run, worker))
    )
    if not len(at):
        msg = f"no collective of {worker} begins with event {event}"
        raise UnknownNameError(msg)
    return _collective(shared, int(found.match[at[0]]))


def _collective(shared: SharedRun, match: int) -> CollectiveRanks:
    run, found = shared.run, shared.run.matches
    row = shared.matched.iloc[match]
    rows = align_collective(run, match)
    ends = rows.start_ns + found.duration_ns[rows.member]
    alike = _alike(shared, match)
    place = int(np.searchsorted(alike, match))
    group = _group_of(shared, row)
    sequence, step = int(row["sequence"]), int(row["step"])
    return CollectiveRanks(
        schema=SCHEMA_VERSION,
        kind=row["kind"],
        group=row["group"] or "",
        description=group.description if group is not None else "",
        role=group.role if group is not None else "",
        sequence=sequence if sequence >= 0 else None,
        step=step if step >= 0 else None,
        dtype=found.keys[int(found.key[found.first[match]])].dtype,
        message_bytes=finite(row["message_bytes"]),
        matched_by=row["matched_by"] or "",
        expected_count=whole(row["expected_count"]),
        missing_ranks=row["missing_ranks"] or "",
        transfer_ns=whole(row["transfer_ns"]),
        wait_ns=int(found.wait_ns[rows.member].sum()),
        length_ns=int(ends.max()),
        algorithm_bytes_per_second=finite(row["algorithm_bytes_per_second"]),
        bus_bytes_per_second=finite(row["bus_bytes_per_second"]),
        aligned_by="clocks" if rows.aligned_by == "clocks" else "ends",
        error_ns=finite(rows.error_ns),
        members=_members(shared, rows.member, rows.start_ns),
        before=_opens(shared, int(alike[place - 1])) if place else None,
        after=_opens(shared, int(alike[place + 1])) if place + 1 < len(alike) else None,
        place=place + 1,
        alike_count=len(alike),
    )


def _alike(shared: SharedRun, match: int) -> NDArray[np.int64]:
    """Return the matches of the same kind, group, type and size, in order of time."""
    found = shared.run.matches
    keys = found.key[found.first]
    return np.flatnonzero(keys == keys[match])


def _group_of(shared: SharedRun, row: "pd.Series[Any]") -> RunGroup | None:
    wanted = (row["group"] or "", row["group_ranks"] or "")
    found = (each for each in shared.groups if (each.name, _text(each.ranks)) == wanted)
    return next(found, None)


def _members(
    shared: SharedRun, member: NDArray[np.int64], start_ns: NDArray[np.int64]
) -> tuple[CollectiveMember, ...]:
    run, found = shared.run, shared.run.matches
    exposed = exposed_ns(run)[member]
    shortest = int(found.duration_ns[member].argmin())
    is_told = bool(found.is_full[member[0]])
    return tuple(
        CollectiveMember(
            rank=run.ranks[who].rank,
            worker=run.parts[who].evidence.worker,
            host=run.parts[who].host,
            event=int(shared.events[at]),
            start_ns=int(start),
            duration_ns=int(found.duration_ns[at]),
            wait_ns=int(found.wait_ns[at]),
            exposed_ns=int(own),
            is_last=is_told and place == shortest,
        )
        for place, (at, who, start, own) in enumerate(
            zip(member, found.trace_index[member], start_ns, exposed, strict=True)
        )
    )
