"""Response types that several endpoints share; `frontend/src/api/types.gen.ts` follows from them.

`api/openapi.json` lists all routes with their parameters. `api/runs` lists runs and the progress of
reading; clients poll it while `loading`. `trace` and `run` are opaque ids.

An error is an `ApiError`: status 409 with the code `still-loading` or `cancelled` for a trace that
is not read, 404 for an unknown id, 422 with `not-recorded` for missing data. With the header
`X-Stepscope` these have status 200, and theirs in `X-Stepscope-Status` (`http_errors.EXPECTED`).
POST requests require the header `X-Stepscope`, which no page of another origin can send.
"""

from typing import Any, Literal

import msgspec

from stepscope.base.findings import Severity, Unit
from stepscope.base.report import (
    SCHEMA_VERSION,
    DeviceReport,
    HealthItem,
    Problem,
    RunSetting,
    StepReport,
)

State = Literal["queued", "reading", "ready", "cancelled", "unreadable"]
Phase = Literal["waiting", "reading", "analysing", "advising"]


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the responses of endpoints."""

    schema: int = SCHEMA_VERSION
    """Version of the API's JSON."""


class Progress(msgspec.Struct, frozen=True):
    """Progress of reading one file."""

    phase: Phase
    """`waiting`: for memory that other files use, or for a worker of a cluster."""
    bytes_done: int
    """Bytes of the file on disk."""
    bytes_total: int
    events: int
    elapsed_ns: int
    left_ns: int | None
    """Estimated time until it is ready; null before an estimate is possible."""


class Span(msgspec.Struct, frozen=True):
    """One trace file of a worker."""

    trace: str
    label: str
    """`1`, `2`, … in order of recording."""
    file: str
    """The file's name, for display."""
    state: State
    progress: Progress | None
    problem: Problem | None
    place: int | None = None
    """Position in the queue: 1 is read next; null where the file is not queued."""
    file_bytes: int = 0
    """Size of the file on disk."""
    events: int | None = None
    """Number of events; null before it is read."""
    damage: Severity | None = None
    """The worst damage of the file; null where there is none, or before it is read."""
    is_growing: bool = False
    """True of a queued file that is still being written; it is read when it stops growing."""


class Worker(msgspec.Struct, frozen=True):
    """One process of a run."""

    name: str
    rank: int | None
    spans: tuple[Span, ...]
    host: str | None = None
    """The machine; null before a file is read, or where the file does not record it."""


class RunSaving(msgspec.Struct, frozen=True):
    """A potential saving per step; without steps, of the recorded window."""

    low_ns: int
    high_ns: int
    share: float
    """`high_ns` as a fraction of the step."""


class FirstFinding(msgspec.Struct, frozen=True):
    """The first finding of a run's advice."""

    rule: str
    title: str
    severity: Severity
    saving: RunSaving | None
    """None if it claims no time."""


class RunResult(msgspec.Struct, frozen=True):
    """The results of a run in short. Step time, steps and batch are those of its slowest trace."""

    trace_count: int
    """Number of the traces that are read."""
    verdict: str
    """The sentence of the advice on the run: `RunReport.verdict`."""
    slowest: str
    """Name of the worker with the longest mean step."""
    step_ns: int | None
    """Its mean step; null without steps."""
    step_count: int
    step_durations_ns: tuple[int, ...]
    """Durations of its steps in order; of many, the longest of each group of steps."""
    busy_share: float | None
    """Fraction of the window in which the busiest device works, mean over the traces; null: no
    device."""
    batch_size: int | None
    """Samples per step; null: not recorded."""
    finding: FirstFinding | None
    """Null if nothing was found."""
    finding_count: int
    """Rules with findings, related symptoms and notes included."""
    saving: RunSaving | None
    """Of all findings together; null if there is none, or if it is withheld."""
    withheld: str = ""
    """Reason for withholding that saving, as a sentence; empty otherwise."""


class RunState(msgspec.Struct, frozen=True):
    """A run: a folder with traces."""

    id: str
    name: str
    synthetic: bool
    state: State
    """`ready` when one file is ready and none is being read."""
    workers: tuple[Worker, ...]
    result: RunResult | None = None
    """Null until a file is read and the advice on the run is merged."""


class Runs(Response, frozen=True, kw_only=True):
    """All runs of the log directories."""

    logdir: str
    scanning: bool
    """True until the first scan of the log directories ends."""
    loading: bool
    """True while any file is queued or being read."""
    has_pending_results: bool = False
    """True while results of runs are being computed from files that are read."""
    runs: tuple[RunState, ...]
    problems: tuple[Problem, ...]
    looked_for: str
    """The file names that count as traces."""
    looked_at_count: int = 0
    """Files seen by the scan so far, traces or not."""
    is_cancelled: bool = False
    """True where the user cancelled the scan: there may be more files."""


