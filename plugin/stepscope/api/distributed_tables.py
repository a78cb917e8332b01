"""Tables of the Distributed view: collectives, process groups, devices; and one collective."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from stepscope.analyses.communication.all_to_all import TRUNCATED, GroupTraffic
from stepscope.analyses.communication.ranked_run import RankRun, as_ranges
from stepscope.analyses.communication.run_collectives import (
    align_collective,
    collective_kinds,
    exposed_ns,
)
from stepscope.analyses.communication.run_groups import RunGroup
from stepscope.analyses.core import group_statistics as statistics
from stepscope.api.distributed_messages import (
    By,
    CollectiveMember,
    CollectiveRanks,
    CollectiveRef,
    ExchangeGroup,
)
from stepscope.api.messages import Column, Table
from stepscope.api.metrics import finite, whole
from stepscope.api.public_tables import cells
from stepscope.api.run_ranks import SharedRun
from stepscope.base.errors import UnknownNameError
from stepscope.model.arrays import Ints, Mask, Objects

NO_COLLECTIVES = (
    "No collective with a known time was recorded on more than one rank. Collectives on a device"
    " need its activity: profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])."
)
NO_GROUPS = (
    "No process group was recorded. torch 2.3 and later record them when"
    " torch.distributed.init_process_group(...) runs before the profiler."
)
NO_DEVICES = "No device work was recorded, and the traces list no device."
IDENTITY = (
    Column("operation", "Collective", "text", "Kind of collective."),
    Column("group", "Group", "text", "The process group: its description, or its name."),
    Column(
        "message_bytes",
        "Size",
        "bytes",
        "Message: the larger of input and output, maximum over ranks.",
    ),
)
MORE = (
    Column("dtype", "Type", "text", "Type of an element."),
    Column("role", "Role", "text", "Inferred role of the group: DP, TP, PP, …."),
    Column("group_size", "Group size", "count", "Number of ranks in the group."),
)
RATES = (
    Column(
        "algorithm_bytes_per_second",
        "Algorithm bandwidth",
        "bytes/s",
        "Message size over transfer time (algbw of nccl-tests).",
    ),
    Column(
        "bus_bytes_per_second",
        "Bus bandwidth",
        "bytes/s",
        "Algorithm bandwidth times the factor of nccl-tests for kind and number of ranks (busbw):"
        " comparable with the link's bandwidth.",
    ),
)
SKEW = Column(
    "start_skew_ns",
    "Skew",
    "ns",
    "From the first rank's start to the last rank's, on one clock. –: the clocks are not aligned.",
)
KINDS = (
    *IDENTITY,
    Column(
        "call_count", "Calls", "count", "Number of collectives; one on several ranks counts once."
    ),
    Column("mean_ns", "Duration", "ns", "Mean duration, over collectives and ranks."),
    Column(
        "transfer_ns",
        "Transfer",
        "ns",
        "Mean of the collectives' shortest duration over ranks: the last rank to arrive does not"
        " wait.",
    ),
    Column("wait_ns", "Wait", "ns", "Mean duration beyond the transfer."),
    Column("total_ns", "Time per rank", "ns", "Sum of durations on a rank; mean over ranks."),
    Column("total_wait_ns", "Waiting per rank", "ns", "Waiting for other ranks in that time."),
    Column("total_transfer_ns", "Transfer per rank", "ns", "Transfer in that time.", hidden=True),
    Column("exposed_ns", "Exposed a rank", "ns", "What of the time no computing hides."),
    *RATES,
    SKEW,
    Column("rank_count", "Ranks", "count", "Number of ranks that recorded them."),
    *MORE,
    Column("total_bytes", "Total size", "bytes", "Sum of their messages.", hidden=True),
)
COLLECTIVES = (
    *IDENTITY,
    Column("step", "Step", "count", "Number of the ProfilerStep that started it."),
    Column("sequence", "Number", "count", "Its number in the group (torch's Seq).", hidden=True),
    Column("mean_ns", "Duration", "ns", "Mean duration over the ranks."),
    Column("transfer_ns", "Transfer", "ns", "Shortest duration over the ranks."),
    Column("wait_ns", "Wait", "ns", "Mean over the ranks of the time beyond the transfer."),
    Column("exposed_ns", "Exposed", "ns", "Mean exposed time over the ranks."),
    Column("longest_ns", "Longest", "ns", "Longest duration over the ranks.", hidden=True),
    Column("margin_ns", "By", "ns", "Difference of the two shortest durations.", hidden=True),
    *RATES,
    SKEW,
    Column("rank_count", "Ranks", "count", "Number of ranks that recorded it."),
    Column("last", "Came last", "text", "The rank of the shortest duration."),
    *MORE,
    Column("missing", "Missing ranks", "text", "Ranks of the group without it."),
)
GROUPS = (
    Column("group", "Group", "text", "Its description and torch's name."),
    Column("role", "Role", "text", "DP, FSDP, TP, PP, EP, CP; –: unknown."),
    Column("group_size", "Size", "count", "Number of ranks."),
    Column("call_count", "Calls per rank", "count", "Mean over the ranks that used it."),
    Column("total_bytes", "Traffic per rank", "bytes", "Sum of the messages; mean over the ranks."),
    Column("total_ns", "Time per rank", "ns", "Sum of durations; mean over the ranks."),
    Column("wait_ns", "Waiting per rank", "ns", "Waiting for other ranks in that time."),
    Column("exposed_ns", "Exposed a rank", "ns", "What of the time no computing hides."),
    Column("recorded_count", "Recorded", "count", "Number of traces that record it."),
    Column("ranks", "Ranks", "text", "Its ranks."),
    Column("kinds", "Collectives", "text", "Kinds of its collectives."),
    Column("backend", "Backend", "text", "Its libraries."),
    Column("role_confidence", "Role confidence", "text", "Confidence of the inferred role."),
    Column("role_reason", "Role evidence", "text", "Evidence of the role.", hidden=True),
    Column("name", "Name", "code", "torch's name of the group.", hidden=True),
)
DEVICES = (
    Column("rank", "Rank", "text", "The rank, or the worker where the rank is unknown."),
    Column("name", "Name", "text", "Name in deviceProperties."),
    Column("memory_bytes", "Memory", "bytes", "Total memory."),
    Column("processor_count", "SMs", "count", "Streaming multiprocessors, or compute units."),
    Column("busy_share", "Busy", "share", "Fraction of the recorded steps; –: not used."),
    Column("device", "Device", "count", "The device's number."),
    Column("host", "Node", "text", "The machine's name (torch's host_name)."),
    Column("process", "Process", "text", "Process id on its machine."),
    Column(
        "compute_capability", "Compute capability", "text", "Compute capability of NVIDIA devices."
    ),
    Column("worker", "Worker", "text", "The worker of the trace.", hidden=True),
)

Cells = dict[str, list[Any]]


def table_of(columns: Sequence[Column], values: Cells, *, sort: str, empty: str) -> Table:
    """Return columns as a table."""
    count = len(values[columns[0].key])
    return Table(
        columns=tuple(columns),
        row_count=count,
        values={column.key: values[column.key] for column in columns},
        sort=sort,
        empty=empty,
    )


def rank_label(run: RankRun, index: int) -> str:
    """Return the label of a trace: its rank, else its worker."""
    rank = run.ranks[index].rank
    return f"rank {rank}" if rank is not None else run.parts[index].evidence.worker


def collectives(
    shared: SharedRun, by: By, members: Mask, limit: int
) -> tuple[Table, tuple[CollectiveRef, ...]]:
    """Return collectives by kind or one by one, and the collective that each row opens."""
    columns: Sequence[Column]
    if by == "kind":
        frame = collective_kinds(shared.run, shared.matched, members)
        match = frame["worst"].to_numpy()
        columns, sort = KINDS, "total_ns"
    else:
        frame = _one_by_one(shared, members)
        match = frame.index.to_numpy()
        columns, sort = COLLECTIVES, "wait_ns"
    count = len(frame)
    frame, match = frame.head(limit), match[:limit]
    values = _identity(shared, frame) | {
        column.key: cells(frame[column.key].reset_index(drop=True), column.unit)
        for column in columns
        if column.key in frame and column.key not in {"kind", "group"}
    }
    table = table_of(columns, values, sort=sort, empty=NO_COLLECTIVES)
    if count > table.row_count:
        table = msgspec.structs.replace(table, all_row_count=count)
    return table, tuple(_opens(shared, int(which)) for which in match)


def _identity(shared: SharedRun, frame: pd.DataFrame) -> Cells:
    groups = _by_identity(shared)
    keys = zip(frame["group"], frame["group_ranks"], strict=True)
    of_rows = [groups.get((name or "", ranks or "")) for name, ranks in keys]
    names = [
        described(group) if group is not None else name
        for group, name in zip(of_rows, frame["group"], strict=True)
    ]
    return {
        "operation": frame["kind"].tolist(),
        "group": names,
        "role": [group.role or None if group is not None else None for group in of_rows],
        "group_size": cells(frame["group_size"].reset_index(drop=True), "count"),
    }


def _by_identity(shared: SharedRun) -> dict[tuple[str, str], RunGroup]:
    """Return the groups by name and by ranks, as the table of collectives has them."""
    texts = (",".join(map(str, group.ranks)) for group in shared.groups)
    return {
        (group.name, f"[{text}]" if text else ""): group
        for group, text in zip(shared.groups, texts, strict=True)
    }


def described(group: RunGroup) -> str:
    """Return a group's description and name."""
    if group.description in {"", "undefined"}:
        return group.name
    return f"{group.description} ({group.name})" if group.name else group.description


