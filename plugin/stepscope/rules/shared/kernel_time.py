"""Device work of one kind, such as copies or conversions, and the time it takes.

A faster kernel saves time only where the device, not the host, is the limit. Elsewhere the finding
is ruled out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.event_references import lines_of_device_events
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.operators.costs import owners_of_device_events
from stepscope.base.calibration import Factor
from stepscope.base.findings import EventReference, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import share
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, Finding, RuleResult
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.claimable_time import claimed_ns
from stepscope.rules.shared.step_savings import is_worth_reporting

HOST_IS_THE_LIMIT = (
    "Less device work would save next to nothing now: the host launches too late, and is the limit."
)
NONE = -1
MOST_ROWS = 10
MOST_LINES = 5
MOST_EVENTS = 10
MOST_SOURCED = 10_000
"""Pieces of work, the longest, whose source lines are determined."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Some of the main device's work in the window."""

    rows: NDArray[np.int64]
    """Rows of `device_events`, in the order they began."""
    time_ns: int
    """Sum of their durations."""
    whole_ns: int
    """Sum of the durations of all kernels, or of all the device's work."""

    @property
    def share(self) -> float:
        """Fraction of the whole, 0 to 1."""
        return self.time_ns / self.whole_ns if self.whole_ns else 0.0


def rows_in_window(trace: Trace) -> NDArray[np.int64]:
    """Return the main device's rows of `device_events` that began in the window.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    rows = requirements.main_device(trace).rows
    start = trace.device_events["start_ns"].to_numpy()[rows]
    span = window(trace)
    return rows[(start >= span.device_start_ns) & (start < span.device_end_ns)]


def work_of(
    trace: Trace, rows: NDArray[np.int64], mask: NDArray[np.bool_], *, of_kernels: bool = True
) -> Work:
    """Return the rows that a mask of `device_events` selects, as a part of all the rows."""
    duration_ns = trace.device_events["duration_ns"].to_numpy()[rows]
    selected, is_kernel = mask[rows], are_kernels(trace)[rows]
    return Work(
        rows=rows[selected],
        time_ns=int(duration_ns[selected].sum()),
        whole_ns=int(duration_ns[is_kernel].sum() if of_kernels else duration_ns.sum()),
    )


def kernels_named(trace: Trace, matches: Callable[[str], object]) -> NDArray[np.bool_]:
    """Return a mask of `device_events`: kernels whose name matches."""
    return np.asarray(name_mask(trace.device_events["name"], matches) & are_kernels(trace))


def are_kernels(trace: Trace) -> NDArray[np.bool_]:
    """Return a mask of `device_events`: kernels, not copies or memory sets."""
    return np.asarray(trace.device_events["kind"].to_numpy() == int(Kind.KERNEL))


def owned_by(trace: Trace, matches: Callable[[str], object]) -> NDArray[np.bool_]:
    """Return a mask of `device_events`: launched by an innermost operator whose name matches."""
    owner = links(trace).owner_of_device_event
    return np.asarray(np.append(name_mask(trace.host_calls["name"], matches), False)[owner])


def claim(trace: Trace, work: Work, factor: Factor, method: str) -> Claim:
    """Claim the times in which the device does this work and nothing else."""
    return Claim(exclusive_device_time(trace, work.rows), factor, method, is_device_work=True)


def result_of(
    trace: Trace, work: Work, factor: Factor, method: str, finding: Finding
) -> RuleResult:
    """Return a finding with the work's longest events, source lines and claim, or rule it out."""
    complete = replace(
        finding,
        events=longest(trace, work),
        locations=lines(trace, work),
        claims=(claim(trace, work, factor, method),),
    )
    return result(trace, complete)


