"""What the API says of the ranks of a run together, as wire types."""

from typing import Literal

import msgspec

from stepscope.api.messages import Category, Table
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
    """One recording of the run; null where nothing tells."""

    rank: int | None
    rank_source: str | None
    """`header` (distributedInfo.rank), `file name`, `content` or `device`."""
    rank_confidence: str | None
    worker: str
    host: str | None
    device_name: str | None
    step_count: int
    """Steps recorded whole; 0 where none is marked."""


class RunClocks(msgspec.Struct, frozen=True):
    """How the ranks' clocks were brought together."""

    reference: str
    """The worker with whose clock the others are aligned; empty where none is."""
    machine_count: int
    """Recordings that share its machine, and so its clock; itself among them."""
    collective_count: int
    """Recordings aligned over collectives that no rank can leave before all have come."""
    lost_count: int
    """Recordings that could not be aligned with it."""
    error_ns: float | None
    """No clock is further off than this; null where nothing was aligned."""
    likely_error_ns: float | None
    """Ranks mostly leave a collective within this of each other."""
    drift_count: int
    """Recordings whose clock also runs faster or slower."""


class Straggler(msgspec.Struct, frozen=True):
    """A rank that comes late to collectives."""

    rank: int | None
    worker: str
    is_straggler: bool
    """Whether that is beyond what is usual among the ranks, and 1 % of a step or more."""
    score: float | None
    """Modified z-score over the ranks of its lateness or own work, whichever is larger; null with
    fewer than three."""
    own_excess_ns: float | None
    """How much longer it works by itself in a step than the median rank of its pipeline stage."""
    found_by: Literal["", "lateness", "own work"]
    """What tells that it is a straggler; empty where it is none."""
    lateness_ns: float | None
    """Mean over the collectives of the group in which it is least late: how much later than the
    median rank it came. Negative: earlier."""
    collective_count: int
    last_count: int
    """To how many of those it came last."""
    wait_caused_ns: float
    """What the others together waited for it a step."""
    wait_ns: float
    """What it waited for others a step."""
    since_step: int | None
    late_steps: tuple[int, ...]
    """Steps in which it was later than half of what it is on average."""
    cause: str | None
    """What takes longer on it than on the median rank: `computing`, `copies`, `data loading` or
    `host`."""
    cause_ns: float | None


class Representative(msgspec.Struct, frozen=True):
    """One of the few ranks to look at."""

    rank: int | None
    worker: str
    host: str | None
    kind: Literal["fastest", "slowest", "median", "odd"]
    """By own work, all figures together, or for a figure that lies far from the others'."""
    figure: str
    """Which figure that is: see the table `outlier-ranks`."""
    value: float
    usual: float
    """The median of the ranks that it is compared with."""
    unit: Unit
    score: float
    """Modified z-score among them."""
    step_ns: float
    """Its mean step."""
    reason: str


class OutlierRank(msgspec.Struct, frozen=True):
    """A figure of a rank, or of a machine, that lies far from what is usual."""

    rank: int | None
    """Null of a machine."""
    worker: str
    """Empty of a machine."""
    host: str | None
    is_host: bool
    figure: str
    label: str
    value: float
    usual: float
    unit: Unit
    score: float
    is_sure: bool
    """Whether it is compared with eight or more, over as many steps as most have."""
    reason: str


class GroupInfo(msgspec.Struct, frozen=True):
    """A process group of the job."""

    name: str
    """What torch calls it."""
    description: str
    role: str
    """`DP`, `FSDP`, `TP`, `PP`, `EP`, `CP`; empty where nothing tells."""
    role_confidence: str
    why: str
    """What tells the role."""
    size: int | None
    ranks: str
    """`0-7`."""


