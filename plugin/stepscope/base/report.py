"""What stepscope hands out: the answers about a log, as frozen wire types.

`stepscope advise --format json` prints one `Report`; its JSON Schema is `stepscope schema`.
Fields are only ever added within a schema number. Every number's name ends in its unit:
`_ns` nanoseconds, `_bytes` bytes, `_share` a fraction from 0 to 1, `_count` a plain number.
"""

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

Severity = Literal["critical", "warning", "info"]
Confidence = Literal["high", "medium", "low"]
Status = Literal[
    "found", "rejected", "passed", "cannot-tell", "not-applicable", "failed", "suppressed"
]
"""What a rule said of a recording: `found` something to change; `rejected` what looks like a fault
and costs nothing here; `passed`: it looked and there is nothing; `cannot-tell`: what it needs was
not recorded, or is damaged; `not-applicable`: the recording has nothing of what it is about;
`failed`: a defect of the rule; `suppressed`: found, and put aside by a person with a reason."""
Effort = Literal["flag", "hour", "day"]
"""What a fix takes: an argument or a line; an hour of who knows the code; a day or more."""
Risk = Literal["none", "numerics", "memory", "behaviour"]
"""What a fix may change beside the time: results, the memory needed, or what the program does."""
LifeCycle = Literal["preview", "stable", "deprecated"]
SuppressedBy = Literal["", "configuration", "baseline", "recording"]
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
Nature = Literal["damage", "gap", "note"]
Effect = Literal["none", "low", "withheld"]


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place in the page that shows what a piece of evidence is about."""

    view: View
    search: str | None = None
    """Text for the view's search box."""
    group: str | None = None
    """The grouping that the view's table should use."""
    step: int | None = None
    """The number in `ProfilerStep#N`."""
    start_ns: int | None = None
    end_ns: int | None = None
    trace: str | None = None
    """Opaque id of the recording, where it is another than the outcome's."""
    source: str | None = None
    """A line of the user's program: `train.py(12): forward`."""
    rank: int | None = None


class Evidence(msgspec.Struct, frozen=True):
    """One measured fact behind a finding: a label, a value with its unit, and where to see it."""

    label: str
    value: int | float | str
    unit: Unit
    link: Link | None = None


class EventReference(msgspec.Struct, frozen=True):
    """One event of the trace that shows the problem."""

    name: str
    track: str
    """Where it ran: `thread 4711`, `GPU 0 stream 7`."""
    start_ns: int
    """From the trace's first event."""
    duration_ns: int
    detail: str = ""
    """What matters about it here: bytes and direction, the source line, the owning operator."""
    event: int | None = None
    """Its place among the events of the file, which names it in every table; None: unknown."""


class EvidenceColumn(msgspec.Struct, frozen=True):
    """A column of a table of evidence, and how its cells are to be read."""

    label: str
    unit: Unit


class EvidenceRow(msgspec.Struct, frozen=True):
    """A row of a table of evidence; a cell is None where its value is not known."""

    cells: tuple[int | float | str | None, ...]
    link: Link | None = None


class EvidenceTable(msgspec.Struct, frozen=True):
    """What a finding is made of: its kernels, operators, source lines, ranks; the worst first."""

    label: str
    columns: tuple[EvidenceColumn, ...]
    rows: tuple[EvidenceRow, ...]


class SourceLine(msgspec.Struct, frozen=True):
    """A line of the user's program that a finding is about."""

    path: str
    line: int
    function: str = ""


class Fix(msgspec.Struct, frozen=True):
    """What to change, how to see that it worked, and what it may cost."""

    summary: str
    code: str = ""
    language: str = "python"
    verify: str = ""
    caveats: tuple[str, ...] = ()


class ClaimReport(msgspec.Struct, frozen=True):
    """What a finding could save, per step where there are steps, else over the window.

    `gross_ns` is the finding alone, at most; `net_*` what is left once every nanosecond that
    another finding also claims has been given to one of them.
    """

    gross_ns: int
    net_low_ns: int
    net_high_ns: int
    net_share: float
    """`net_high_ns` as a share of the step (or window)."""
    method: str
    """One sentence that says how it was reckoned."""
    steps: str = ""
    """Numbers of the steps that hold some of it, as ranges: `3-9, 12`."""


