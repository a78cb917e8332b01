"""Single allocations: size, lifetime and owner."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.memory_devices import (
    DEVICE_COLUMNS,
    FREED,
    HELD,
    STATES,
    device_columns,
    memory_pairs,
)
from stepscope.analyses.memory.owners import (
    module_names,
    operator_names,
    operators_around,
    user_stacks,
)
from stepscope.model.arrays import NONE, Floats, Ints
from stepscope.model.frames import THREAD, Column, Schema
from stepscope.model.frames.steps import step_at
from stepscope.model.table import public_table
from stepscope.model.trace import Trace, computed

OWNER_COLUMNS: Schema = (
    Column("operator", "category", "text", "The innermost operator that requested it;"
           " `aten::empty…` behind its caller, as torch-tb-profiler shows it. Missing: none ran,"
           " or it was allocated before."),
    Column("module", "category", "text", "The innermost `nn.Module` that ran, with `with_stack`"
           " or `with_modules`."),
    Column("stack", "category", "text", "The functions that were running, outermost first,"
           " without torch's own, with `with_stack`."),
)  # fmt: skip
SCHEMA: Schema = (
    Column("event", "int64", "id", "The place in the file of its first event."),
    *DEVICE_COLUMNS,
    Column("address", "int64", "id", "Where; -1 in traces of torch before 1.10."),
    Column("bytes", "int64", "bytes", "How large, rounded up as the allocator does."),
    Column(
        "state",
        "category",
        "text",
        " ".join(f"`{name}`: {meaning}" for name, meaning in STATES.items()),
    ),
    Column("allocated_ns", "float64", "ns", "When; NaN: before the recording began."),
    Column("freed_ns", "float64", "ns", "When; NaN: not while recording, or not known."),
    Column("lifetime_ns", "float64", "ns", "From allocation to release; NaN: not known."),
    THREAD,
    *OWNER_COLUMNS,
    Column("freed_in", "category", "text", "The innermost operator that freed it."),
)


@public_table(
    "memory-allocations",
    SCHEMA,
    "One row per allocation: its size, lifetime, and the operator, module and functions that"
    " requested it.",
    title="Allocations",
)
@computed
def memory_allocations(trace: Trace) -> pd.DataFrame:
    """Return one row per allocation, in `SCHEMA` columns, by device and then by time.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    memory, pairs = trace.memory, memory_pairs(trace)
    allocated_at, freed_at, size, state = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(pair, name) for pair in pairs)])
        for name in ("allocated_at", "freed_at", "bytes", "state")
    )
    first = np.where(allocated_at != NONE, allocated_at, freed_at)
    time_ns = np.append(memory["start_ns"].to_numpy().astype(np.float64), np.nan)
    states = pd.Index(list(STATES), dtype=object)
    columns = {
        "event": memory["event"].to_numpy()[first],
        **device_columns(tuple(p.device for p in pairs), [len(p.bytes) for p in pairs]),
        "address": memory["address"].to_numpy()[first],
        "bytes": size,
        "state": pd.Categorical.from_codes(state, categories=states),
        "allocated_ns": time_ns[allocated_at],
        "freed_ns": time_ns[freed_at],
        "lifetime_ns": time_ns[freed_at] - time_ns[allocated_at],
        "thread": _at(memory["thread"].array, first),
        "operator": _at(operator_names(trace), allocated_at),
        "module": _at(module_names(trace), allocated_at),
        "stack": _at(user_stacks(trace), allocated_at),
        "freed_in": _at(operator_names(trace), freed_at),
    }
    return pd.DataFrame(columns, copy=False)


def _at(names: pd.Categorical, rows: Ints) -> pd.Categorical:
    """Return the names of these rows; row -1 has none."""
    codes = np.append(names.codes, NONE)[rows]
    return pd.Categorical.from_codes(codes, categories=names.categories)


@dataclass(frozen=True, kw_only=True, eq=False)
class AllocationEvents:
    """Arrays parallel to `memory_allocations`."""

    freed_event: Ints
    """Event that freed it; -1: not recorded."""
    owner_event: Ints
    """Call of the operator that allocated it; -1: none ran, or the allocation was not recorded."""
    allocated_level_bytes: Floats
    """Memory of the device after the allocation; NaN: not recorded."""
    freed_level_bytes: Floats


@computed
def allocation_events(trace: Trace) -> AllocationEvents:
    """Return the events of every allocation, and the curve's level at them.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    pairs = memory_pairs(trace)
    allocated_at, freed_at = (
        np.concatenate([np.zeros(0, dtype=np.int64), *(getattr(pair, name) for pair in pairs)])
        for name in ("allocated_at", "freed_at")
    )
    level = np.full(len(trace.memory) + 1, np.nan)  # the last is of no event
    for curve in memory_curves(trace):
        level[curve.device.rows] = curve.level_bytes
    event = np.append(trace.memory["event"].to_numpy(), NONE)
    call = np.append(operators_around(trace), NONE)[allocated_at]
    owner = np.append(trace.host_calls["event"].to_numpy(), NONE)[call]
    return AllocationEvents(
        freed_event=event[freed_at],
        owner_event=owner,
        allocated_level_bytes=level[allocated_at],
        freed_level_bytes=level[freed_at],
    )


LIFETIMES = (
    "freed in the step that allocated it",
    "freed in a later step",
    "freed while recording",
    "held to the recording's end",
    "release not recorded",
)
"""The third is for memory allocated outside of all steps."""
WITHIN, LATER, RECORDED, TO_END, LOST = range(len(LIFETIMES))


@computed
def lifetimes(trace: Trace) -> pd.Categorical:
    """Return the lifetime of each row of `memory` that allocates; missing for others.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    time_ns = trace.memory["start_ns"].to_numpy()
    codes = np.full(len(time_ns), NONE, dtype=np.int64)
    for pairs in memory_pairs(trace):
        recorded = np.flatnonzero(pairs.allocated_at != NONE)
        rows, freed = pairs.allocated_at[recorded], pairs.freed_at[recorded]
        step = step_at(trace.steps, time_ns[rows])
        is_same_step = (step != NONE) & (step == step_at(trace.steps, time_ns[freed]))
        of_freed = np.select([is_same_step, step != NONE], [WITHIN, LATER], RECORDED)
        state = pairs.state[recorded]
        codes[rows] = np.select([state == FREED, state == HELD], [of_freed, TO_END], LOST)
    return pd.Categorical.from_codes(codes, categories=pd.Index(LIFETIMES, dtype=object))
