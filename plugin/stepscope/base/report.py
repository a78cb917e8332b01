"""Reports on jobs, runs, workers and files as frozen wire types.

`stepscope advise --format json` prints one `Report`; its JSON Schema is `stepscope schema`.
Fields are only ever added within a schema number. Every number's name ends in its unit:
`_ns` nanoseconds, `_bytes` bytes, `_share` a fraction from 0 to 1, `_count` a plain number.
"""

from typing import Any, Literal

import msgspec

from stepscope.base import findings
from stepscope.base.deprecation import deprecated_names
from stepscope.base.findings import Outcome, Severity, Unit

SCHEMA_VERSION = 1
Nature = Literal["damage", "gap", "note"]
Effect = Literal["none", "low", "withheld"]


class HealthExample(msgspec.Struct, frozen=True):
    """One location in the file that demonstrates a health item."""

    offset_bytes: int
    """From the start of the JSON document, inflated if the file is compressed."""
    text: str
    """The text there, or the irregular event."""
    start_ns: int | None = None
    """Start of the event, from the trace's first event; None if it has no time."""


class HealthItem(msgspec.Struct, frozen=True):
    """A property of the file itself that affects its numbers."""

    kind: str
    severity: Severity
    count: int
    message: str
    remedy: str = ""
    nature: Nature = "note"
    """`damage`: something is wrong or lost; `gap`: it was not recorded; `note`: for information."""
    of_count: int | None = None
    """Total of the items that `count` counts, damaged or not; None if not meaningful."""
    action: str = ""
    """How stepscope handles it, as a clause after `message`; empty if it does nothing."""
    lost_bytes: int = 0
    """Bytes of the document that contribute no result."""
    examples: tuple[HealthExample, ...] = ()
    effect: Effect = "none"
    """Effect on everything in `affects`: low confidence, or withheld."""
    affects: tuple[str, ...] = ()
    """Ids of rules, and names of other parts of the page, that depend on the damaged data."""


class RecordNext(msgspec.Struct, frozen=True):
    """Something that was not recorded, and the line of code that records it next time."""

    flag: str
    why: str
    """Benefit of recording it, as a sentence."""
    code: str
    """One line of `WorkerReport.profile_call`."""


class StepReport(msgspec.Struct, frozen=True):
    """The mean step. Without steps, `count` is 0 and the numbers are for the whole window."""

    count: int
    mean_ns: int
    standard_deviation_ns: int
    breakdown_ns: dict[str, int]
    """Category to nanoseconds of the mean step; the values sum to `mean_ns`."""
    unrecorded: "UnrecordedStepReport | None" = None
    """Steps without the profiler; None if the recorder did not measure them."""


class UnrecordedStepReport(msgspec.Struct, frozen=True):
    """Steps before the window that ran without the profiler, as the recorder measured them."""

    count: int
    median_ns: int
    first_quartile_ns: int | None
    """None if the device was behind the host, whose intervals then do not show the spread."""
    third_quartile_ns: int | None
    mean_ns: int | None = None
    """With the rare slow steps; None: not recorded."""


class Outlook(msgspec.Struct, frozen=True):
    """The step with the first fixes of the advice, simulated together, and its limit then.

    Times are per step; without steps, of the whole window.
    """

    rules: tuple[str, ...]
    """Rules whose findings are fixed, at most three, in the order of the advice."""
    world: Literal["recorded", "unrecorded"]
    """`unrecorded`: of steps without the profiler, as the recorder measured them."""
    now_ns: int
    """The step without the fixes: the mean recorded or unrecorded one."""
    low_ns: int
    """The step where the fixes save most."""
    high_ns: int
    """The step where they save least; at most `now_ns`."""
    limit: Literal["host", "device", "data loading", "collectives", "launches and waits"]
    """The part that takes most of the path to the end of a step with the fixes."""
    limit_share: float
    """Its fraction of that path."""
    next_rule: str = ""
    """The next rule in the order of the advice whose fix still saves 1 % or more; empty: none."""
    next_saving_ns: int = 0
    """The most that it saves in addition."""
    next_saving_low_ns: int = 0
    """The least that it saves in addition."""
    message: str = ""
    """The outlook as sentences, which name findings by their titles."""


class PotentialSaving(msgspec.Struct, frozen=True):
    """Potential saving of all findings of a trace together: all of their fixes are simulated.

    Per step; without steps, of the window. Where the trace cannot be replayed, or a finding's
    saving is of the other step (as recorded, or without the profiler), it is the sum of the net
    savings.
    """

    low_ns: int
    high_ns: int
    low_share: float
    """The least as a fraction of the step."""
    high_share: float
    """The most as a fraction of the step."""


class BudgetLine(msgspec.Struct, frozen=True):
    """One part of the mean step (without steps: of the window); the parts sum to the whole."""

    category: str
    label: str
    time_ns: int
    share: float
    recoverable_low_ns: int
    recoverable_high_ns: int
    """Potential saving of all findings in this part, each nanosecond counted once; the parts sum
    to `WorkerReport.saving`."""
    rules: tuple[str, ...]
    """The rules of these findings, ordered by saving."""
    meaning: str = ""
    """Definition of the category: a sentence."""


