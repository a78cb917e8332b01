"""The API's answers, as wire types; `frontend/src/api/types.gen.ts` is generated from them.

`api/openapi.json` names all routes with their parameters: `api/runs` is what was found and how far
reading has come, to be polled while `loading`; `endpoints/` holds most others.
`trace` and `run` are opaque ids; errors are an `ApiError` with its HTTP status.

A run or trace that is still being read answers 409 with `code` `still-loading`, one whose reading
was cancelled 409 with `cancelled`; an unknown one 404; what was not recorded 422 with
`not-recorded`. With a header `X-Stepscope` these come with status 200, and theirs in
`X-Stepscope-Status` (`refusals.EXPECTED` says why). What is posted carries the header
`X-Stepscope`, whatever is in it: no page of another origin can send it.
"""

from typing import Any, Literal

import msgspec

from stepscope.base.findings import Severity, Unit
from stepscope.base.report import DeviceReport, HealthItem, Problem, RunSetting, StepReport

State = Literal["queued", "reading", "ready", "cancelled", "unreadable"]
Phase = Literal["waiting", "reading", "analysing", "advising"]


class Progress(msgspec.Struct, frozen=True):
    """How far the reading of one file has come."""

    phase: Phase
    """`waiting` is for memory that other files take, or for a worker of a cluster."""
    bytes_done: int
    """Of the file as it lies on disk."""
    bytes_total: int
    events: int
    elapsed_ns: int
    left_ns: int | None
    """Until it is ready, by what was measured so far; null until that tells anything."""


class Span(msgspec.Struct, frozen=True):
    """One recording of a worker: one trace file."""

    trace: str
    label: str
    """`1`, `2`, … in order of recording."""
    file: str
    """The file's name, for people; never used to ask for it."""
    state: State
    progress: Progress | None
    problem: Problem | None
    place: int | None = None
    """Of a file that is queued: 1 is read next."""
    file_bytes: int = 0
    """How long the file is, as it lies on disk."""
    events: int | None = None
    """None until it was read."""
    damage: Severity | None = None
    """The worst that was found damaged in it; None where nothing was, or it was not read yet."""
    is_growing: bool = False
    """True of a queued file that somebody still writes: it is read when it has settled."""


class Worker(msgspec.Struct, frozen=True):
    """One process of a run."""

    name: str
    rank: int | None
    spans: tuple[Span, ...]
    host: str | None = None
    """The machine that it ran on; None until a file of it was read, or where that does not tell."""


class RunState(msgspec.Struct, frozen=True):
    """A run: a folder with traces."""

    id: str
    name: str
    synthetic: bool
    state: State
    """`ready` as soon as one of its files is, and none is still being read."""
    workers: tuple[Worker, ...]


class Runs(msgspec.Struct, frozen=True):
    """Everything found under the log directory."""

    schema: int
    logdir: str
    scanning: bool
    """True until the first look through the folder is over."""
    loading: bool
    """True while any file is queued or being read."""
    runs: tuple[RunState, ...]
    problems: tuple[Problem, ...]
    looked_for: str
    """Which file names count as traces."""
    looked_at_count: int = 0
    """Files that the look through the folder has seen so far, traces or not."""
    is_cancelled: bool = False
    """True where the user ended the look: there may be more."""


class Category(msgspec.Struct, frozen=True):
    """One category of step time."""

    id: str
    label: str
    help: str


class StepRow(msgspec.Struct, frozen=True):
    """One step and where its time went; `parts_ns` follows `Overview.categories`."""

    number: int
    name: str
    start_ns: int
    duration_ns: int
    parts_ns: tuple[int, ...]
    host_start_ns: int
    """When the host began it: what is narrowed to a step is what the host began in it."""
    host_end_ns: int


class TopRow(msgspec.Struct, frozen=True):
    """One line of a short list; `view` and `search` lead to the whole story."""

    name: str
    detail: str
    value: int | float
    unit: Unit
    share: float | None
    view: str
    search: str
    full_name: str = ""
    """Where `name` is short; what the details of a kernel are asked by."""
    kind: str = ""
    """Of an operator: `operator` or `annotation`."""
    start_ns: int | None = None
    """Of what has a place in time: a gap."""
    end_ns: int | None = None
    event: int | None = None
    """What ended a gap, by its place in the file."""


class IdleCause(msgspec.Struct, frozen=True):
    """One cause of device idle time, per step."""

    id: str
    label: str
    help: str
    idle_ns: int
    share: float
    """Of the step."""
    gap_count: int = 0
    """How many stretches of idle time it has in the window."""
    start_ns: int | None = None
    """Of the longest of them."""
    end_ns: int | None = None
    event: int | None = None
    """What ended it on the device, by its place in the file; None: the window did."""


class Overview(msgspec.Struct, frozen=True):
    """Where the step time of one recording goes."""

    schema: int
    trace: str
    worker: str
    span: str
    verdict: str
    dialect: str
    synthetic: bool
    device_label: str
    """What this vendor calls a device: `GPU`, `XPU`, `CPU`."""
    environment: dict[str, str]
    """What the trace says of how it was made: versions, flags, ranks."""
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
    """Settings of the run; empty where no trace handler of stepscope's recorded them."""


class Column(msgspec.Struct, frozen=True):
    """One column of a table."""

    key: str
    label: str
    unit: Unit
    help: str
    hidden: bool = False
    """True where the column is off until asked for."""


class Table(msgspec.Struct, frozen=True):
    """A table by columns; `values[key]` has `row_count` entries, null where not recorded."""

    schema: int
    columns: tuple[Column, ...]
    row_count: int
    values: dict[str, list[Any]]
    sort: str
    """Key of the column to sort by at first, largest first; empty: the rows' own order."""
    groups: tuple[str, ...]
    """The groupings that this table can be asked for."""
    group: str
    total_ns: int
    """What the share columns are a share of."""
    empty: str = ""
    """Where there is no row: why, and what would record it."""
    all_row_count: int | None = None
    """How many rows there are, where perhaps only the first by `sort` were sent; None: all were."""
    sums: tuple[str, ...] = ()
    """Keys of columns whose values, added over rows, are something's total."""
    title: str = ""
    meaning: str = ""
    """What a row is, and what the table tells; empty where the page knows."""


class ApiError(msgspec.Struct, frozen=True):
    """Why a request has no answer."""

    code: str
    message: str
    hint: str = ""
