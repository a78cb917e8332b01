"""What `stepscope compare` and `stepscope.compare` hand out, as frozen wire types.

*Before* is the first run (or span, or rank) that was given, *after* one of the others. Figures are
means over steps unless they say otherwise, and over a side's ranks; `unit` is theirs.
"""

from typing import Literal

import msgspec

from stepscope.base.findings import Severity, Unit
from stepscope.base.report import Problem

SCHEMA_VERSION = 1

Verdict = Literal["more", "less", "same", "untested"]
"""`same`: not told from noise. `untested`: too few steps to tell."""
Status = Literal["added", "gone", "slower", "faster", "other-calls", "same", "untested"]
Kind = Literal["operator", "annotation", "kernel", "copy", "memory-set"]
MatchedBy = Literal[
    "name, shape and module",
    "name and module",
    "name and operator",
    "name",
    "name without its hash",
    "",
]
AdviceStatus = Literal["fixed", "new", "still", "worse", "better", "not-checked"]


class Change(msgspec.Struct, frozen=True):
    """A figure before and after."""

    before: float
    after: float
    unit: Unit
    standard_error: float | None = None
    """Of the difference; None where a side has one step."""
    p: float | None = None
    """The chance that any figure of its table would change so if nothing had changed."""
    verdict: Verdict = "untested"

    @property
    def delta(self) -> float:
        """After less before."""
        return self.after - self.before

    @property
    def share(self) -> float | None:
        """The change as a share of what was before; None where that was nothing."""
        return self.delta / self.before if self.before else None


class Part(msgspec.Struct, frozen=True):
    """A part of the mean step, or of a device's idle time in it."""

    id: str
    label: str
    meaning: str
    change: Change


class Row(msgspec.Struct, frozen=True):
    """What one operator, annotation, kernel, copy or memory set cost a step on each side."""

    kind: Kind
    name: str
    status: Status
    matched_by: MatchedBy
    module: str
    """The innermost `nn.Module` around it, with `with_stack=True` or `with_modules=True`."""
    operator: str
    """Of work on a device: the innermost operator that launched it."""
    shapes_before: tuple[str, ...]
    shapes_after: tuple[str, ...]
    calls: Change
    device: Change
    """Device time; of an operator, of what it launched itself."""
    host: Change
    """Host self time; 0 for work on a device."""
    device_total: Change
    """Device time with that of operators and annotations within: calls within calls of the same
    name count again."""
    host_total: Change
    """Host time with what was called within, likewise."""


class ModuleRow(msgspec.Struct, frozen=True):
    """What the operators and annotations of one `nn.Module` cost a step on each side."""

    name: str
    """As the profiler numbers it: `Linear_0`; empty for what ran in no module."""
    status: Status
    calls: Change
    """Of operators and annotations in it."""
    device: Change
    """Device time of what they launched themselves."""
    host: Change
    """Their host self time."""


class AdviceChange(msgspec.Struct, frozen=True):
    """What became of a piece of advice; savings are a step's, means over a side's recordings."""

    rule: str
    title: str
    subject: str
    """What it is about, where a rule finds several things; empty where there is one."""
    status: AdviceStatus
    severity_before: Severity | None
    severity_after: Severity | None
    low_before_ns: int
    high_before_ns: int
    low_after_ns: int
    high_after_ns: int
    reason: str = ""
    """Why it was not checked."""


class Saving(msgspec.Struct, frozen=True):
    """What the advice that was followed promised a step, and what became of the step."""

    worker: str
    """Empty where it is of all recordings together."""
    span: str
    rules: tuple[str, ...]
    """The advice that is fixed."""
    predicted_low_ns: int
    predicted_high_ns: int
    realised_mean_ns: int
    """Mean step before less after."""
    realised_median_ns: int
    """Median iteration of the host's loop before less after, which one slow step does not move."""


class Side(msgspec.Struct, frozen=True):
    """One of the two that are compared."""

    name: str
    recording_count: int
    worker_count: int
    step_count: int
    """Steps that were sampled; ranks of one step count once."""
    mean_step_ns: int
    median_step_ns: int
    standard_deviation_ns: int
    batch_size: int | None
    batch_ns: int | None
    """Mean step over the batch's samples; None where no shape tells the batch."""


class SettingChange(msgspec.Struct, frozen=True):
    """A setting of the run, as the trace handler recorded it, that differs between the sides."""

    name: str
    """As it was recorded: `dataloaders[0].worker_count`."""
    label: str
    """As it is shown: `DataLoader, Workers`."""
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True):
    """Two sides, and what is different."""

    before: Side
    after: Side
    step: Change
    waterfall: tuple[Part, ...]
    """From the mean step before to the one after: the parts' changes sum to the step's."""
    idle: tuple[Part, ...]
    """The busiest device's idle time a step by cause; not tested."""
    figures: tuple[Part, ...]
    """Busy share, peak memory and the like; not tested."""
    operators: tuple[Row, ...]
    """What changed most first; those that take less than a thousandth of a step are left out,
    unless they were added or are gone."""
    device_work: tuple[Row, ...]
    """Kernels, copies and memory sets, likewise."""
    advice: tuple[AdviceChange, ...]
    savings: tuple[Saving, ...]
    """First of all recordings together, then of each that both sides have."""
    warnings: tuple[str, ...]
    """What else is different between the sides, or speaks against comparing them."""
    settings: tuple[SettingChange, ...] = ()
    """Recorded settings that differ; empty where one side has none recorded."""


class ComparisonReport(msgspec.Struct, frozen=True):
    """Everything that `stepscope compare` found."""

    comparisons: tuple[Comparison, ...]
    test: str
    """How changes are told from noise."""
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of `ComparisonReport`."""
    return msgspec.json.schema(ComparisonReport)
