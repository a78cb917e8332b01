"""Operators that launched device work, by the profiler's flow events (arrows).

Where a separate thread launches the work (torch_npu's task queue), no operator is around the
launch. There a flow leads from the operator's start to the start of the device's task.
"""

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import NONE, Ints
from stepscope.model.trace import Trace

SLACK_NS = 1000
"""Flow times are written as floats, which hold an absolute time to 250 ns."""


def owner_by_flow(trace: Trace) -> Ints:
    """Return, for each row of `device_events`, the operator that its flow starts at, or -1.

    Operators are rows of `host_calls`. Only flows of the dialect's category count.
    """
    owners = np.full(len(trace.device_events), NONE, dtype=np.int64)
    category = trace.dialect.operator_flow
    starts, ends = flow_events(trace, category, "s"), flow_events(trace, category, "f")
    if not len(starts) or not len(ends):
        return owners
    identifier = trace.columns.identifier
    operators = np.flatnonzero(trace.host_calls["is_operator"].to_numpy())
    begun = trace.host_calls["event"].to_numpy()[operators]
    origin = np.append(operators, NONE)[event_of_flow(trace, starts, begun)]
    of_flow = pd.Series(origin, index=identifier[starts])
    of_flow = of_flow[~of_flow.index.duplicated()]
    event = event_of_flow(trace, ends, trace.device_events["event"].to_numpy())
    owner = of_flow.reindex(identifier[ends], fill_value=NONE).to_numpy()
    reached = event >= 0
    owners[event[reached]] = owner[reached]
    return owners


def flow_events(trace: Trace, category: str, phase: str) -> Ints:
    """Return the events that begin (`s`) or end (`f`) the flows of a category, by time."""
    columns = trace.columns
    if not category:
        return np.zeros(0, dtype=np.int64)
    rows: Ints = np.flatnonzero(trace.source.kinds == int(Kind.FLOW))
    for column, text in ((columns.category, category), (columns.phase, phase)):
        present = pd.unique(column[rows])
        codes = [code for code in present.tolist() if code >= 0 and columns.strings[code] == text]
        rows = rows[np.isin(column[rows], codes)]
    rows = rows[(columns.start_ns[rows] != NO_TIME) & (columns.identifier[rows] >= 0)]
    ordered: Ints = rows[np.argsort(columns.start_ns[rows], kind="stable")]
    return ordered


def event_of_flow(trace: Trace, flows: Ints, events: Ints) -> Ints:
    """Return, for each flow event, the index in `events` of the event that begins there, or -1."""
    order = np.argsort(trace.columns.start_ns[events], kind="stable")
    nearest = pd.merge_asof(
        _places(trace, flows),
        _places(trace, events[order]).assign(place=order),
        on="start_ns",
        by=["pid", "tid"],
        direction="nearest",
        tolerance=SLACK_NS,
    )
    return nearest["place"].fillna(NONE).to_numpy().astype(np.int64)


def _places(trace: Trace, rows: Ints) -> pd.DataFrame:
    columns = trace.columns
    return pd.DataFrame(
        {
            "pid": columns.pid[rows],
            "tid": columns.tid[rows],
            "start_ns": columns.start_ns[rows],
        }
    )
