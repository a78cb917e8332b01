"""What rules on the device's own work have in common: some of its work, and the time it takes.

A faster kernel saves time only where the device, not the host, is the limit. Where it nowhere is,
what looks like a fault is rejected with the numbers that say so.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.event_references import lines_of_device_events
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import alone
from stepscope.analyses.operators.costs import owners_of_device_events
from stepscope.base.calibration import Factor
from stepscope.base.findings import EventReference, EvidenceColumn, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import duration, share
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, Finding, RuledOut, RuleResult
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.claimable_time import claimed_ns, is_worth_a_word

HOST_IS_THE_LIMIT = (
    "Less device work would save next to nothing now: the host launches too late, and is the limit."
)
NONE = -1
MOST_ROWS = 10
MOST_LINES = 5
MOST_EVENTS = 10
MOST_ASKED = 10_000
"""Pieces of work, the longest, whose source lines are looked up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """Some of the main device's work within the window."""

    rows: NDArray[np.int64]
    """Rows of `device_events`, in the order they began."""
    time_ns: int
    """Sum of their durations."""
    whole_ns: int
    """What it is a part of: the sum of all kernels' durations, or of all the device's work."""

    @property
    def share(self) -> float:
        """How much of the whole it is, 0 to 1."""
        return self.time_ns / self.whole_ns if self.whole_ns else 0.0


def rows_in_window(trace: Trace) -> NDArray[np.int64]:
    """Return the main device's rows of `device_events` that began within the window.

    Raises:
        MissingDataError: no device event was recorded.
        NotApplicableError: the machine has no device.
    """
    rows = requirements.main_device(trace).rows
    start = trace.device_events["start_ns"].to_numpy()[rows]
    within = window(trace)
    return rows[(start >= within.start_ns) & (start < within.device_end_ns)]


def work(
    trace: Trace,
    rows: NDArray[np.int64],
    is_wanted: NDArray[np.bool_],
    *,
    of_kernels: bool = True,
) -> Work:
    """Return the wanted ones (parallel to `device_events`) among rows, as a part of all of them."""
    events = trace.device_events
    took = events["duration_ns"].to_numpy()[rows]
    is_kernel = are_kernels(trace)[rows]
    wanted = is_wanted[rows]
    return Work(
        rows=rows[wanted],
        time_ns=int(took[wanted].sum()),
        whole_ns=int(took[is_kernel].sum() if of_kernels else took.sum()),
    )


def kernels_named(trace: Trace, is_wanted: Callable[[str], object]) -> NDArray[np.bool_]:
    """Tell which of `device_events` are kernels of such a name."""
    return np.asarray(name_mask(trace.device_events["name"], is_wanted) & are_kernels(trace))


def are_kernels(trace: Trace) -> NDArray[np.bool_]:
    """Tell which of `device_events` are kernels, not copies or memory sets."""
    return np.asarray(trace.device_events["kind"].to_numpy() == int(Kind.KERNEL))


def owned_by(trace: Trace, is_wanted: Callable[[str], object]) -> NDArray[np.bool_]:
    """Tell which of `device_events` the innermost operator launched, by that operator's name."""
    owner = links(trace).owner_of_device_event
    return np.asarray(np.append(name_mask(trace.host_calls["name"], is_wanted), False)[owner])


def claim(trace: Trace, found: Work, factor: Factor, method: str) -> Claim:
    """Claim the times in which the device does this work and nothing else."""
    return Claim(alone(trace, found.rows), factor, method, is_device_work=True)


def answer(trace: Trace, finding: Finding) -> RuleResult:
    """Return a finding about device work; rejected, where faster work would save next to nothing.

    What claims less than a finding must is no finding: either it is little time at all, or faster
    work would only wait for the host.
    """
    if is_worth_a_word(trace, finding.claims):
        return finding
    whole_ns = window(trace).reference_ns
    won = claimed_ns(trace, finding.claims) / whole_ns
    took = [(each.factor.high, intervals.duration_ns(each.intervals)) for each in finding.claims]
    most = sum(high * took_ns for high, took_ns in took) / whole_ns
    is_little = most < INFO_SHARE
    little = f"At most {share(most)} of the window could be saved."
    return RuledOut(
        message=f"{finding.message} {little if is_little else HOST_IS_THE_LIMIT}",
        evidence=(
            *finding.evidence,
            facts.fraction("Of the window", sum(took_ns for _, took_ns in took) / whole_ns),
            facts.fraction("Of the window, what could be won", won),
        ),
        tables=finding.tables,
        events=finding.events,
    )