def _opens(shared: SharedRun, match: int) -> CollectiveRef:
    first = int(shared.run.matches.first[match])
    worker = shared.run.parts[shared.run.matches.trace_index[first]].evidence.worker
    return CollectiveRef(worker=worker, event=int(shared.events[first]))


def _one_by_one(shared: SharedRun, members: Mask) -> pd.DataFrame:
    """Return one row per collective, most waiting first, indexed by match."""
    matches = shared.run.matches
    member = np.flatnonzero(members)
    count = len(matches.first)
    match = matches.match[member]
    size = np.bincount(match, minlength=count)
    rows = shared.matched.assign(
        group_size=shared.matched["expected_count"],
        dtype=_dtypes(shared.run),
        mean_ns=statistics.mean(matches.duration_ns[member], match, count),
        wait_ns=statistics.mean(matches.wait_ns[member], match, count),
        exposed_ns=statistics.mean(exposed_ns(shared.run)[member], match, count),
    )[size > 0]
    rows["wait_ns"] = rows["wait_ns"].where(rows["rank_count"] > 1)
    for name in ("step", "sequence"):
        rows[name] = rows[name].where(rows[name] >= 0)
    rows["last"] = [f"rank {int(value)}" if value == value else None for value in rows["last_rank"]]  # noqa: PLR0124 (NaN)
    rows["missing"] = [value or None for value in rows["missing_ranks"]]
    return rows.sort_values("wait_ns", ascending=False, kind="stable", na_position="last")


