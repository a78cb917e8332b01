"""Owners of a device's allocated memory at its peak, or at another time."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.memory import at_peak
from stepscope.analyses.memory.allocations import lifetimes
from stepscope.analyses.memory.at_peak import Peak
from stepscope.analyses.memory.holders import EARLIER, NAMES, UNRECORDED, holders_of
from stepscope.analyses.operators.grouping import MODULE_PREFIX
from stepscope.api.memory_devices import DeviceQuery, level_at, select_device
from stepscope.api.messages import Column, Table
from stepscope.api.metrics import whole
from stepscope.api.public_tables import cells
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace

MOST_HOLDERS = 500
By = Literal["operator", "module", "stack", "lifetime", "category"]
STACKS_REMEDY = "torch.profiler.profile(..., profile_memory=True, with_stack=True)"
TIMELINE_REMEDY = (
    'prof.export_memory_timeline("log/run/memory.json.gz", device="cuda:0")'
    "  # with record_shapes, profile_memory and with_stack"
)
NO_OWNER = {
    "operator": "(no operator ran)",
    "module": "(in no module)",
    "stack": "(in none of your functions)",
    "lifetime": "(unknown)",
}
OF_ORIGIN = {
    EARLIER: "allocated before the recording, freed in it",
    UNRECORDED: "allocated before the recording, held beyond it",
}
NO_RECORD = "origin not recorded"
"""Label of the rest without recorded totals."""
LABELS = {
    "operator": "Operator",
    "module": "Module",
    "stack": "Innermost function",
    "lifetime": "Lifetime",
}
HELP = {
    "operator": "The innermost operator that allocated it; `aten::empty` counts for its caller.",
    "module": "The innermost nn.Module around the allocation.",
    "stack": "Your functions around the allocation, outermost first.",
    "lifetime": "Time until it is freed.",
}


class HoldersQuery(DeviceQuery, frozen=True, kw_only=True):
    """A time, and a grouping."""

    by: By = "operator"
    """`operator`, `module`, `stack`, `lifetime`, or `category`, which no trace records."""
    moment_ns: int | None = None
    """The time; by default, that of the peak in the time range."""


class MemoryHolders(Table, frozen=True, kw_only=True):
    """Owners of allocated memory, largest first, by `name` and `origin`."""

    device: str
    moment_ns: int
    held_bytes: int | None
    """All allocated memory; without recorded totals, the recorded allocations."""
    reserved_bytes: int | None
    recorded_bytes: int
    """Memory allocated while recording."""
    earlier_bytes: int
    """Memory allocated before the recording and freed in it."""
    unrecorded_bytes: int | None
    """The rest: allocated before the recording and freed after it; null where unknown."""
    is_peak: bool
    """Whether it is the device's peak of the whole trace."""
    left_out_count: int
    """Number of owners left out."""
    left_out_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Owners:
    rows: pd.DataFrame
    left_out: pd.DataFrame


def holders(trace: Trace, query: HoldersQuery) -> MemoryHolders:
    """Return the owners of a device's memory at its peak, or at another time.

    Raises:
        MissingDataError: the trace has no memory events, or lacks the data of the grouping.
    """
    _, peak = select_device(trace, query.device)
    at = _index(peak, query)
    moment = at_peak.live_at(peak.curve, peak.pairs, at)
    owners, columns = _owners(trace, query.by, moment), _columns(query.by)
    curve = peak.curve
    return MemoryHolders(
        columns=columns,
        row_count=len(owners.rows),
        values={column.key: cells(owners.rows[column.key], column.unit) for column in columns},
        sort="held_bytes",
        empty="No recorded memory was allocated then.",
        all_row_count=len(owners.rows) + len(owners.left_out),
        device=curve.device.label,
        moment_ns=_moment_ns(peak, query, at),
        held_bytes=level_at(curve, at),
        reserved_bytes=whole(float(curve.reserved_bytes[at])),
        recorded_bytes=moment.recorded_bytes,
        earlier_bytes=moment.earlier_bytes,
        unrecorded_bytes=whole(moment.unrecorded_bytes),
        is_peak=at == peak.at,
        left_out_count=len(owners.left_out),
        left_out_bytes=int(owners.left_out["held_bytes"].sum()),
    )


def _index(peak: Peak, query: HoldersQuery) -> int:
    if query.moment_ns is not None:
        return at_peak.latest_at(peak.curve, query.moment_ns)
    if query.start_ns is not None and query.end_ns is not None:
        return at_peak.peak_between(peak.curve, query.start_ns, query.end_ns)
    return peak.at


def _moment_ns(peak: Peak, query: HoldersQuery, at: int) -> int:
    """Return the requested time; else the event's, but not before the time range."""
    if query.moment_ns is not None:
        return query.moment_ns
    return max(int(peak.curve.time_ns[at]), query.start_ns or 0)


def _owners(trace: Trace, by: By, moment: Peak) -> _Owners:
    table = holders_of(moment, _names(trace, by))
    holder = table["holder"].where(table["holder"].notna(), NO_OWNER.get(by))
    of_origin = OF_ORIGIN if moment.curve.has_totals else {**OF_ORIGIN, UNRECORDED: NO_RECORD}
    names = table["origin"].map(of_origin).where(table["origin"].isin(OF_ORIGIN), holder)
    names = names.astype(object).map(lambda name: str(name).removeprefix(MODULE_PREFIX))
    names = names.astype(object)
    table = table.assign(name=names, full_name=names).reset_index(drop=True)
    if by == "stack":
        table["name"] = table["name"].str.rpartition(";")[2].astype(object)
    return _Owners(rows=table.head(MOST_HOLDERS), left_out=table.iloc[MOST_HOLDERS:])


def _names(trace: Trace, by: By) -> pd.Categorical:
    if by == "category":
        reason = (
            "a trace does not distinguish parameters, activations and gradients; a memory timeline"
            " does"
        )
        raise MissingDataError(reason, TIMELINE_REMEDY)
    if by == "lifetime":
        return lifetimes(trace)
    names = NAMES[by](trace)
    if by != "operator" and not (np.asarray(names.codes) >= 0).any():
        reason = "no Python calls were recorded, so the allocating code is unknown"
        raise MissingDataError(reason, STACKS_REMEDY)
    return names


def _columns(by: By) -> tuple[Column, ...]:
    name = Column("name", LABELS.get(by, ""), "text", HELP.get(by, ""))
    stack = Column("full_name", "Whole stack", "code", HELP["stack"], hidden=True)
    return (
        name,
        *((stack,) if by == "stack" else ()),
        Column("held_bytes", "Held", "bytes", "Its allocated memory at that time."),
        Column(
            "peak_share",
            "Share",
            "share",
            "Fraction of the device's allocated memory at that time.",
        ),
        Column("largest_bytes", "Largest", "bytes", "Its largest allocation."),
        Column("allocation_count", "Count", "count", "Number of its allocations."),
        Column(
            "origin",
            "Origin",
            "text",
            "recorded: allocated while recording; earlier: allocated before, freed while recording;"
            " unrecorded: the rest of the total, below 0 where events are missing.",
            hidden=True,
        ),
    )
