"""Host calls: their cost as claims and evidence, their names, events and source lines."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.analyses.idle.call_cost import CallCost
from stepscope.base.calibration import Factor
from stepscope.base.findings import EventReference, Evidence, EvidenceTable, SourceLine
from stepscope.model.frames.name_masks import codes_and_names
from stepscope.model.trace import Trace
from stepscope.rules import Claim
from stepscope.rules.shared import facts
from stepscope.rules.shared.phrases import fraction_of_window

MOST_ROWS = 10
MOST_LINES = 5


def claims(cost: CallCost, late: Factor, work: Factor, method: str) -> tuple[Claim, ...]:
    """Claim the idle time and the device's work, each with its factor."""
    return (Claim(cost.idle, late, method), Claim(cost.work, work, is_device_work=True))


def evidence(trace: Trace, cost: CallCost) -> tuple[Evidence, ...]:
    """Return the cost of calls, as fractions of the window."""
    host = facts.fraction("Host time in them", fraction_of_window(trace, cost.host_ns), "overview")
    if not len(trace.device_events):
        return (host,)
    idle, work = (fraction_of_window(trace, time_ns) for time_ns in (cost.idle_ns, cost.work_ns))
    return (
        host,
        facts.fraction("Idle time meanwhile", idle, "overview"),
        facts.fraction("Device time of their work", work, "kernels"),
    )


def by_name(frame: pd.DataFrame, rows: NDArray[np.int64], label: str) -> EvidenceTable:
    """Return some calls (rows of a frame of the host) by name: their number and total time."""
    codes, names = codes_and_names(frame["name"], rows)
    duration_ns = frame["duration_ns"].to_numpy()[rows]
    total_ns = np.bincount(codes, weights=duration_ns, minlength=len(names))
    count = np.bincount(codes, minlength=len(names))
    order = np.argsort(-total_ns, kind="stable")[:MOST_ROWS]
    return facts.table(
        label,
        {"Call": "code", "Calls": "count", "Host time in total": "ns"},
        ((names[code], count[code], total_ns[code]) for code in order[count[order] > 0].tolist()),
        "operators",
    )


def most_time(frame: pd.DataFrame, rows: NDArray[np.int64], most: int) -> list[int]:
    """Return the rows of a frame that took longest, the longest first."""
    duration_ns = frame["duration_ns"].to_numpy()[rows]
    return [int(row) for row in rows[np.argsort(-duration_ns, kind="stable")[:most]]]


def longest(trace: Trace, rows: NDArray[np.int64], detail: str = "") -> tuple[EventReference, ...]:
    """Return the longest of some host calls."""
    most = most_time(trace.host_calls, rows, MOST_ROWS)
    return tuple(event_references.host_call(trace, row, detail=detail) for row in most)


def lines(trace: Trace, rows: NDArray[np.int64], most: int = MOST_LINES) -> tuple[SourceLine, ...]:
    """Return the user's lines that led to the longest of some host calls; none without stacks."""
    longest_rows = most_time(trace.host_calls, rows, most)
    return event_references.source_lines(
        event_references.line_of_host_call(trace, row) for row in longest_rows
    )


def lines_around(trace: Trace, frame: pd.DataFrame, rows: list[int]) -> tuple[SourceLine, ...]:
    """Return the user's lines around some events of the host; none without stacks."""
    events = (frame.iloc[row] for row in rows)
    return event_references.source_lines(
        event_references.source_line(
            trace, str(event["thread"]), int(event["start_ns"]), int(event["end_ns"])
        )
        for event in events
    )