def _dtypes(run: RankRun) -> Objects:
    """Return the element type of each match; None where unknown."""
    matches = run.matches
    types = np.array([*(key.dtype or None for key in matches.keys), None], dtype=object)
    return np.asarray(types[matches.key[matches.first]])


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
    rows = [(at, device) for at, part in enumerate(run.parts) for device in part.devices]
    process = [run.parts[at].process_id for at, _ in rows]
    values: Cells = {
        "rank": [rank_label(run, at) for at, _ in rows],
        "host": [run.parts[at].host for at, _ in rows],
        "process": [None if number is None else str(number) for number in process],
        "device": [device.number for _, device in rows],
        "name": [device.name for _, device in rows],
        "memory_bytes": [device.memory_bytes for _, device in rows],
        "compute_capability": [device.compute_capability for _, device in rows],
        "processor_count": [device.processor_count for _, device in rows],
        "busy_share": [device.busy_share for _, device in rows],
        "worker": [run.parts[at].evidence.worker for at, _ in rows],
    }
    return table_of(DEVICES, values, sort="", empty=NO_DEVICES)


def select_members(shared: SharedRun, step: int | None, worker: str) -> Mask:
    """Return the mask of members of matches in a step and of a worker, where given.

    Raises:
        UnknownNameError: the worker does not exist.
    """
    matches = shared.run.matches
    mask = np.ones(len(matches.match), dtype=bool)
    if step is not None:
        mask &= matches.step == step
    if worker:
        mask &= matches.trace_index == _trace_index(shared.run, worker)
    return mask


def _trace_index(run: RankRun, worker: str) -> int:
    for at, part in enumerate(run.parts):
        if part.evidence.worker == worker:
            return at
    msg = f"the run has no worker {worker!r}"
    raise UnknownNameError(msg)


def one_collective(shared: SharedRun, worker: str, event: int) -> CollectiveRanks:
    """Return the collective that contains an event of a worker.

    Raises:
        UnknownNameError: the event is not the first of a collective.
    """
    matches = shared.run.matches
    at = np.flatnonzero(
        (shared.events == event) & (matches.trace_index == _trace_index(shared.run, worker))
    )
    if not len(at):
        msg = f"no collective of {worker} begins at event {event}"
        raise UnknownNameError(msg)
    return _collective(shared, int(matches.match[at[0]]))