def result(trace: Trace, finding: Finding) -> RuleResult:
    """Return a finding about device work, or rule it out where too little could be saved.

    Then either it is little time, or faster work would only wait for the host.
    """
    if is_worth_reporting(trace, finding.claims):
        return finding
    whole_ns = window(trace).reference_ns
    costs = [(one.factor.high, intervals.duration_ns(one.intervals)) for one in finding.claims]
    most = sum(high * cost_ns for high, cost_ns in costs) / whole_ns
    little = f"At most {share(most)} of the window could be saved."
    return finding.ruled_out(
        f"{finding.message} {little if most < INFO_SHARE else HOST_IS_THE_LIMIT}",
        facts.fraction("Of the window", sum(cost_ns for _, cost_ns in costs) / whole_ns),
        facts.fraction(
            "Potential saving, of the window", claimed_ns(trace, finding.claims) / whole_ns
        ),
    )


def time_and_fraction(trace: Trace, work: Work, whole: str = "the kernels' time") -> str:
    """Return its time as a phrase: `3.10 ms per step, 9.3 % of the kernels' time`."""
    return f"{phrases.time(trace, work.time_ns)}, {share(work.share)} of {whole}"


def by_operator(
    trace: Trace, work: Work, label: str, callers: NDArray[np.int64] | None = None
) -> EvidenceTable:
    """Return a row per operator and kernel, the longest in total first.

    `callers` are rows of `host_calls`, parallel to the work's rows, that are named in place of the
    calls that launched it.
    """
    callers = owners_of_device_events(trace)[work.rows] if callers is None else callers
    called, ran = trace.host_calls["name"].cat, trace.device_events["name"].cat
    code = np.append(called.codes.to_numpy(), NONE)[callers].astype(np.int64)
    width = len(ran.categories) + 1
    group, keys = pd.factorize(code * width + ran.codes.to_numpy()[work.rows] + 1)
    time_ns, count = sums(_durations(trace, work.rows), group, len(keys)), np.bincount(group)
    operators = [*map(str, called.categories), None]
    kernels = [short(str(ran.categories[code - 1])) for code in (keys % width).tolist()]
    return facts.table(
        label,
        {
            "Operator": "text",
            "Kernel": "text",
            "Calls": "count",
            "Time in total": "ns",
            "Fraction": "share",
        },
        (
            facts.row(
                operators[keys[row] // width],
                kernels[row],
                count[row],
                time_ns[row],
                int(time_ns[row]) / work.whole_ns,
                link=Link(view="kernels", search=kernels[row]),
            )
            for row in np.argsort(-time_ns, kind="stable")[:MOST_ROWS].tolist()
        ),
    )


def longest(trace: Trace, work: Work, detail: str = "") -> tuple[EventReference, ...]:
    """Return the longest events of the work, each with the detail."""
    rows = _longest(trace, work, MOST_EVENTS).tolist()
    return tuple(event_references.device_event(trace, row, detail=detail) for row in rows)


def lines(trace: Trace, work: Work) -> tuple[SourceLine, ...]:
    """Return the user's lines that led to most of it; none where no stacks were recorded."""
    rows = _longest(trace, work, MOST_SOURCED)
    line = lines_of_device_events(trace, rows)
    has_line = line.codes >= 0
    weights = _durations(trace, rows)[has_line]
    total = np.bincount(line.codes[has_line], weights=weights, minlength=len(line.categories))
    most = np.argsort(-total, kind="stable")[:MOST_LINES]
    most = most[total[most] > 0]
    return event_references.source_lines(str(line.categories[row]) for row in most.tolist())


def _durations(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(trace.device_events["duration_ns"].to_numpy()[rows])


def _longest(trace: Trace, work: Work, most: int) -> NDArray[np.int64]:
    """Return the longest rows, the longest first; of equals the first."""
    duration_ns = _durations(trace, work.rows)
    candidates = np.arange(len(duration_ns))
    if len(duration_ns) > most:
        least = np.partition(duration_ns, len(duration_ns) - most)[len(duration_ns) - most]
        candidates = np.flatnonzero(duration_ns >= least)
    order = candidates[np.argsort(-duration_ns[candidates], kind="stable")][:most]
    return np.asarray(work.rows[order])