class Category(msgspec.Struct, frozen=True):
    """One category of step time."""

    id: str
    label: str
    help: str


class StepRow(msgspec.Struct, frozen=True):
    """One step and its time by category; `parts_ns` follows `Overview.categories`."""

    number: int
    name: str
    start_ns: int
    duration_ns: int
    parts_ns: tuple[int, ...]
    host_start_ns: int
    """Start on the host: a step's selection contains the work that the host started in it."""
    host_end_ns: int


class TopRow(msgspec.Struct, frozen=True):
    """One line of a short list; `view` and `search` link to its details."""

    name: str
    detail: str
    value: int | float
    unit: Unit
    share: float | None
    view: str
    search: str
    full_name: str = ""
    """The unabbreviated name, the key of a kernel's details."""
    kind: str = ""
    """`operator` or `annotation`, for operators."""
    start_ns: int | None = None
    """Start and end of a gap."""
    end_ns: int | None = None
    event: int | None = None
    """The device event that ended a gap, as its index in the file."""


class IdleCause(msgspec.Struct, frozen=True):
    """One cause of device idle time, per step."""

    id: str
    label: str
    help: str
    idle_ns: int
    share: float
    """Fraction of the step."""
    gap_count: int = 0
    """Number of idle intervals with this cause in the window."""
    start_ns: int | None = None
    """Start of the longest of them."""
    end_ns: int | None = None
    event: int | None = None
    """The device event that ended it, as its index in the file; null: the window's end."""


class ServingPhase(msgspec.Struct, frozen=True):
    """Iterations of a serving engine in one phase; null where their names do not state a number."""

    phase: Literal["prefill", "decode", "mixed", "unknown"]
    source: str
    """What states the phase: `annotation`, or `Python call`, which does not."""
    iteration_count: int
    request_count: int | None
    """Requests of all iterations, summed."""
    prompt_token_count: int | None
    output_token_count: int | None
    wall_ns: int
    """Duration of the iterations."""
    wall_share: float
    """Fraction of the duration of all iterations."""
    device_busy_ns: int
    mean_ns: float
    """Mean duration of an iteration."""
    time_per_output_token_ns: float | None
    """How long a request waits for an output token."""


class Overview(Response, frozen=True, kw_only=True):
    """Step time of one trace by category, with devices and idle causes."""

    trace: str
    worker: str
    span: str
    verdict: str
    """The sentence of the advice on the trace: `WorkerReport.verdict`."""
    dialect: str
    synthetic: bool
    device_label: str
    """The vendor's term for a device: `GPU`, `XPU`, `CPU`."""
    environment: dict[str, str]
    """Metadata of the trace: versions, options, ranks."""
    window_ns: int
    step: StepReport
    categories: tuple[Category, ...]
    steps: tuple[StepRow, ...]
    devices: tuple[DeviceReport, ...]
    idle: tuple[IdleCause, ...]
    top_operators: tuple[TopRow, ...]
    top_kernels: tuple[TopRow, ...]
    longest_gaps: tuple[TopRow, ...]
    health: tuple[HealthItem, ...]
    settings: tuple[RunSetting, ...]
    """Settings of the run; empty unless stepscope's trace handler recorded them."""
    serving: tuple[ServingPhase, ...] = ()
    """Prefill and decode of a serving engine; empty for other programs."""


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    key: str
    label: str
    unit: Unit
    help: str
    hidden: bool = False
    """True for a column that is hidden at first."""
    group: str = ""
    """Whose time or memory it is, with which the label begins: `Host`, `GPU`; empty: no group."""


class Table(Response, frozen=True, kw_only=True):
    """A table by columns; `values[key]` has `row_count` entries, null where not recorded."""

    columns: tuple[Column, ...]
    row_count: int
    values: dict[str, list[Any]]
    sort: str = ""
    """Key of the initial sort column, largest first; empty: the order of the rows."""
    groups: tuple[str, ...] = ()
    """The available groupings of this table."""
    group: str = ""
    total_ns: int = 0
    """Duration of the window: the whole of fractions, where a column says nothing else."""
    empty: str = ""
    """Why the table has no rows, and the code that records them."""
    all_row_count: int | None = None
    """Number of all rows, where only the first by `sort` are sent; null: all are sent."""
    match_count: int | None = None
    """Number of rows that match the request's search; null: without a search."""
    sums: tuple[str, ...] = ()
    """Keys of columns whose sum over rows is a total."""
    title: str = ""
    meaning: str = ""
    """Subject of a row and purpose of the table; may be empty."""


class ApiError(msgspec.Struct, frozen=True):
    """An error response."""

    code: str
    message: str
    hint: str = ""
