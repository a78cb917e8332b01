"""Allocations of a device: the largest, or the first by another column."""

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.memory.allocations import allocation_events, memory_allocations
from stepscope.analyses.memory.memory_devices import STATES, memory_pairs
from stepscope.analyses.operators.grouping import MODULE_PREFIX
from stepscope.api.memory_devices import DeviceQuery, select_device
from stepscope.api.messages import Column, Table
from stepscope.api.public_tables import cells
from stepscope.base.errors import UsageError
from stepscope.model.trace import Trace

DEFAULT_LIMIT = 1000
MOST_ROWS = 20_000
SEARCHED = ("operator", "module", "stack")
Rows = NDArray[np.int64]
COLUMNS = (
    Column(
        "operator",
        "Operator",
        "text",
        "The innermost operator that allocated it; `aten::empty…` counts for its caller. –: no"
        " operator ran, or it was allocated before the recording.",
    ),
    Column("bytes", "Size", "bytes", "Size, rounded up by the allocator."),
    Column("allocated_ns", "Allocated", "ns", "Time from the trace's first event; –: before it."),
    Column(
        "freed_ns",
        "Freed",
        "ns",
        "Time from the trace's first event; –: not while recording, or unknown.",
    ),
    Column("lifetime_ns", "Lifetime", "ns", "Time from allocation to free; –: unknown."),
    Column("module", "Module", "text", "The innermost nn.Module around it."),
    Column(
        "function",
        "Function",
        "code",
        "Your innermost function around it; the details list all of them.",
    ),
    Column(
        "state",
        "State",
        "text",
        " ".join(f"{name}: {meaning}" for name, meaning in STATES.items()),
        hidden=True,
    ),
    Column("freed_in", "Freed in", "text", "The innermost operator that freed it.", hidden=True),
    Column("thread", "Thread", "text", "Thread of its first event, as pid/tid.", hidden=True),
    Column("address", "Address", "text", "Memory address.", hidden=True),
    Column(
        "allocated_level_bytes",
        "Level when allocated",
        "bytes",
        "Allocated memory of the device after the allocation.",
        hidden=True,
    ),
    Column(
        "freed_level_bytes",
        "Level when freed",
        "bytes",
        "Allocated memory of the device after the free.",
        hidden=True,
    ),
)


class AllocationsQuery(DeviceQuery, frozen=True, kw_only=True):
    """Allocations of a device, and their order."""

    which: Literal["alive", "born", "freed"] = "alive"
    """Allocations alive, allocated (`born`) or freed in the time range."""
    state: str = ""
    """A state of the column `state`; empty: all."""
    min_bytes: int = 0
    """Minimum size."""
    max_bytes: int | None = None
    """Maximum size, inclusive."""
    search: str = ""
    """Text in the operator, module or stack, ignoring case."""
    sort: str = "bytes"
    """The sort column."""
    descending: bool = True
    """Whether the largest come first."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = DEFAULT_LIMIT
    """Maximum number of rows."""


class MemoryAllocations(Table, frozen=True, kw_only=True):
    """Allocations, the first by `sort`; the lists are parallel to the rows."""

    device: str
    found_count: int
    """Number of all matches."""
    found_bytes: int
    left_out_bytes: int
    """Size of the matches left out."""
    largest_bytes: int
    """Size of the device's largest allocation."""
    event: list[int]
    """Index in the file of each row's first event."""
    owner_event: list[int]
    """Index in the file of the allocating operator call; -1: none."""
    stack: list[int]
    """Index of `stacks`; -1: none."""
    stacks: tuple[str, ...]
    """Functions, outermost first, separated by `;`."""


def allocations(trace: Trace, query: AllocationsQuery) -> MemoryAllocations:
    """Return a device's allocations: the largest of a time range, or the first by another column.

    Raises:
        MissingDataError: the trace has no memory events.
        UsageError: the sort column does not exist.
    """
    device, peak = select_device(trace, query.device)
    table = memory_allocations(trace)
    of_device = _of_device(trace, device)
    matches = of_device[_matches(table.iloc[of_device], query)]
    ordered = _ordered(trace, table, matches, query)
    rows = ordered[: query.limit]
    sizes = table["bytes"].to_numpy()
    events = allocation_events(trace)
    codes, stacks = pd.factorize(table["stack"].iloc[rows].astype(object))
    return MemoryAllocations(
        columns=COLUMNS,
        row_count=len(rows),
        values=_values(trace, table, rows),
        sort=query.sort,
        empty=_why_none(trace, query),
        all_row_count=len(matches),
        device=peak.curve.device.label,
        found_count=len(matches),
        found_bytes=int(sizes[matches].sum()),
        left_out_bytes=int(sizes[ordered[query.limit :]].sum()),
        largest_bytes=int(sizes[of_device].max()) if len(of_device) else 0,
        event=table["event"].to_numpy()[rows].tolist(),
        owner_event=events.owner_event[rows].tolist(),
        stack=codes.tolist(),
        stacks=tuple(str(stack) for stack in stacks),
    )