def _collective(shared: SharedRun, match: int) -> CollectiveRanks:
    run, matches = shared.run, shared.run.matches
    row = shared.matched.iloc[match]
    rows = align_collective(run, match)
    ends = rows.start_ns + matches.duration_ns[rows.member]
    keys = matches.key[matches.first]  # kind, group, type and size
    alike = np.flatnonzero(keys == keys[match])
    position = int(np.searchsorted(alike, match))
    group = _group_of(shared, row)
    sequence, step = int(row["sequence"]), int(row["step"])
    return CollectiveRanks(
        kind=row["kind"],
        group=row["group"] or "",
        description=group.description if group is not None else "",
        role=group.role if group is not None else "",
        sequence=sequence if sequence >= 0 else None,
        step=step if step >= 0 else None,
        dtype=matches.keys[int(matches.key[matches.first[match]])].dtype,
        message_bytes=finite(row["message_bytes"]),
        matched_by=row["matched_by"] or "",
        expected_count=whole(row["expected_count"]),
        missing_ranks=row["missing_ranks"] or "",
        transfer_ns=whole(row["transfer_ns"]),
        wait_ns=int(matches.wait_ns[rows.member].sum()),
        length_ns=int(ends.max()),
        algorithm_bytes_per_second=finite(row["algorithm_bytes_per_second"]),
        bus_bytes_per_second=finite(row["bus_bytes_per_second"]),
        aligned_by="clocks" if rows.aligned_by == "clocks" else "ends",
        error_ns=finite(rows.error_ns),
        members=_members(shared, rows.member, rows.start_ns),
        before=_opens(shared, int(alike[position - 1])) if position else None,
        after=_opens(shared, int(alike[position + 1])) if position + 1 < len(alike) else None,
        place=position + 1,
        alike_count=len(alike),
    )


def _group_of(shared: SharedRun, row: "pd.Series[Any]") -> RunGroup | None:
    return _by_identity(shared).get((row["group"] or "", row["group_ranks"] or ""))


def _members(shared: SharedRun, member: Ints, start_ns: Ints) -> tuple[CollectiveMember, ...]:
    run, matches = shared.run, shared.run.matches
    exposed_times = exposed_ns(run)[member]
    shortest = int(matches.duration_ns[member].argmin())
    is_matched = bool(matches.is_full[member[0]])
    return tuple(
        CollectiveMember(
            rank=run.ranks[who].rank,
            worker=run.parts[who].evidence.worker,
            host=run.parts[who].host,
            event=int(shared.events[at]),
            start_ns=int(start),
            duration_ns=int(matches.duration_ns[at]),
            wait_ns=int(matches.wait_ns[at]),
            exposed_ns=int(exposed),
            is_last=is_matched and index == shortest,
        )
        for index, (at, who, start, exposed) in enumerate(
            zip(member, matches.trace_index[member], start_ns, exposed_times, strict=True)
        )
    )


MOST_EXCHANGING = 64
"""Largest group whose pairs of ranks are sent one by one."""


def exchange_group(of: GroupTraffic) -> ExchangeGroup:
    """Return the all-to-all exchanges of a process group."""
    received, is_small = of.received_bytes, len(of.ranks) <= MOST_EXCHANGING
    return ExchangeGroup(
        group=of.group or "",
        description=of.description or "",
        ranks=of.ranks,
        call_count=of.call_count,
        sent_bytes=tuple(
            tuple(None if np.isnan(part) else round(part) for part in sent)
            for sent in (of.sent_bytes.tolist() if is_small else ())
        ),
        received_bytes=() if received is None else tuple(map(round, received.tolist())),
        imbalance=finite(of.imbalance),
        reason=_unknown_imbalance(of),
    )


def _unknown_imbalance(of: GroupTraffic) -> str:
    exchanges = "1 exchange" if of.withheld_count == 1 else f"{of.withheld_count:,} exchanges"
    ranks = "rank" if len(of.missing) == 1 else "ranks"
    if TRUNCATED in of.reasons:
        reason = f"The profiler cut the splits of {exchanges}: it writes at most 30 numbers."
    elif of.withheld_count:
        reason = f"The splits of {exchanges} were not recorded."
    elif of.missing:
        reason = f"There is no trace of {ranks} {as_ranges(of.missing)}."
    elif not of.is_even:
        reason = "The ranks recorded different numbers of exchanges."
    else:
        reason = "" if of.sent_bytes.any() else "Nothing was sent."
    return reason