class Outcome(msgspec.Struct, frozen=True):
    """What one rule said of one worker's recording."""

    rule: str
    title: str
    category: str
    status: Status
    worker: str
    span: str
    trace: str = ""
    """Opaque id of the recording: `WorkerReport.trace` of the one that this is about."""
    severity: Severity | None = None
    confidence: Confidence | None = None
    claim: ClaimReport | None = None
    message: str = ""
    """What was measured, in one or two plain sentences with this trace's numbers."""
    why: str = ""
    """Why the state that the rule names costs time."""
    evidence: tuple[Evidence, ...] = ()
    events: tuple[EventReference, ...] = ()
    fix: Fix | None = None
    reason: str | None = None
    """Why the rule does not apply, failed, or was suppressed."""
    remedy: str | None = None
    """The line of code that would record what the rule lacks."""
    links: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """What is wrong with the recording, so that this answer is not to be relied upon."""
    tables: tuple[EvidenceTable, ...] = ()
    locations: tuple[SourceLine, ...] = ()
    """Lines of the user's program that it is about, the costliest first; empty without stacks."""
    effort: Effort | None = None
    risk: Risk | None = None
    life_cycle: LifeCycle = "stable"
    is_symptom: bool = False
    """True where it names no cause, and therefore claims nothing."""
    fingerprint: str = ""
    """The same in every recording of the same code: of rule, place and kernels, not of numbers."""
    package: str = ""
    """The package that the rule comes from; empty for stepscope's own."""
    culprit: str = ""
    """What costs the time, as a verdict names it: `the DataLoader`; empty where nothing does."""
    suppressed_by: SuppressedBy = ""
    """Who put it aside; `reason` says why."""
    baseline: BaselineState = ""
    """How it stands to the baseline that was given; empty where none was."""
    blamed: tuple[str, ...] = ()
    """Of a rule over the run: ids of the recordings that are the cause, such as a late rank's."""


class HealthExample(msgspec.Struct, frozen=True):
    """One place in the file where a thing was found."""

    offset_bytes: int
    """From the beginning of the JSON document, inflated where the file is compressed."""
    text: str
    """What stands there, or which event that is and what is odd about it."""
    start_ns: int | None = None
    """When the event begins, from the trace's first event; None where it has no time."""


class HealthItem(msgspec.Struct, frozen=True):
    """Something about the file itself that a reader should know."""

    kind: str
    severity: Severity
    count: int
    message: str
    remedy: str = ""
    nature: Nature = "note"
    """`damage`: something is wrong or lost; `gap`: it was never recorded; `note`: good to know."""
    of_count: int | None = None
    """How many there are of what `count` counts, damaged or not; None where that says nothing."""
    action: str = ""
    """What was done about it, in words to follow `message`; empty where nothing was."""
    lost_bytes: int = 0
    """Bytes of the document that gave nothing."""
    examples: tuple[HealthExample, ...] = ()
    effect: Effect = "none"
    """What becomes of everything in `affects`: low confidence, or no answer at all."""
    affects: tuple[str, ...] = ()
    """Ids of rules, and names of what else is shown, that rest on what is damaged."""


class RecordNext(msgspec.Struct, frozen=True):
    """Something that was not recorded, and the line of code that records it next time."""

    flag: str
    why: str
    """What it would show: a sentence."""
    code: str
    """One line, as it stands in `WorkerReport.profile_call`."""


class StepReport(msgspec.Struct, frozen=True):
    """The mean step. Without steps, `count` is 0 and the figures are of the whole window."""

    count: int
    mean_ns: int
    standard_deviation_ns: int
    breakdown_ns: dict[str, int]
    """Category to nanoseconds of the mean step; the values sum to `mean_ns`."""


class BudgetLine(msgspec.Struct, frozen=True):
    """One part of the mean step (without steps: of the window); the parts sum to the whole."""

    category: str
    label: str
    time_ns: int
    share: float
    recoverable_low_ns: int
    recoverable_high_ns: int
    """What all findings together could win back of it, each nanosecond counted once."""
    rules: tuple[str, ...]
    """The rules whose findings that is, the one that wins most first."""


class OverallStatus(msgspec.Struct, frozen=True):
    """Where a recording stands when all rules have spoken, with the numbers that say so."""

    state: Literal["found", "healthy", "not-applicable", "cannot-tell"]
    message: str


