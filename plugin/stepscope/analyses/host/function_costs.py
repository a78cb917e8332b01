"""Cost of each Python function: self time, its calls, and the device work launched in it.

torch writes the line where a function begins; for a function that was already running when
recording started, the current line. A function's self time includes built-in functions that it
calls, since these have no line.
"""

from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import is_outermost
from stepscope.analyses.core.event_references import is_users_file
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.host.host_call_tree import Flame, host_flame, host_tree
from stepscope.analyses.host.library_detection import FRAME, library_of
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

RECORD = "profile(with_stack=True)"
SCHEMA: Schema = (
    Column("file", "object", "text", "The file, as the profiler wrote it."),
    Column("line", "int64", "id", "The line where the function begins."),
    Column("function", "object", "text", "The function's name."),
    Column("library", "object", "text", "`user code`, `torch`, `numpy`, `pandas`, `PIL`, or"
           " other."),
    Column("is_users", "bool", "", "The user's own code: no library's, not Python's."),
    Column("call_count", "int64", "count", "Calls; 0 where only stacks were recorded (torch 1.8)."),
    Column("host_self_ns", "int64", "ns", "Its own host time, with built-in functions, without"
           " operators and other functions."),
    Column("host_operators_ns", "int64", "ns", "Host time of operators and runtime calls that it"
           " called itself."),
    Column("host_total_ns", "int64", "ns", "Host time with all that it calls, once if it recurs."),
    Column("device_self_ns", "int64", "ns", "Device work that it launched, by no other function."),
    Column("device_total_ns", "int64", "ns", "Device work launched in it or in what it calls."),
)  # fmt: skip


@public_table(
    "source-lines",
    SCHEMA,
    "One row per Python function: its own time, what it calls, and what it launches.",
)
@computed
def function_costs(trace: Trace) -> pd.DataFrame:
    """Return one row per Python function, the longest on the host first.

    Raises:
        MissingDataError: the recording holds neither Python calls nor stacks as text.
    """
    flame = host_flame(trace)
    matches = [FRAME.match(name) for name in flame.names]
    is_function = np.array([match is not None for match in matches], dtype=bool)[flame.paths.name]
    if not is_function.any():
        msg = "no Python function was recorded"
        raise MissingDataError(msg, RECORD)
    parent, name = flame.paths.parent, flame.paths.name
    around = np.append(name, NONE)[ancestry.nearest(parent, is_function)]
    columns = _costs(flame, around, is_function & is_outermost(name, parent, flame.paths.depth))
    operators = _operators(trace, flame)
    nearest = ancestry.nearest(parent, is_function | operators)
    in_operator = np.append(operators, False)[nearest]
    columns["host_self_ns"] = sums_where(flame.host_self_ns, around, len(matches), ~in_operator)
    columns["host_operators_ns"] = sums_where(flame.host_self_ns, around, len(matches), in_operator)
    columns["call_count"] = sums_where(flame.call_count, name, len(matches), is_function)
    rows = np.unique(name[is_function])
    rows_matched = [match for row in rows.tolist() if (match := matches[row])]
    texts = [flame.names[row] for row in rows.tolist()]
    table: dict[str, Any] = {
        "file": [match["file"] for match in rows_matched],
        "line": [int(match["line"]) for match in rows_matched],
        "function": [match["function"] for match in rows_matched],
        "library": [library_of(text) for text in texts],
        "is_users": [is_users_file(text) for text in texts],
        **{column: values[rows] for column, values in columns.items()},
    }
    return to_frame(SCHEMA, table, "-host_total_ns", "file", "line", "function")


def _operators(trace: Trace, flame: Flame) -> Mask:
    """Return a mask of the nodes that are operators or runtime calls."""
    is_operator = np.zeros(len(flame), dtype=bool)
    is_operator[flame.paths.node[host_tree(trace).is_operator]] = True
    return is_operator


def _costs(flame: Flame, around: Ints, outermost: Mask) -> dict[str, Ints]:
    count = len(flame.names)
    return {
        "host_total_ns": sums_where(flame.host_total_ns, flame.paths.name, count, outermost),
        "device_self_ns": sums_where(flame.device_self_ns, around, count),
        "device_total_ns": sums_where(flame.device_total_ns, flame.paths.name, count, outermost),
    }
