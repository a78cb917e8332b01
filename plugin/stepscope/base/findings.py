"""Findings as frozen wire types: the result of a rule, its evidence, its fix and its saving."""

from typing import Literal

import msgspec

Severity = Literal["critical", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Status = Literal[
    "found", "rejected", "passed", "cannot-tell", "not-applicable", "failed", "suppressed"
]
"""Result of a rule for a trace.

`found`: something to change; `rejected`: ruled out, since it resembles a fault but costs nothing
here; `passed`: checked, and there is nothing to change; `cannot-tell`: inconclusive, since data
that the rule needs is missing or damaged; `not-applicable`: the trace has none of the rule's
subject; `failed`: a defect of the rule; `suppressed`: found, and suppressed by the user with a
reason.
"""
Effort = Literal["flag", "hour", "day"]
"""Effort of a fix: an argument or a line; an hour for a user who knows the code; a day or more."""
Risk = Literal["none", "numerics", "memory", "behaviour"]
"""Side effect of a fix: on results, on memory, or on the behaviour of the program."""
LifeCycle = Literal["preview", "stable", "deprecated"]
SuppressedBy = Literal["", "configuration", "baseline", "recording"]
TimedStep = Literal["recorded", "unrecorded"]
"""A step as recorded, or as it runs without the profiler, which slows the host."""
HoldsIn = Literal["both", "recorded", "unrecorded", "neither"]
"""The steps of which a finding saves 1 % or more."""
BaselineState = Literal["", "new", "unchanged", "worse"]
View = Literal[
    "advice",
    "overview",
    "timeline",
    "operators",
    "kernels",
    "flame",
    "modules",
    "memory",
    "distributed",
    "compare",
    "trends",
    "runs",
    "health",
]
Unit = Literal["ns", "bytes", "share", "count", "bytes/s", "text", "code"]

CRITICAL_SHARE = 0.20
WARNING_SHARE = 0.05
INFO_SHARE = 0.01
"""Fraction of the window that could be saved: 5 and 20 % as in xprof for input, 5 % as in
torch-tb-profiler."""


def severity_of(share: float) -> Severity | None:
    """Return the severity of a fraction of the window; None: not worth reporting."""
    if share >= CRITICAL_SHARE:
        return "critical"
    if share >= WARNING_SHARE:
        return "warning"
    return "info" if share >= INFO_SHARE else None


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A view of the page, with the selection that shows a piece of evidence."""

    view: View
    search: str | None = None
    """Text for the view's search box."""
    group: str | None = None
    """Grouping of the view's table."""
    step: int | None = None
    """The number in `ProfilerStep#N`."""
    start_ns: int | None = None
    end_ns: int | None = None
    trace: str | None = None
    """Opaque id of the trace, if it differs from the outcome's."""
    source: str | None = None
    """A line of the user's program: `train.py(12): forward`."""
    rank: int | None = None


class Evidence(msgspec.Struct, frozen=True):
    """One measured fact behind a finding: a label, a value with its unit, and a link to it."""

    label: str
    value: int | float | str
    unit: Unit
    link: Link | None = None


class EventReference(msgspec.Struct, frozen=True):
    """One event of the trace that shows the problem."""

    name: str
    track: str
    """Thread or stream of the event: `thread 4711`, `GPU 0 stream 7`."""
    start_ns: int
    """From the trace's first event."""
    duration_ns: int
    detail: str = ""
    """Details of the event: bytes and direction, the source line, the owning operator."""
    event: int | None = None
    """Index of the event in the file, its key in every table; None if unknown."""


class EvidenceColumn(msgspec.Struct, frozen=True):
    """A column of a table of evidence, with the unit of its cells."""

    label: str
    unit: Unit


class EvidenceRow(msgspec.Struct, frozen=True):
    """A row of a table of evidence; a cell is None if its value is unknown."""

    cells: tuple[int | float | str | None, ...]
    link: Link | None = None


class EvidenceTable(msgspec.Struct, frozen=True):
    """Parts of a finding: its kernels, operators, source lines or ranks, the costliest first."""

    label: str
    columns: tuple[EvidenceColumn, ...]
    rows: tuple[EvidenceRow, ...]


class SourceLine(msgspec.Struct, frozen=True):
    """A line of the user's program that a finding is about."""

    path: str
    line: int
    function: str = ""


class Fix(msgspec.Struct, frozen=True):
    """The change that a finding suggests, how to verify it, and its caveats."""

    summary: str
    code: str = ""
    language: str = "python"
    verify: str = ""
    caveats: tuple[str, ...] = ()


MOSTLY = 1 / 3
"""Of a saving, the part that must be left for it to count as a whole."""


class DecisiveSaving(msgspec.Struct, frozen=True):
    """Saving of a finding in its decisive step; see `ClaimReport`."""

    low_ns: int
    high_ns: int
    share: float
    net_low_ns: int
    net_high_ns: int
    net_share: float

    @property
    def is_mostly_counted(self) -> bool:
        """Whether other findings count more than two thirds: then its rest ranks it."""
        return self.net_high_ns < MOSTLY * self.high_ns

    @property
    def ranked_ns(self) -> tuple[int, int]:
        """The least and the greatest saving by which it is ranked."""
        if self.is_mostly_counted:
            return self.net_low_ns, self.net_high_ns
        return self.low_ns, self.high_ns

    @property
    def ranked_share(self) -> float:
        """The greatest of these as a fraction of the step."""
        return self.net_share if self.is_mostly_counted else self.share


class ClaimedTime(msgspec.Struct, frozen=True):
    """A stretch of claimed time, from the trace's first event."""

    start_ns: int
    end_ns: int
    claimed_ns: int
    """The claimed part of it: gaps too short to be seen are not."""


class ClaimReport(msgspec.Struct, frozen=True):
    """Potential saving of a finding, per step if there are steps, otherwise over the window.

    `low_ns` to `high_ns` is what its fix alone saves; `net_*` is the part that remains after every
    nanosecond that several findings save was counted under one of them, so that net savings add
    up. Both are of the step as recorded; `unrecorded_*` are the same in the step without the
    profiler. Severity and order rest on the saving in the `decisive_step`.
    """

    low_ns: int
    high_ns: int
    share: float
    """`high_ns` as a fraction of the step (or window)."""
    net_low_ns: int
    net_high_ns: int
    net_share: float
    """`net_high_ns` as a fraction of the step (or window)."""
    method: str
    """One sentence on how the saving was estimated."""
    steps: str = ""
    """Numbers of the steps that contain some of it, as ranges: `3-9, 12`."""
    counted_under: tuple[str, ...] = ()
    """Rules whose findings count the rest of `high_ns`."""
    unrecorded_low_ns: int | None = None
    unrecorded_high_ns: int | None = None
    unrecorded_share: float | None = None
    """The first three figures in a step as it runs without the profiler, whose host is faster:
    measured by the recorder, else estimated from the cost of recorded events. None: unknown."""
    unrecorded_net_low_ns: int | None = None
    unrecorded_net_high_ns: int | None = None
    unrecorded_net_share: float | None = None
    """The net figures in that step."""
    is_measured: bool = False
    """Whether the recorder measured unrecorded steps."""
    steps_differ: bool = False
    """Whether the savings in the two steps differ by 20 % or more, and by 1 % of the step."""
    decisive_step: TimedStep = "recorded"
    """The unrecorded step where it was measured, else the step of the smaller saving; the recorded
    one where they do not differ."""
    holds_in: HoldsIn = "both"
    """The steps of which the finding alone saves 1 % or more."""
    example_times: tuple[ClaimedTime, ...] = ()
    """Claimed times at the finding's first event: those that overlap it, else the nearest; without
    an event, the longest. Empty of findings over a run."""
    step_ranges: tuple[tuple[int, int], ...] = ()
    """First and last number of each range of `steps`; empty where they are more than it shows."""

    @property
    def decisive(self) -> DecisiveSaving:
        """The saving in the decisive step."""
        recorded = DecisiveSaving(
            low_ns=self.low_ns,
            high_ns=self.high_ns,
            share=self.share,
            net_low_ns=self.net_low_ns,
            net_high_ns=self.net_high_ns,
            net_share=self.net_share,
        )
        if self.decisive_step == "recorded" or self.unrecorded_high_ns is None:
            return recorded
        return DecisiveSaving(
            low_ns=self.unrecorded_low_ns or 0,
            high_ns=self.unrecorded_high_ns,
            share=self.unrecorded_share or 0.0,
            net_low_ns=self.unrecorded_net_low_ns or 0,
            net_high_ns=self.unrecorded_net_high_ns or 0,
            net_share=self.unrecorded_net_share or 0.0,
        )

    @property
    def other_high_ns(self) -> int | None:
        """The greatest saving in the step that is not decisive; None: unknown."""
        return self.unrecorded_high_ns if self.decisive_step == "recorded" else self.high_ns

    @property
    def other_low_ns(self) -> int | None:
        """The least saving in the other step; None if it is unknown."""
        return self.unrecorded_low_ns if self.decisive_step == "recorded" else self.low_ns

    @property
    def is_covered(self) -> bool:
        """Whether other findings save all that it saves alone, in both steps."""
        is_saving = max(self.high_ns, self.unrecorded_high_ns or 0) > 0
        return is_saving and self.net_high_ns <= 0 and (self.unrecorded_net_high_ns or 0) <= 0


class Outcome(msgspec.Struct, frozen=True):
    """Result of one rule for one worker's trace."""

    rule: str
    title: str
    category: str
    status: Status
    worker: str
    span: str
    trace: str = ""
    """Opaque id of the trace: its `WorkerReport.trace`."""
    severity: Severity | None = None
    confidence: Confidence | None = None
    claim: ClaimReport | None = None
    message: str = ""
    """The measurement, in one or two sentences with this trace's numbers."""
    why: str = ""
    """Reason that the state costs time."""
    evidence: tuple[Evidence, ...] = ()
    events: tuple[EventReference, ...] = ()
    fix: Fix | None = None
    reason: str | None = None
    """Reason that the rule does not apply, failed, or was suppressed."""
    remedy: str | None = None
    """The line of code that records the data that the rule lacks."""
    links: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Damage to the trace that makes this result unreliable."""
    tables: tuple[EvidenceTable, ...] = ()
    locations: tuple[SourceLine, ...] = ()
    """Lines of the user's program that the finding is about, the costliest first; empty without
    stacks.
    """
    effort: Effort | None = None
    risk: Risk | None = None
    life_cycle: LifeCycle = "stable"
    is_symptom: bool = False
    """Whether it names no cause, and is therefore sure of no saving."""
    reports_missing_data: bool = False
    """True if it reports data missing from the run, which limits all other findings."""
    fingerprint: str = ""
    """Equal in every trace of the same code: of rule, source lines and kernels, not of numbers."""
    package: str = ""
    """The package that provides the rule; empty for stepscope's own."""
    culprit: str = ""
    """The cause of the lost time as named in a verdict: `the DataLoader`; empty if unnamed."""
    suppressed_by: SuppressedBy = ""
    """Origin of the suppression; `reason` gives its reason."""
    baseline: BaselineState = ""
    """Change relative to the given baseline; empty without a baseline."""
    blamed: tuple[str, ...] = ()
    """For a rule over the run: ids of the traces that are the cause, such as a late rank's."""