class DeviceReport(msgspec.Struct, frozen=True):
    """How one device was used within the window."""

    id: int
    name: str
    busy_share: float
    """Union of kernels, copies and memory sets over the window."""
    kernel_busy_share: float
    sm_efficiency_share: float | None
    """Duration-weighted min(1, blocks per SM) over the window; None where not recorded."""
    occupancy_share: float | None
    """Duration-weighted estimated achieved occupancy of kernels that report one."""
    tensor_core_share: float | None
    """Share of kernel time in kernels that use matrix units; None where they cannot be told."""
    memory_peak_bytes: int | None
    """Most that torch had taken from it at once: reserved, or where not recorded allocated."""
    memory_capacity_bytes: int | None
    notes: dict[str, str]
    """For each figure that is None, why, and what would record it; for one that damage to the
    recording makes unreliable, what that is."""


class RunSetting(msgspec.Struct, frozen=True):
    """One setting of the run, as the trace handler recorded it."""

    group: str
    """What it is a setting of, as it is shown: `DataLoader`, `Device × 8`."""
    subject: str
    """The same as it was recorded: `dataloaders[0]`."""
    name: str
    label: str
    value: int | float | str
    """`on` or `off` of what is switched."""
    unit: Unit


class WorkerReport(msgspec.Struct, frozen=True):
    """One worker's recording: one trace file."""

    trace: str
    """Opaque id of the recording, as the API names it."""
    name: str
    span: str
    rank: int | None
    events: int
    dialect: str
    synthetic: bool
    """True where the trace was written by stepscope's synthesiser, not recorded."""
    verdict: str
    """One plain sentence: the step, how busy the device is, what costs most."""
    step: StepReport
    devices: tuple[DeviceReport, ...]
    idle_ns: dict[str, int]
    """Idle nanoseconds of the busiest device by cause, per step; sums to its idle time."""
    health: tuple[HealthItem, ...]
    inflated_bytes: int = 0
    """How long the JSON document is, as far as it was read; 0 where that is not known."""
    reader: str = ""
    """Which of stepscope's readers read it."""
    producer: str = ""
    """What wrote the file, by what stands in it."""
    fingerprint: str = ""
    """The same for two recordings with the same events only."""
    record_next: tuple[RecordNext, ...] = ()
    """What was not recorded; empty where nothing is missing."""
    profile_call: str = ""
    """Python that records all of it, and what was recorded already, ready to be pasted."""
    budget: tuple[BudgetLine, ...] = ()
    """Where the time goes, and how much of each part could be won back."""
    standing: OverallStatus | None = None
    """None where no rules were asked."""
    file: str = ""
    """The name of its file, without the folder."""
    settings: tuple[RunSetting, ...] = ()
    """What the trace handler recorded of the run; empty where it did not write the file."""
    host: str = ""
    """The machine's name; empty where it was not recorded."""
    groups: tuple[str, ...] = ()
    """Parts of the job that it belongs to: `pipeline stage 2 of 4`, `tensor-parallel group 3 of 8`;
    empty where nothing tells."""
    world_size: int | None = None
    """Ranks of the job; None: not recorded."""
    is_training: bool | None = None
    """Whether a backward pass or an optimizer's step was recorded; None where no rules were asked.
    """
    wait_ns: int | None = None
    """How long it waits a step for other ranks in collectives while nothing computes; None: that
    cannot be told."""


class RepresentativeTrace(msgspec.Struct, frozen=True):
    """One of the few recordings of a run to look at."""

    kind: Literal["slowest", "fastest", "median", "odd"]
    """By its own work, without waiting for others; `odd`: unlike the others in another figure."""
    trace: str
    """Id of the recording."""
    rank: int | None
    name: str
    """The worker's."""
    reason: str
    """Why this one: sentences."""


class JobSaving(msgspec.Struct, frozen=True):
    """What the whole job could save, at least and at most: estimated in `advice/job_savings.py`."""

    low_share: float
    high_share: float
    """Of the job's step, and so of each device's time."""
    low_gpu_hours: float | None = None
    high_gpu_hours: float | None = None
    """In a day: that share of the job's devices for 24 hours; None where these are not known."""
    low_money: float | None = None
    high_money: float | None = None
    """In a day, by the price that was given, in its currency; None where none was."""


class JobReport(msgspec.Struct, frozen=True):
    """The job that a run is of: its devices, and what all findings together could save in a day."""

    step_ns: int
    """Its mean step: the longest of its recordings'."""
    gpu_count: int | None = None
    """None: that is not known."""
    gpu_source: str = ""
    """What tells their number: words to follow it."""
    gpu_hour_price: float | None = None
    is_asked: bool = False
    """Whether the user gave a number of devices or a price."""
    total: JobSaving | None = None
    """Of all findings together, which is not the sum of each one's. None where it is withheld."""
    withheld: str = ""
    """Why nothing is told of the job: a sentence; empty where something is."""
    method: str = ""
    """How it was reckoned, and what that takes for granted."""


