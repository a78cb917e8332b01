"""Who holds a device's memory at a moment: when it held most, or at any other."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.memory import at_peak
from stepscope.analyses.memory.allocations import lifetimes
from stepscope.analyses.memory.at_peak import Peak
from stepscope.analyses.memory.holders import EARLIER, NAMES, UNTOLD, holders_of
from stepscope.analyses.operators.grouping import MODULE_PREFIX
from stepscope.api.memory_devices import DeviceQuery, level_at, select_device
from stepscope.api.messages import Column, Table
from stepscope.api.metrics import whole
from stepscope.api.public_tables import cells
from stepscope.base.errors import MissingDataError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace

MOST_HOLDERS = 500
By = Literal["operator", "module", "stack", "lifetime", "category"]
STACKS_REMEDY = "torch.profiler.profile(..., profile_memory=True, with_stack=True)"
TIMELINE_REMEDY = (
    'prof.export_memory_timeline("log/run/memory.json.gz", device="cuda:0")'
    "  # with record_shapes, profile_memory and with_stack"
)
NO_ONE = {
    "operator": "(no operator ran)",
    "module": "(in no module)",
    "stack": "(in no function of yours)",
    "lifetime": "(not known)",
}
OF_ORIGIN = {
    EARLIER: "allocated before the recording, freed in it",
    UNTOLD: "allocated before the recording, held beyond it",
}
NO_RECORD = "origin not recorded"
"""Of the rest where no totals were: it was allocated while recording, without an address."""
LABELS = {
    "operator": "Operator",
    "module": "Module",
    "stack": "Innermost function",
    "lifetime": "Lifetime",
}
HELP = {
    "operator": "The innermost operator that asked for it; `aten::empty` behind its caller.",
    "module": "The innermost nn.Module that ran when it was allocated.",
    "stack": "Your functions that ran when it was allocated, outermost first.",
    "lifetime": "When it is given back.",
}


class HoldersQuery(DeviceQuery, frozen=True, kw_only=True):
    """At which moment, and by what."""

    by: By = "operator"
    """`operator`, `module`, `stack`, `lifetime`, or `category`, which no trace tells."""
    moment_ns: int | None = None
    """When; else when most was held in the time given, or in all of the recording."""


class MemoryHolders(Table, frozen=True, kw_only=True):
    """Who held the memory, the most first; `name` and `origin` say who."""

    device: str
    moment_ns: int
    held_bytes: int | None
    """All that was held; where no totals were recorded, all that the recording tells of."""
    reserved_bytes: int | None
    recorded_bytes: int
    """Of it, allocated while recording."""
    earlier_bytes: int
    """Of it, allocated before and freed while recording."""
    untold_bytes: int | None
    """The rest: allocated before the recording and held beyond it; null where not known."""
    is_peak: bool
    """Whether it is the most that the device held in all of the recording."""
    left_out_count: int
    """So many further holders are not among the rows."""
    left_out_bytes: int


@dataclass(frozen=True, kw_only=True)
class _Found:
    rows: pd.DataFrame
    left_out: pd.DataFrame


def holders(trace: Trace, query: HoldersQuery) -> MemoryHolders:
    """Return who held the memory.

    Raises:
        MissingDataError: no memory was recorded, or not what it is grouped by.
    """
    _, peak = select_device(trace, query.device)
    at = _place(peak, query)
    moment = at_peak.live_at(peak.curve, peak.pairs, at)
    found = _found(trace, query.by, moment)
    curve = peak.curve
    told = whole(moment.untold_bytes)
    return MemoryHolders(
        schema=SCHEMA_VERSION,
        columns=_columns(query.by),
        row_count=len(found.rows),
        values={
            column.key: cells(found.rows[column.key], column.unit) for column in _columns(query.by)
        },
        sort="held_bytes",
        groups=(),
        group="",
        total_ns=0,
        empty="Nothing that the recording tells of was held then.",
        all_row_count=len(found.rows) + len(found.left_out),
        device=curve.device.label,
        moment_ns=_moment_ns(peak, query, at),
        held_bytes=level_at(curve, at),
        reserved_bytes=whole(float(curve.reserved_bytes[at])),
        recorded_bytes=moment.recorded_bytes,
        earlier_bytes=moment.earlier_bytes,
        untold_bytes=told,
        is_peak=at == peak.at,
        left_out_count=len(found.left_out),
        left_out_bytes=int(found.left_out["held_bytes"].sum()),
    )


def _place(peak: Peak, query: HoldersQuery) -> int:
    if query.moment_ns is not None:
        return at_peak.latest_at(peak.curve, query.moment_ns)
    if query.start_ns is not None and query.end_ns is not None:
        return at_peak.peak_between(peak.curve, query.start_ns, query.end_ns)
    return peak.at


def _moment_ns(peak: Peak, query: HoldersQuery, at: int) -> int:
    """Return the moment asked for; else that of the event, or the time's start if that is later."""
    if query.moment_ns is not None:
        return query.moment_ns
    return max(int(peak.curve.time_ns[at]), query.start_ns or 0)


def _found(trace: Trace, by: By, moment: Peak) -> _Found:
    table = holders_of(moment, _names(trace, by))
    holder = table["holder"].where(table["holder"].notna(), NO_ONE.get(by))
    of_origin = OF_ORIGIN if moment.curve.has_totals else {**OF_ORIGIN, UNTOLD: NO_RECORD}
    names = table["origin"].map(of_origin).where(table["origin"].isin(OF_ORIGIN), holder)
    names = names.astype(object).map(lambda name: str(name).removeprefix(MODULE_PREFIX))
    names = names.astype(object)
    table = table.assign(name=names, full_name=names).reset_index(drop=True)
    if by == "stack":
        table["name"] = table["name"].str.rpartition(";")[2].astype(object)
    return _Found(rows=table.head(MOST_HOLDERS), left_out=table.iloc[MOST_HOLDERS:])


def _names(trace: Trace, by: By) -> pd.Categorical:
    if by == "category":
        reason = (
            "a trace does not tell parameters from activations and gradients;"
            " a memory timeline beside it does"
        )
        raise MissingDataError(reason, TIMELINE_REMEDY)
    if by == "lifetime":
        return lifetimes(trace)
    names = NAMES[by](trace)
    if by != "operator" and not (np.asarray(names.codes) >= 0).any():
        reason = "no Python calls were recorded, so nobody can tell which code allocated"
        raise MissingDataError(reason, STACKS_REMEDY)
    return names


def _columns(by: By) -> tuple[Column, ...]:
    name = Column("name", LABELS.get(by, ""), "text", HELP.get(by, ""))
    stack = Column("full_name", "Whole stack", "code", HELP["stack"], hidden=True)
    return (
        name,
        *((stack,) if by == "stack" else ()),
        Column("held_bytes", "Held", "bytes", "Held by its allocations at that moment."),
        Column("peak_share", "Share", "share", "Of all that the device held at that moment."),
        Column("largest_bytes", "Largest", "bytes", "The largest of its allocations."),
        Column("allocation_count", "Count", "count", "In so many allocations."),
        Column(
            "origin",
            "Origin",
            "text",
            "recorded; earlier: allocated before the recording and freed in it; untold: the rest"
            " of the total, below 0 where records are missing.",
            hidden=True,
        ),
    )