def taking(trace: Trace, found: Work, whole: str = "the kernels' time") -> str:
    """Say how long it takes: `take 3.10 ms a step, 9.3 % of the kernels' time`."""
    lasting = duration(window(trace).per_step(found.time_ns))
    return f"{lasting} {phrases.per_step(trace)}, {share(found.share)} of {whole}"


def by_operator(
    trace: Trace, found: Work, label: str, who: NDArray[np.int64] | None = None
) -> EvidenceTable:
    """Return who launched what, the longest in all first.

    `who` are the rows of `host_calls` that are named, parallel to the work's rows, in place of the
    calls that launched it.
    """
    who = owners_of_device_events(trace)[found.rows] if who is None else who
    operator, name, group, took = _grouped(trace, found, who)
    count = np.bincount(group)
    order = np.argsort(-took, kind="stable")[:MOST_ROWS]
    columns = (("Operator", "text"), ("Kernel", "text"), ("Calls", "count"), ("Time", "ns"))
    return EvidenceTable(
        label=label,
        columns=(
            *(EvidenceColumn(label=text, unit=unit) for text, unit in columns),  # type: ignore[arg-type]
            EvidenceColumn(label="Share", unit="share"),
        ),
        rows=tuple(
            facts.row(
                operator[row],
                name[row],
                int(count[row]),
                int(took[row]),
                int(took[row]) / found.whole_ns,
                link=Link(view="kernels", search=name[row]),
            )
            for row in order.tolist()
        ),
    )


def _grouped(
    trace: Trace, found: Work, who: NDArray[np.int64]
) -> tuple[list[str | None], list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return of each operator and kernel their names, of each row the group, and their times."""
    names, ran = trace.host_calls["name"].cat, trace.device_events["name"].cat
    texts = [*map(str, names.categories), None]
    owner = np.append(names.codes.to_numpy(), NONE)[who].astype(np.int64)
    width = len(ran.categories) + 1
    group, keys = pd.factorize(owner * width + ran.codes.to_numpy()[found.rows] + 1)
    took = sums(_durations(trace, found.rows), group, len(keys))
    operators = [texts[code] for code in (keys // width).tolist()]
    kernels = [short(str(ran.categories[code - 1])) for code in (keys % width).tolist()]
    return operators, kernels, group, took


def longest(trace: Trace, found: Work, say: str = "") -> tuple[EventReference, ...]:
    """Return the longest events of the work; `say` is what is said of each."""
    chosen = _longest(trace, found, MOST_EVENTS)
    return tuple(event_references.device_event(trace, row, detail=say) for row in chosen.tolist())


def lines(trace: Trace, found: Work) -> tuple[SourceLine, ...]:
    """Return the user's lines that led to most of it; none where no stacks were recorded."""
    rows = _longest(trace, found, MOST_ASKED)
    told = lines_of_device_events(trace, rows)
    took = _durations(trace, rows)
    known = told.codes >= 0
    total = np.bincount(told.codes[known], weights=took[known], minlength=len(told.categories))
    most = np.argsort(-total, kind="stable")[:MOST_LINES]
    most = most[total[most] > 0]
    return event_references.source_lines(str(told.categories[row]) for row in most.tolist())


def _durations(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(trace.device_events["duration_ns"].to_numpy()[rows])


def _longest(trace: Trace, found: Work, most: int) -> NDArray[np.int64]:
    """Return the longest rows, the longest first; of equals the first."""
    took = _durations(trace, found.rows)
    if len(took) > most:
        least = np.partition(took, len(took) - most)[len(took) - most]
        kept = np.flatnonzero(took >= least)
    else:
        kept = np.arange(len(took))
    order = kept[np.argsort(-took[kept], kind="stable")][:most]
    return np.asarray(found.rows[order])