class OverallStatus(msgspec.Struct, frozen=True):
    """Overall result of all rules for a trace, with the numbers behind it."""

    state: Literal["found", "healthy", "not-applicable", "cannot-tell"]
    message: str


class DeviceReport(msgspec.Struct, frozen=True):
    """Use of one device in the window."""

    id: int
    name: str
    busy_share: float
    """Union of kernels, copies and memory sets over the window."""
    kernel_busy_share: float
    sm_efficiency_share: float | None
    """Duration-weighted min(1, blocks per SM) over the window; None if not recorded."""
    occupancy_share: float | None
    """Duration-weighted estimated achieved occupancy of kernels that report one."""
    tensor_core_share: float | None
    """Fraction of kernel time in kernels that use matrix units; None if unknown."""
    memory_peak_bytes: int | None
    """Peak of the memory that torch took from the device: reserved, or else allocated."""
    memory_capacity_bytes: int | None
    notes: dict[str, str]
    """For each number that is None: the reason, and how to record it; for an unreliable number: the
    damage.
    """


class RunSetting(msgspec.Struct, frozen=True):
    """One setting of the run, as the trace handler recorded it."""

    group: str
    """Subject of the setting for display: `DataLoader`, `Device × 8`."""
    subject: str
    """The subject as recorded: `dataloaders[0]`."""
    name: str
    label: str
    value: int | float | str
    """`on` or `off` for a switch."""
    unit: Unit


class WorkerReport(msgspec.Struct, frozen=True):
    """One worker's trace: one file."""

    trace: str
    """Opaque id of the trace in the API."""
    name: str
    span: str
    rank: int | None
    events: int
    dialect: str
    synthetic: bool
    """Whether stepscope's synthesiser wrote the trace."""
    verdict: str
    """One sentence: the step, the device's utilization, the largest cost."""
    step: StepReport
    devices: tuple[DeviceReport, ...]
    idle_ns: dict[str, int]
    """Idle nanoseconds of the busiest device by cause, per step; sums to its idle time."""
    health: tuple[HealthItem, ...]
    inflated_bytes: int = 0
    """Size of the JSON document, as far as it was read; 0 if unknown."""
    reader: str = ""
    """Name of the stepscope reader that read the file."""
    producer: str = ""
    """The program that wrote the file, by its contents."""
    fingerprint: str = ""
    """Equal for two traces only if their events are equal."""
    record_next: tuple[RecordNext, ...] = ()
    """Data that was not recorded; empty if nothing is missing."""
    profile_call: str = ""
    """Python code, ready to paste, that records the missing data and all that was recorded."""
    budget: tuple[BudgetLine, ...] = ()
    """Parts of the step's time, with the potential saving in each."""
    saving: PotentialSaving | None = None
    """Potential saving of all findings together; None if no finding saves time."""
    standing: OverallStatus | None = None
    """None if no rules ran."""
    file: str = ""
    """The name of its file, without the folder."""
    settings: tuple[RunSetting, ...] = ()
    """Settings of the run that the trace handler recorded; empty if another tool wrote the file."""
    host: str = ""
    """The machine's name; empty if not recorded."""
    groups: tuple[str, ...] = ()
    """Parts of the job that it belongs to: `pipeline stage 2 of 4`, `tensor-parallel group 3 of 8`;
    empty if unknown.
    """
    world_size: int | None = None
    """Ranks of the job; None: not recorded."""
    is_training: bool | None = None
    """Whether a backward pass or an optimizer step was recorded; None if no rules ran."""
    wait_ns: int | None = None
    """Exposed time per step waiting for other ranks in collectives; None if unknown."""
    outlook: Outlook | None = None
    """None if no finding saves time, or the trace is not simulated."""
    outlook_withheld: str = ""
    """Reason for withholding the outlook although findings save time; empty otherwise."""


class RepresentativeTrace(msgspec.Struct, frozen=True):
    """A trace that represents part of a run."""

    kind: Literal["slowest", "fastest", "median", "odd"]
    """By compute time, excluding waiting for other ranks; `odd`: unlike the others."""
    trace: str
    """Id of the trace."""
    rank: int | None
    name: str
    """Name of the worker."""
    reason: str
    """Reason for its selection, as sentences."""


class JobSaving(msgspec.Struct, frozen=True):
    """Potential saving of the whole job, as estimated in `advice/job_savings.py`."""

    low_share: float
    high_share: float
    """Fraction of the job's step, and therefore of each device's time."""
    low_gpu_hours: float | None = None
    high_gpu_hours: float | None = None
    """Per day: that fraction of 24 hours of the job's devices; None if their number is unknown."""
    low_money: float | None = None
    high_money: float | None = None
    """Per day, at the given price, in its currency; None without a price."""


class JobOutlook(msgspec.Struct, frozen=True):
    """The step of a job of several ranks with the first fixes of its advice."""

    rules: tuple[str, ...]
    """Rules whose findings are fixed, at most three, in the order of the advice."""
    low_ns: int
    """The step, estimated from the savings of the ranks as the job's saving is, at least."""
    high_ns: int
    """The same at most."""
    message: str = ""
    """The outlook as a sentence, which names findings by their titles."""