def _of_device(trace: Trace, device: int) -> Rows:
    """Return the rows of a device in the table, which is ordered by device."""
    counts = [len(pairs.bytes) for pairs in memory_pairs(trace)]
    start = sum(counts[:device])
    return np.arange(start, start + counts[device])


def _matches(table: pd.DataFrame, query: AllocationsQuery) -> NDArray[np.bool_]:
    size = table["bytes"].to_numpy()
    fits = size >= query.min_bytes
    if query.max_bytes is not None:
        fits &= size <= query.max_bytes
    if query.state:
        fits &= (table["state"] == query.state).to_numpy()
    if query.start_ns is not None and query.end_ns is not None:
        fits &= _in_time(table, query.which, query.start_ns, query.end_ns)
    if words := query.search.strip().lower():
        fits &= np.logical_or.reduce([_has(table[name], words) for name in SEARCHED])
    return np.asarray(fits)


def _in_time(table: pd.DataFrame, which: str, start_ns: int, end_ns: int) -> NDArray[np.bool_]:
    born, freed = table["allocated_ns"].to_numpy(), table["freed_ns"].to_numpy()
    if which == "born":
        return np.asarray((born >= start_ns) & (born < end_ns))
    if which == "freed":
        return np.asarray((freed >= start_ns) & (freed < end_ns))
    return np.asarray(~(born >= end_ns) & ~(freed < start_ns))  # NaN is neither


def _has(names: pd.Series, words: str) -> NDArray[np.bool_]:
    texts = names.cat.categories
    has = np.array([*(words in str(text).lower() for text in texts), False], dtype=bool)
    return np.asarray(has[names.cat.codes.to_numpy()])


def _ordered(trace: Trace, table: pd.DataFrame, rows: Rows, query: AllocationsQuery) -> Rows:
    """Return rows in the requested order; missing values last, equal ones in their order."""
    if query.sort not in {column.key for column in COLUMNS}:
        msg = f"allocations have no column {query.sort!r} to sort by"
        raise UsageError(msg)
    values = _column(trace, table, rows, query.sort)
    if not pd.api.types.is_numeric_dtype(values.dtype):
        codes, texts = pd.factorize(values.astype(object))
        position = np.argsort(np.argsort(np.array([str(text).lower() for text in texts])))
        values = pd.Series(np.append(position, np.nan)[codes])
    order = values.reset_index(drop=True).sort_values(
        ascending=not query.descending, kind="stable", na_position="last"
    )
    return np.asarray(rows[order.index.to_numpy()])


def _column(trace: Trace, table: pd.DataFrame, rows: Rows, key: str) -> pd.Series:
    if key in {"allocated_level_bytes", "freed_level_bytes"}:
        return pd.Series(getattr(allocation_events(trace), key)[rows])
    if key == "function":
        return _renamed(table["stack"].iloc[rows], lambda stack: stack.rpartition(";")[2])
    if key == "module":
        return _renamed(table["module"].iloc[rows], lambda name: name.removeprefix(MODULE_PREFIX))
    return table[key].iloc[rows]


def _renamed(names: pd.Series, name_of: Callable[[str], str]) -> pd.Series:
    texts = np.array([*(name_of(str(text)) for text in names.cat.categories), None], dtype=object)
    return pd.Series(texts[names.cat.codes.to_numpy()], dtype=object)


def _values(trace: Trace, table: pd.DataFrame, rows: Rows) -> dict[str, list[object]]:
    values = {
        column.key: cells(_column(trace, table, rows, column.key), column.unit)
        for column in COLUMNS
        if column.key != "address"
    }
    address = table["address"].to_numpy()[rows].tolist()
    values["address"] = [hex(value) if value >= 0 else None for value in address]
    return values


def _why_none(trace: Trace, query: AllocationsQuery) -> str:
    if not len(trace.memory):
        return "Nothing was allocated."
    is_narrow = query.start_ns is not None or query.search or query.state
    is_sized = query.min_bytes > 0 or query.max_bytes is not None
    if is_narrow or is_sized:
        return "No allocation of this device matches the time, size, state and text."
    return "Nothing was allocated on this device while recording."
