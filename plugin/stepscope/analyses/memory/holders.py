"""Holders of a device's peak memory: operators, modules or stacks.

A device's rows sum to the memory allocated at its peak (`at_peak.py`), the unrecorded rest
included.
"""

from functools import partial
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.core.group_statistics import extremes, sums
from stepscope.analyses.memory.at_peak import Peak, memory_at_peak
from stepscope.analyses.memory.memory_devices import DEVICE_COLUMNS, device_columns
from stepscope.analyses.memory.owners import module_names, operator_names, user_stacks
from stepscope.model.arrays import NONE
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, rows_to_frame
from stepscope.model.trace import Trace, computed

By = Literal["operator", "module", "stack"]
NAMES = {"operator": operator_names, "module": module_names, "stack": user_stacks}
RECORDED, EARLIER, UNRECORDED = ("recorded", "earlier", "unrecorded")
SCHEMA: Schema = (
    *DEVICE_COLUMNS,
    Column("holder", "object", "text", "Who allocated it; None: nothing ran that has a name."),
    Column("origin", "object", "text", "`recorded`; `earlier`: allocated before the recording and"
           " freed in it; `unrecorded`: the rest of the total, below 0 where records are missing."),
    Column("held_bytes", "int64", "bytes", "Held at the peak of the device."),
    Column("peak_share", "float64", "share", "Of all that the device held at its peak."),
    Column("allocation_count", "int64", "count", "Number of allocations; 0 if not recorded."),
    Column("largest_bytes", "int64", "bytes", "The largest of them; 0 if not recorded."),
)  # fmt: skip


def memory_holders(trace: Trace, by: By = "operator") -> pd.DataFrame:
    """Return one row per device and holder, in `SCHEMA` columns, the most memory first.

    Raises:
        MissingDataError: the trace has no memory events.
    """
    return {"operator": _by_operator, "module": _by_module, "stack": _by_stack}[by](trace)


@computed
def _by_operator(trace: Trace) -> pd.DataFrame:
    return _holders(trace, "operator")


@computed
def _by_module(trace: Trace) -> pd.DataFrame:
    return _holders(trace, "module")


@computed
def _by_stack(trace: Trace) -> pd.DataFrame:
    return _holders(trace, "stack")


def _holders(trace: Trace, by: By) -> pd.DataFrame:
    names = NAMES[by](trace)
    peaks = memory_at_peak(trace)
    tables = [holders_of(peak, names) for peak in peaks]
    if not tables:
        return rows_to_frame(SCHEMA, ())
    devices = tuple(peak.curve.device for peak in peaks)
    columns = device_columns(devices, [len(table) for table in tables])
    table = pd.concat(tables, ignore_index=True).assign(**columns)
    return table[[column.name for column in SCHEMA]]


def holders_of(peak: Peak, names: pd.Categorical) -> pd.DataFrame:
    """Return the holders of a device's memory at one moment, in `SCHEMA` columns but the device's.

    `names` are the allocators of all rows of `memory`.
    """
    size = peak.pairs.bytes[peak.live]
    codes = np.append(names.codes, NONE)[peak.pairs.allocated_at[peak.live]].astype(np.int64)
    earlier = len(names.categories)
    group, keys = pd.factorize(np.where(peak.is_earlier, earlier, codes))
    texts = np.array([*(str(name) for name in names.categories), None, None], dtype=object)
    table = pd.DataFrame(
        {
            "holder": pd.Series(texts[keys], dtype=object),
            "origin": pd.Series(np.where(keys == earlier, EARLIER, RECORDED), dtype=object),
            "held_bytes": sums(size, group, len(keys)),
            "allocation_count": np.bincount(group, minlength=len(keys)).astype(np.int64),
            "largest_bytes": extremes(size, group, len(keys))[1],
        }
    )
    table = _with_unrecorded(table, peak)
    total = int(table["held_bytes"].sum())
    table["peak_share"] = table["held_bytes"] / total if total > 0 else np.nan
    table["peak_share"] = table["peak_share"].astype(np.float64)
    return table.sort_values("held_bytes", ascending=False, kind="stable")


def _with_unrecorded(table: pd.DataFrame, peak: Peak) -> pd.DataFrame:
    """Return the table with a row for the bytes that no event explains."""
    unrecorded = peak.unrecorded_bytes
    if np.isnan(unrecorded) and not len(peak.live):  # no totals, and nothing could be paired
        unrecorded = float(peak.curve.change_bytes[peak.at])
    if np.isnan(unrecorded) or unrecorded == 0:
        return table
    row = {
        "holder": pd.Series([None], dtype=object),
        "origin": pd.Series([UNRECORDED], dtype=object),
        "held_bytes": np.array([unrecorded], dtype=np.int64),
        "allocation_count": np.zeros(1, dtype=np.int64),
        "largest_bytes": np.zeros(1, dtype=np.int64),
    }
    return pd.concat([table, pd.DataFrame(row)], ignore_index=True)


public_table(
    "memory-holders",
    SCHEMA,
    "One row per device and operator: its part of the device's peak.",
    title="Memory held at the peak, by operator",
)(partial(memory_holders, by="operator"))
public_table(
    "memory-holders-by-module",
    SCHEMA,
    "One row per device and module: its part of the device's peak.",
    title="Memory held at the peak, by module",
)(partial(memory_holders, by="module"))
public_table(
    "memory-holders-by-stack",
    SCHEMA,
    "One row per device and stack: its part of the device's peak.",
    title="Memory held at the peak, by stack",
)(partial(memory_holders, by="stack"))
