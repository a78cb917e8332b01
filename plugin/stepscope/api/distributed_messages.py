"""Response types of the Distributed view."""

from typing import Literal

import msgspec

from stepscope.api.messages import Category, Response, Table
from stepscope.base.findings import Unit
from stepscope.base.report import Problem

Metric = Literal[
    "own",
    "late",
    "step",
    "computing",
    "waiting",
    "exposed",
    "overlap",
    "idle",
    "loading",
    "copies",
]
By = Literal["kind", "each"]


class RankInfo(msgspec.Struct, frozen=True):
    """One rank of the run; null where the trace does not record a value."""

    rank: int | None
    rank_source: str | None
    """`header` (distributedInfo.rank), `file name`, `content` or `device`."""
    rank_confidence: str | None
    worker: str
    host: str | None
    device_name: str | None
    step_count: int
    """Complete steps; 0 where the trace marks none."""


class RunClocks(msgspec.Struct, frozen=True):
    """Alignment of the ranks' clocks."""

    reference: str
    """The worker whose clock the others are aligned to; empty where none is aligned."""
    machine_count: int
    """Ranks on its machine, and so with its clock; itself included."""
    collective_count: int
    """Ranks aligned by collectives that no rank leaves before all have entered."""
    lost_count: int
    """Ranks that are not aligned with it."""
    error_ns: float | None
    """Upper bound of the clocks' errors; null where none is aligned."""
    likely_error_ns: float | None
    """Typical spread of the ranks' ends of a collective."""
    drift_count: int
    """Ranks whose clock also runs faster or slower."""


class Straggler(msgspec.Struct, frozen=True):
    """A rank and its lateness in collectives."""

    rank: int | None
    worker: str
    is_straggler: bool
    """Whether its lateness is an outlier among the ranks, and 1 % of a step or more."""
    score: float | None
    """Modified z-score over the ranks of its lateness or compute time, whichever is larger; null
    with fewer than three ranks."""
    own_excess_ns: float | None
    """Compute time per step beyond the median rank of its pipeline stage."""
    found_by: Literal["", "lateness", "own work"]
    """The measure that shows a straggler; empty where it is none."""
    lateness_ns: float | None
    """Mean arrival after the median rank, in the group in which it is least late. Negative:
    earlier."""
    collective_count: int
    last_count: int
    """Number of those in which it arrived last."""
    wait_caused_ns: float
    """Total waiting of the other ranks for it, per step."""
    wait_ns: float
    """Its waiting for other ranks, per step."""
    since_step: int | None
    late_steps: tuple[int, ...]
    """Steps in which it was later than half its mean lateness."""
    cause: str | None
    """The work that takes longer than on the median rank: `computing`, `copies`, `data loading`
    or `host`."""
    cause_ns: float | None


class Representative(msgspec.Struct, frozen=True):
    """A rank that represents others, or differs from them."""

    rank: int | None
    worker: str
    host: str | None
    kind: Literal["fastest", "slowest", "median", "odd"]
    """By compute time; `median`: by all metrics together; `odd`: by one outlying metric."""
    figure: str
    """The metric; see the table `outlier-ranks`."""
    value: float
    usual: float
    """Median of the compared ranks."""
    unit: Unit
    score: float
    """Modified z-score among the compared ranks."""
    step_ns: float
    """Mean step time."""
    reason: str


class OutlierRank(msgspec.Struct, frozen=True):
    """An outlying metric of a rank or of a machine."""

    rank: int | None
    """Null for a machine."""
    worker: str
    """Empty for a machine."""
    host: str | None
    is_host: bool
    figure: str
    label: str
    value: float
    usual: float
    unit: Unit
    score: float
    is_sure: bool
    """Whether it is compared with at least eight, over as many steps as most have."""
    reason: str


class GroupInfo(msgspec.Struct, frozen=True):
    """A process group of the job."""

    name: str
    """Torch's name of the group."""
    description: str
    role: str
    """`DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`; empty where unknown."""
    role_confidence: str
    why: str
    """Evidence of the role."""
    size: int | None
    ranks: str
    """`0-7`."""


class Distributed(Response, frozen=True, kw_only=True):
    """Ranks of a run: completeness, clocks, stragglers, outliers and groups."""

    span: str
    world_size: int | None
    """Ranks of the job; null where neither the header nor a group records it."""
    ranks: tuple[RankInfo, ...]
    """By rank; unknown ranks come last."""
    missing_count: int
    missing_ranks: str
    """Ranks of the job without a trace: `3, 8-15`."""
    waiting_count: int
    """Files that are not read yet; they may change the result."""
    problems: tuple[Problem, ...]
    host_count: int
    """Machines that the traces record."""
    has_device: bool
    group_count: int
    steps: tuple[int, ...]
    """Numbers of the complete steps of any rank; empty where none is marked."""
    mean_step_ns: float
    """Mean over steps and ranks."""
    collective_count: int
    """Collectives of the run, each counted once."""
    matched_count: int
    """Collectives that are recorded on more than one rank."""
    clocks: RunClocks
    stragglers: tuple[Straggler, ...]
    """Stragglers first (at most 100), then the 20 latest other ranks."""
    straggler_count: int
    representatives: tuple[Representative, ...] = ()
    """Ranks to examine first; empty where fewer than three can be compared."""
    outliers: tuple[OutlierRank, ...] = ()
    """Largest z-score first; at most 100."""
    outlier_count: int = 0
    groups: tuple[GroupInfo, ...] = ()
    """Longest total time first; at most 2,048."""
    unreadable_ranks: str = ""
    """Missing ranks with a file that cannot be read: `3, 8-15`."""
    has_all_to_all: bool = False
    """Whether any rank recorded an all-to-all exchange."""