class RelatedFinding(msgspec.Struct, frozen=True):
    """What recordings that are blamed have to say of themselves, and their peers have not."""

    rule: str
    title: str
    trace: str
    """Id of the recording in which it costs most beyond its peers."""
    rank: int | None
    name: str
    """The worker's."""
    is_only_there: bool
    """Whether the rule found nothing in any of its peers."""
    net_high_ns: int | None = None
    """What it could save there a step at most; None: it claims nothing."""
    peers_net_high_ns: int | None = None
    """The same in the median peer, 0 where it was not found."""
    where: str = ""
    """In which of the recordings that are blamed, for people: `ranks 256-511`."""
    trace_count: int = 1
    """How many recordings these are."""


class MergedOutcome(msgspec.Struct, frozen=True):
    """What one rule found in several recordings of a run, once."""

    outcome: Outcome
    """Of the recording in which it costs most, or is most serious."""
    traces: tuple[str, ...]
    """Ids of the recordings in which it was found; empty for a rule about the whole run."""
    of_count: int
    """How many recordings the rule could judge."""
    where: str
    """In which of them, for people: `ranks 0-3 and 7 of 8`, `all 4 recordings`."""
    net_low_ns: int | None = None
    net_median_ns: int | None = None
    net_high_ns: int | None = None
    """Least, median and most of what could be saved a step in one of them; None: nothing claimed.
    Ranks wait for each other: these are not to be added."""
    ranks: str = ""
    """The ranks in which it was found, as ranges: `0-3, 7`; empty where a recording has none."""
    hosts: tuple[str, ...] = ()
    """Machines all of whose recorded ranks have it, where no other rank has it, nor all."""
    group: str = ""
    """The part of the job all of whose recorded ranks have it, where no other rank has it."""
    steps: str = ""
    """Numbers of the steps that hold some of it in any recording, as ranges; empty where that
    cannot be told."""
    when: str = ""
    """In which steps, for people: `in every step`, `in steps 3 and 7 of 10`; empty where that
    cannot be told."""
    related: tuple[RelatedFinding, ...] = ()
    """What the recordings that it blames say of themselves, differently from their peers; the most
    telling first."""
    related_more: int = 0
    """How many such findings there are besides."""
    job_saving: JobSaving | None = None
    """What the job could save if this alone were mended; None where it claims nothing, or where
    that cannot be told."""


class RunReport(msgspec.Struct, frozen=True):
    """A run: its workers' recordings and what every rule said of each, and of all of them."""

    name: str
    workers: tuple[WorkerReport, ...]
    outcomes: tuple[Outcome, ...]
    """Of each recording, by its `trace`; those of rules over the run have an empty one."""
    merged: tuple[MergedOutcome, ...] = ()
    """Findings of all recordings, each once, the most serious first."""
    verdict: str = ""
    """One plain sentence for the run; of a single recording, its own."""
    job: JobReport | None = None
    """None of a run without recordings."""
    representatives: tuple[RepresentativeTrace, ...] = ()
    """The few recordings to look at, of several ranks; empty where ranks cannot be compared."""


class Problem(msgspec.Struct, frozen=True):
    """A file or folder that could not be read, and what to do about it."""

    path: str
    message: str
    remedy: str


class Report(msgspec.Struct, frozen=True):
    """Everything `stepscope advise` found."""

    runs: tuple[RunReport, ...]
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""
    notes: tuple[str, ...] = ()
    """What the user should know of the asking itself: suppressions that put nothing aside."""


class FileHealth(msgspec.Struct, frozen=True):
    """What one file is worth. Fields are `WorkerReport`'s where they have its names."""

    path: str
    run: str
    name: str
    span: str
    rank: int | None
    file_bytes: int
    inflated_bytes: int
    events: int
    reader: str
    dialect: str
    producer: str
    synthetic: bool
    fingerprint: str
    health: tuple[HealthItem, ...]
    record_next: tuple[RecordNext, ...]
    profile_call: str
    settings: tuple[RunSetting, ...] = ()


class HealthReport(msgspec.Struct, frozen=True):
    """Everything `stepscope health` found."""

    files: tuple[FileHealth, ...]
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `Report`."""
    return msgspec.json.schema(Report)