class JobReport(msgspec.Struct, frozen=True):
    """The job of a run: its devices, and the potential saving of all findings per day."""

    step_ns: int
    """Mean step of the job: the longest of its traces'."""
    gpu_count: int | None = None
    """None: unknown."""
    gpu_source: str = ""
    """Source of that number, as a phrase that follows it."""
    gpu_hour_price: float | None = None
    is_asked: bool = False
    """Whether the user specified a number of devices or a price."""
    total: JobSaving | None = None
    """Of all findings together, which is not the sum of their savings; None if withheld."""
    withheld: str = ""
    """Reason for not reporting a saving of the job, as a sentence; empty if one is reported."""
    method: str = ""
    """How it was estimated, with its assumptions."""
    outlook: JobOutlook | None = None
    """None for a single rank, if no finding saves the job time, or if that is withheld."""


class RelatedFinding(msgspec.Struct, frozen=True):
    """A finding in the blamed traces that their peers do not have."""

    rule: str
    title: str
    trace: str
    """Id of the trace in which it costs most beyond its peers."""
    rank: int | None
    name: str
    """Name of the worker."""
    is_only_there: bool
    """Whether the rule found nothing in any of its peers."""
    high_ns: int | None = None
    """Maximum saving there per step; None if it claims nothing."""
    peers_high_ns: int | None = None
    """The same in the median peer, 0 if it has no such finding."""
    low_ns: int | None = None
    """Minimum saving there per step; None if it claims nothing."""
    where: str = ""
    """The blamed traces that have it, for display: `ranks 256-511`."""
    trace_count: int = 1
    """Number of these traces."""


class MergedOutcome(msgspec.Struct, frozen=True):
    """A finding of one rule in several traces of a run, merged."""

    outcome: Outcome
    """The outcome of the trace in which it costs most, or is most serious."""
    traces: tuple[str, ...]
    """Ids of the traces that have it; empty for a rule about the whole run."""
    of_count: int
    """Number of traces for which the rule had a result."""
    where: str
    """The traces that have it, for display: `ranks 0-3 and 7 of 8`, `all 4 traces`."""
    low_ns: int | None = None
    median_ns: int | None = None
    high_ns: int | None = None
    """Minimum, median and maximum potential saving per step in one trace; None if nothing is
    claimed. Ranks wait for each other, so these do not add up.
    """
    ranks: str = ""
    """The ranks that have it, as ranges: `0-3, 7`; empty if a trace has no rank."""
    hosts: tuple[str, ...] = ()
    """Machines of which all recorded ranks have it, if no other rank has it, but not all machines.
    """
    group: str = ""
    """The part of the job of which all recorded ranks have it, if no other rank has it."""
    steps: str = ""
    """Numbers of the steps that contain some of it in any trace, as ranges; empty if unknown."""
    when: str = ""
    """The steps for display: `in every step`, `in steps 3 and 7 of 10`; empty if unknown."""
    related: tuple[RelatedFinding, ...] = ()
    """Findings of the blamed traces that differ from their peers; the most relevant first."""
    related_more: int = 0
    """Number of further such findings."""
    job_saving: JobSaving | None = None
    """Potential saving of the job by this fix alone; None if it claims nothing, or is unknown."""


class RunReport(msgspec.Struct, frozen=True):
    """A run: its workers' traces and the results of every rule for each, and for all of them."""

    name: str
    workers: tuple[WorkerReport, ...]
    outcomes: tuple[Outcome, ...]
    """Outcomes of each trace, identified by `trace`, which is empty for rules over the run."""
    merged: tuple[MergedOutcome, ...] = ()
    """Findings of all traces, merged, the most serious first."""
    verdict: str = ""
    """One sentence for the run; for a single trace, the trace's."""
    job: JobReport | None = None
    """None for a run without traces."""
    representatives: tuple[RepresentativeTrace, ...] = ()
    """Traces that represent several ranks; empty if ranks cannot be compared."""


class Problem(msgspec.Struct, frozen=True):
    """A file or folder that could not be read, and the remedy."""

    path: str
    message: str
    remedy: str


class Report(msgspec.Struct, frozen=True):
    """The whole result of `stepscope advise`."""

    runs: tuple[RunReport, ...]
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""
    notes: tuple[str, ...] = ()
    """Notes on the request itself, such as suppressions that match nothing."""


class FileHealth(msgspec.Struct, frozen=True):
    """Health of one file. Fields with the names of `WorkerReport`'s have the same meaning."""

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
    """The whole result of `stepscope health`."""

    files: tuple[FileHealth, ...]
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `Report`."""
    return msgspec.json.schema(Report)


_MOVED = (name for name in vars(findings) if name[0].isupper() and name != "Literal")
__getattr__ = deprecated_names(
    __name__,
    {
        "RepresentativeRecording": (__name__, "RepresentativeTrace"),
        "Standing": (__name__, "OverallStatus"),
        **{name: (findings.__name__, name) for name in _MOVED},
    },
)