class Distributed(msgspec.Struct, frozen=True):
    """What a run of several ranks is, and how much of it was recorded."""

    schema: int
    span: str
    world_size: int | None
    """Ranks of the job; null where neither header nor groups tell."""
    ranks: tuple[RankInfo, ...]
    """By rank; those of which nothing tells a rank come last."""
    missing_count: int
    missing_ranks: str
    """Ranks of the job without a recording: `3, 8-15`."""
    waiting_count: int
    """Files that are still to be read: with them, answers may come out otherwise."""
    problems: tuple[Problem, ...]
    host_count: int
    """Machines that the recordings name."""
    has_device: bool
    group_count: int
    steps: tuple[int, ...]
    """Numbers of the steps that any rank recorded whole; empty where none is marked."""
    mean_step_ns: float
    """Over steps and ranks."""
    collective_count: int
    """Collectives of the run, each counted once."""
    matched_count: int
    """Of those, how many were found on more than one rank."""
    clocks: RunClocks
    stragglers: tuple[Straggler, ...]
    """Stragglers first, then whoever came latest; at most twenty beside the stragglers, of which
    no more than a hundred are told."""
    straggler_count: int
    representatives: tuple[Representative, ...] = ()
    """The few ranks to look at; none where fewer than three can be compared."""
    outliers: tuple[OutlierRank, ...] = ()
    """The farthest first; at most a hundred."""
    outlier_count: int = 0
    groups: tuple[GroupInfo, ...] = ()
    """Those in which most time goes first; at most 512."""
    unreadable_ranks: str = ""
    """Of the missing ranks those whose file is there and cannot be read: `3, 8-15`."""


class RankSteps(msgspec.Struct, frozen=True):
    """One figure of every rank and step: value times `scale`; null where it was not recorded."""

    schema: int
    metric: str
    label: str
    help: str
    unit: Unit
    is_high_bad: bool
    scale: float
    workers: tuple[str, ...]
    """Of the rows."""
    ranks: tuple[int | None, ...]
    hosts: tuple[str | None, ...]
    steps: tuple[int, ...]
    """Of the columns."""
    values: list[list[int | None]]
    left_out_count: int
    """Steps beyond what is sent: the first ones."""
    waiting_count: int
    empty: str = ""
    """Where no value is known: why."""


class RankRow(msgspec.Struct, frozen=True):
    """Where a step of one rank goes."""

    rank: int | None
    worker: str
    host: str | None
    step_count: int
    duration_ns: int
    parts_ns: tuple[int, ...]
    """They follow `categories`, and sum to it."""
    communication_ns: int
    """Hidden or not; concurrent collectives counted once."""
    transfer_ns: int | None
    """What of that is transfer; null where no collective was found on another rank."""
    wait_ns: int | None
    """What of it is waiting for other ranks."""
    exposed_ns: int
    overlap_share: float | None
    idle_ns: int | None
    """Its busiest device does nothing; null without a device."""
    late_ns: int | None
    """Mean lateness in a collective, in the group in which it is least late."""


class RankBreakdown(msgspec.Struct, frozen=True):
    """Where a step of every rank goes: the mean one, or a chosen one."""

    schema: int
    step: int | None
    categories: tuple[Category, ...]
    rows: tuple[RankRow, ...]
    without_step: tuple[str, ...]
    """Workers that did not record the chosen step."""
    waiting_count: int


class CollectiveRef(msgspec.Struct, frozen=True):
    """A collective by one of its members; more files that are read do not change that."""

    worker: str
    event: int


class Collectives(msgspec.Struct, frozen=True):
    """A table of collectives, and for each row which collective it leads to."""

    schema: int
    table: Table
    opens: tuple[CollectiveRef, ...]
    """The one itself; of a kind the one in which most time was waited."""
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
    """From the first rank's start."""
    duration_ns: int
    wait_ns: int
    """Of that, before only the transfer was left."""
    exposed_ns: int
    is_last: bool


class CollectiveRanks(msgspec.Struct, frozen=True):
    """One collective on all its ranks, on one clock."""

    schema: int
    kind: str
    group: str
    description: str
    role: str
    sequence: int | None
    step: int | None
    dtype: str
    message_bytes: float | None
    matched_by: str
    """`sequence`, `order`, or empty where it was found on one rank only."""
    expected_count: int | None
    missing_ranks: str
    transfer_ns: int | None
    wait_ns: int
    """Sum over the ranks."""
    length_ns: int
    """From the first rank's start to the last one's end."""
    algorithm_bytes_per_second: float | None
    bus_bytes_per_second: float | None
    aligned_by: Literal["clocks", "ends"]
    error_ns: float | None
    members: tuple[CollectiveMember, ...]
    before: CollectiveRef | None
    """The one before of the same kind, group, type and size."""
    after: CollectiveRef | None
    place: int
    """Which of those it is, from 1."""
    alike_count: int