class ExchangeGroup(msgspec.Struct, frozen=True):
    """All-to-all exchanges in one process group."""

    group: str
    """Torch's name; empty where not recorded."""
    description: str
    ranks: tuple[int, ...]
    """Ranks of the rows and columns; positions in the group where the ranks are unknown."""
    call_count: int
    """Exchanges of a rank."""
    sent_bytes: tuple[tuple[int | None, ...], ...]
    """A row per sender, a column per receiver; null: not recorded. Empty for large groups."""
    received_bytes: tuple[int, ...]
    """Bytes that each rank receives; empty where not all exchanges of all ranks are known."""
    imbalance: float | None
    """Most bytes received by a rank over the mean; null where unknown."""
    reason: str
    """Why the imbalance is unknown; empty where it is known."""


class AllToAll(Response, frozen=True, kw_only=True):
    """Bytes that ranks send to each other in all-to-all exchanges, by process group."""

    groups: tuple[ExchangeGroup, ...]
    """Most bytes first."""
    waiting_count: int
    """Files that are not read yet; they may change the result."""


class RankSteps(Response, frozen=True, kw_only=True):
    """One metric of every rank and step: value times `scale`; null where not recorded."""

    metric: str
    label: str
    help: str
    unit: Unit
    is_high_bad: bool
    scale: float
    workers: tuple[str, ...]
    """Workers of the rows."""
    ranks: tuple[int | None, ...]
    hosts: tuple[str | None, ...]
    steps: tuple[int, ...]
    """Steps of the columns."""
    values: list[list[int | None]]
    left_out_count: int
    """Number of steps left out: the first ones."""
    waiting_count: int
    empty: str = ""
    """Why no value is known."""


class RankRow(msgspec.Struct, frozen=True):
    """Step time of one rank by category."""

    rank: int | None
    worker: str
    host: str | None
    step_count: int
    duration_ns: int
    parts_ns: tuple[int, ...]
    """In the order of `categories`; they sum to `duration_ns`."""
    communication_ns: int
    """Exposed or overlapped; concurrent collectives count once."""
    transfer_ns: int | None
    """Transfer in it; null where no collective is recorded on another rank."""
    wait_ns: int | None
    """Waiting for other ranks in it."""
    exposed_ns: int
    overlap_share: float | None
    idle_ns: int | None
    """Idle time of its busiest device; null without a device."""
    late_ns: int | None
    """Mean lateness per collective, in the group in which it is least late."""


class RankBreakdown(Response, frozen=True, kw_only=True):
    """Step time of every rank by category: of the mean step, or of one step."""

    step: int | None
    categories: tuple[Category, ...]
    rows: tuple[RankRow, ...]
    without_step: tuple[str, ...]
    """Workers without the requested step."""
    waiting_count: int


class CollectiveRef(msgspec.Struct, frozen=True):
    """A collective, identified by one of its members: stable while more files are read."""

    worker: str
    event: int


class Collectives(Response, frozen=True, kw_only=True):
    """A table of collectives, with the collective that each row opens."""

    table: Table
    opens: tuple[CollectiveRef, ...]
    """The row's collective; for a kind, the one with the most waiting."""
    step: int | None
    worker: str
    waiting_count: int


class CollectiveMember(msgspec.Struct, frozen=True):
    """One rank of a collective."""

    rank: int | None
    worker: str
    host: str | None
    event: int
    start_ns: int
    """Start after the first rank's start."""
    duration_ns: int
    wait_ns: int
    """Waiting for other ranks in it."""
    exposed_ns: int
    is_last: bool


class CollectiveRanks(Response, frozen=True, kw_only=True):
    """One collective on all its ranks, on one clock."""

    kind: str
    group: str
    description: str
    role: str
    sequence: int | None
    step: int | None
    dtype: str
    message_bytes: float | None
    matched_by: str
    """`sequence`, `order`, or empty where it is recorded on one rank only."""
    expected_count: int | None
    missing_ranks: str
    transfer_ns: int | None
    wait_ns: int
    """Sum over the ranks."""
    length_ns: int
    """Time from the first rank's start to the last rank's end."""
    algorithm_bytes_per_second: float | None
    bus_bytes_per_second: float | None
    aligned_by: Literal["clocks", "ends"]
    error_ns: float | None
    members: tuple[CollectiveMember, ...]
    before: CollectiveRef | None
    """The previous collective of the same kind, group, type and size."""
    after: CollectiveRef | None
    place: int
    """Position among those, from 1."""
    alike_count: int
