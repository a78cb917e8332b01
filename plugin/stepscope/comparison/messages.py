"""Wire types of `stepscope compare` and `stepscope.compare`.

*Before* is the first run (or span, or rank), *after* one of the others. Figures are means over
steps, unless stated otherwise, and over a side's ranks.
"""

from typing import Literal

import msgspec

from stepscope.base.findings import Severity, Unit
from stepscope.base.report import Problem

SCHEMA_VERSION = 1

Verdict = Literal["more", "less", "same", "untested"]
"""`same`: not statistically significant. `untested`: not enough steps to compare."""
Status = Literal["added", "gone", "slower", "faster", "other-calls", "same", "untested"]
Kind = Literal["operator", "annotation", "kernel", "copy", "memory-set", "rest"]
"""`rest`: what is too small for a row of its own."""
MatchedBy = Literal[
    "name, shape and module",
    "name and module",
    "name and operator",
    "name",
    "name without its hash",
    "",
]
Comparable = Literal["comparable", "with-care", "not-comparable"]
AdviceStatus = Literal["fixed", "new", "still", "worse", "better", "not-checked"]


class Change(msgspec.Struct, frozen=True):
    """A figure before and after."""

    before: float
    after: float
    unit: Unit
    standard_error: float | None = None
    """Of the difference; None where a side has one step."""
    p: float | None = None
    """Probability of such a change of any figure of the table if nothing had changed."""
    verdict: Verdict = "untested"

    @property
    def delta(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def share(self) -> float | None:
        """The change relative to before; None where that was 0."""
        return self.delta / self.before if self.before else None


class Part(msgspec.Struct, frozen=True):
    """A part of the mean step, or of a device's idle time in it."""

    id: str
    label: str
    meaning: str
    change: Change


class Row(msgspec.Struct, frozen=True):
    """Cost per step of one operator, annotation, kernel, copy or memory set on each side."""

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
    """Device time; of an operator, of the work that it launched directly."""
    host: Change
    """Host self time; 0 for work on a device."""
    device_total: Change
    """Device time including nested operators and annotations; nested calls of the same name count
    again."""
    host_total: Change
    """Host time including nested calls, likewise."""
    summed_count: int = 1
    """Number of shapes, modules and names that it sums: those below a thousandth of the step."""


class ModuleRow(msgspec.Struct, frozen=True):
    """Cost per step of the operators and annotations of one `nn.Module` on each side."""

    name: str
    """As the profiler numbers it: `Linear_0`; empty for operators outside modules."""
    status: Status
    calls: Change
    """Calls of operators and annotations in it."""
    device: Change
    """Device time of the work that they launched directly."""
    host: Change
    """Their host self time."""
    is_rest: bool = False
    """Whether it sums the modules below a thousandth of the step."""
    summed_count: int = 1
    """Number of modules that it sums."""


class AdviceChange(msgspec.Struct, frozen=True):
    """Change of a finding; savings are per step, means over a side's traces."""

    rule: str
    title: str
    subject: str
    """Subject, where a rule has several findings; empty where it has one."""
    status: AdviceStatus
    severity_before: Severity | None
    severity_after: Severity | None
    low_before_ns: int
    high_before_ns: int
    low_after_ns: int
    high_after_ns: int
    reason: str = ""
    """Reason that it was not checked."""


class Saving(msgspec.Struct, frozen=True):
    """Estimated saving of followed advice per step, and the achieved change of the step."""

    worker: str
    """Empty where it is of all traces together."""
    span: str
    rules: tuple[str, ...]
    """The rules whose findings are fixed or became better."""
    predicted_low_ns: int
    """Estimated before; of a finding that became better, less what is still estimated."""
    predicted_high_ns: int
    realised_mean_ns: int
    """Mean step before minus after."""
    realised_median_ns: int
    """Median iteration of the host's loop before minus after, insensitive to one slow step."""


class Side(msgspec.Struct, frozen=True):
    """One side of a comparison."""

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
    """Mean step per sample; None where the batch size is unknown."""


class Comparability(msgspec.Struct, frozen=True):
    """Whether the steps of two sides are comparable."""

    level: Comparable
    reasons: tuple[str, ...]
    """Differences between the sides with which their steps are not comparable, as sentences."""
    cautions: tuple[str, ...]
    """Differences with which they are comparable with care: settings, versions, ranks."""
    likeness: float | None
    """Of the models, by their operators, from 0 to 1; None where a side has no operators."""


class SettingChange(msgspec.Struct, frozen=True):
    """A setting of the run, as the trace handler recorded it, that differs between the sides."""

    name: str
    """As it was recorded: `dataloaders[0].worker_count`."""
    label: str
    """As it is shown: `DataLoader, Workers`."""
    before: str
    after: str


class Comparison(msgspec.Struct, frozen=True):
    """Two sides and their differences."""

    before: Side
    after: Side
    comparability: Comparability
    step: Change
    step_interval_ns: tuple[float, float] | None
    """95 % confidence interval of the step's difference (Welch); None where a side has one step."""
    waterfall: tuple[Part, ...]
    """Changes of the parts of the mean step, which sum to its change."""
    idle: tuple[Part, ...]
    """The busiest device's idle time per step by cause; not tested."""
    figures: tuple[Part, ...]
    """Busy share, peak memory and the like; not tested."""
    operators: tuple[Row, ...]
    """Largest changes first; rows sum to the whole. Those below a thousandth of the step are summed
    by name, or in the row `rest`, unless they were added or are gone."""
    device_work: tuple[Row, ...]
    """Kernels, copies and memory sets, likewise."""
    advice: tuple[AdviceChange, ...]
    savings: tuple[Saving, ...]
    """Of all traces together, then of each trace that both sides have; empty where the sides are
    not comparable."""
    warnings: tuple[str, ...]
    """Caveats: damage, too few steps, spans that differ."""
    settings: tuple[SettingChange, ...] = ()
    """Recorded settings that differ; empty where one side has none recorded."""


class ComparisonReport(msgspec.Struct, frozen=True):
    """The result of `stepscope compare`."""

    comparisons: tuple[Comparison, ...]
    test: str
    """The statistical test of changes."""
    problems: tuple[Problem, ...] = ()
    schema: int = SCHEMA_VERSION
    version: str = ""


def json_schema() -> dict[str, object]:
    """Return the JSON Schema (draft 2020-12) of `ComparisonReport`."""
    return msgspec.json.schema(ComparisonReport)
