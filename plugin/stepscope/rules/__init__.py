"""Advice, one rule per file: `rules/<name>.py` with its cases in `tests/rules/<name>.yml`.

A rule is a pure function of a trace. It yields `Finding`s, which are fields and never markup, and
`RuledOut`: a suspicious pattern that costs nothing in this trace. It claims time as intervals;
`stepscope.advice` gives every nanosecond to one claim only. A rule over all ranks of a run has
`check_run` in place of `check`. How a rule is written:

    requirements.main_device(trace)                # raises MissingDataError: inconclusive
    requirements.applies_if(loops.count, "nothing loops over a tensor")   # else NotApplicableError
    finding = Finding(
        message=f"Copies take {phrases.time_and_fraction(trace, time_ns)}.",   # 3 ms per step (9 %)
        evidence=(
            facts.count("Copies in total", number),
            facts.duration("Host blocked in total", blocked_ns, "overview"),   # a view, or a Link
        ),
        tables=(facts.table("Calls", {"Call": "code", "Calls": "count"}, rows, "operators"),),
        claims=(Claim(idle, HALF_TO_ALL, "All idle time behind the copies."),),
        fix=Fix("Copy once.", "x = x.to(device)", verify="Copies are gone from Kernels."),
    )
    yield finding if is_costly else finding.ruled_out("Copies cost nothing: the GPU is busy.")

`rows` are tuples, `facts.row(..., link=...)`, or a frame; tables without rows are left out. Texts
are string literals filled to the line's length. This module has the vocabulary of a rule file;
measurements come from `stepscope.analyses`, figures and phrases from `rules.shared`. Of events and
lines see `shared.host_calls` and `shared.kernel_time`. A label of a rate or a sum ends in "per
step" or "in total".
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import IntEnum
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, Literal, TypeVar, dataclass_transform
from urllib.parse import urljoin

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.core.requirements import applies_if, conclusive_if
from stepscope.analyses.health import PARTS, Parts
from stepscope.base.calibration import EXPOSED_TIME, Factor
from stepscope.base.deprecation import deprecated_names
from stepscope.base.findings import (
    CRITICAL_SHARE,
    INFO_SHARE,
    WARNING_SHARE,
    Confidence,
    Effort,
    EventReference,
    Evidence,
    EvidenceTable,
    Fix,
    LifeCycle,
    Outcome,
    Risk,
    Severity,
    SourceLine,
    severity_of,
)
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import ChangeRange

__all__ = [
    "CRITICAL_SHARE",
    "INFO_SHARE",
    "WARNING_SHARE",
    "Claim",
    "Factor",
    "Finding",
    "Fix",
    "Priority",
    "Recording",
    "Results",
    "Rule",
    "RuleResult",
    "RuledOut",
    "RunClaim",
    "RunEvidence",
    "Stage",
    "Thresholds",
    "Trace",
    "all_rules",
    "applies_if",
    "claim_order",
    "conclusive_if",
    "option",
    "severity_of",
]

OptionsT = TypeVar("OptionsT")

LINKS_BASE = "https://docs.pytorch.org/docs/stable/"


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Thresholds:
    """Base of a rule's `Options`: each attribute is an `option`, and each subclass a dataclass."""

    def __init_subclass__(cls) -> None:
        """Make the subclass a frozen dataclass."""
        dataclass(frozen=True, kw_only=True)(cls)


def option(
    default: Any,  # noqa: ANN401 (of the field's own type)
    meaning: str,
    *,
    origin: str,
    is_threshold: bool = True,
) -> Any:  # noqa: ANN401 (as `dataclasses.field`)
    """Return a field of a rule's `Options`, with its meaning and the origin of its default.

    The field's name ends in its unit. `is_threshold=False` is for options that change no outcome,
    such as the number of rows shown.
    """
    about = {"meaning": meaning, "origin": origin, "is_threshold": is_threshold}
    return field(default=default, metadata=about)


Stage = Literal[
    "loading",
    "runtime",
    "synchronization",
    "communication",
    "optimizer",
    "device work",
    "launches",
    "program",
    "trace",
    "symptom",
]


class Priority(IntEnum):
    """Stage of a rule's claims: earlier stages get time that several rules claim."""

    LOADING = 10
    RUNTIME = 40
    """Python, compilers, allocators and debugging modes on the host."""
    SYNCHRONIZATION = 80
    """Waits for the device, and copies between host and device."""
    COMMUNICATION = 180
    OPTIMIZER = 240
    DEVICE_WORK = 280
    """Kernels and copies that could be faster or are not needed."""
    LAUNCHES = 430
    """Idle time of no more specific cause."""
    PROGRAM = 500
    """Settings and imbalance, with claims of their own or none."""
    TRACE = 600
    """Quality of the trace: no claims."""
    SYMPTOM = 890


@dataclass(frozen=True, eq=False)
class Claim:
    """Time that the fix could save: what the replayed step gains when it goes.

    A gain in throughput is a claim for the same number of samples, and says so.
    """

    intervals: Intervals
    """Potential saving, on the window's clock (int64, shape (n, 2), nanoseconds)."""
    factor: Factor = EXPOSED_TIME
    """The least and the greatest fraction of it that is saved."""
    method: str = ""
    """One sentence: how this was estimated."""
    _: KW_ONLY
    low_intervals: Intervals | None = None
    """The part to which the factor's `low` applies, where it is not all of it."""
    is_device_work: bool = False
    """Whether the times are of device work that would become faster, while the host stays as it
    is; else host and devices skip them."""
    waits: Ints | None = None
    """Rows of `runtime_calls` that would not wait for the device any more."""
    calls: Ints | None = None
    """Rows of `host_calls` that would go, with all that they launch and wait for.

    With either, the most that is saved is a step without these waits and calls.
    """
    is_unslowed: bool = False
    """Whether recording slows the claimed host time by no more than the events in it: work outside
    of torch's operators, whose tensors it does not touch."""
    changes: ChangeRange | None = None
    """Changes of the replay in place of the factor, which limits the least saving all the same."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunClaim:
    """Potential saving of a finding about a whole run: nanoseconds of the run's mean step."""

    low_ns: float
    high_ns: float
    method: str
    taken_ns: Mapping[str, float] = field(default_factory=dict)
    """Trace (`Trace.id`) to the part of its step that `taken_from` then does not claim."""
    taken_from: tuple[str, ...] = ()
    """Ids of the rules, the nearest first, whose claims on a trace cover the same time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RuledOut:
    """A suspicious pattern that costs nothing here, with the numbers that show it."""

    message: str
    evidence: tuple[Evidence, ...] = ()
    tables: tuple[EvidenceTable, ...] = ()
    events: tuple[EventReference, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """A problem that a rule detected, in plain text and plain numbers."""

    message: str
    severity: Severity | None = None
    """None: from the potential saving, by the thresholds above; hidden below the lowest."""
    confidence: Confidence = "high"
    evidence: tuple[Evidence, ...] = ()
    tables: tuple[EvidenceTable, ...] = ()
    """Tables without rows are left out."""
    events: tuple[EventReference, ...] = ()
    locations: tuple[SourceLine, ...] = ()
    """Lines of the user's program that it is about (`event_references.source_lines`)."""
    claims: tuple[Claim, ...] = ()
    run_claim: RunClaim | None = None
    """Of rules over a run, in place of `claims`."""
    fix: Fix | None = None
    """In place of the rule's fix, where this case needs other text or code."""
    effort: Effort | None = None
    risk: Risk | None = None
    """In place of the rule's, where this case differs."""
    blamed: tuple[str, ...] = ()
    """Of rules over a run: ids of the traces (`Trace.id`) that are the cause. Findings that only
    these traces have are shown as related."""
    subject: str = ""
    """What distinguishes it from the rule's other findings on the same trace, without numbers: an
    operator's name, a function. It is a part of the fingerprint."""

    def ruled_out(self, message: str, *evidence: Evidence) -> RuledOut:
        """Return the same facts, and more evidence, as a pattern that costs nothing here."""
        return RuledOut(
            message=message,
            evidence=(*self.evidence, *evidence),
            tables=self.tables,
            events=self.events,
        )


RuleResult = Finding | RuledOut
Results = Iterator[RuleResult]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """One trace, as rules over a run see it."""

    trace: str
    worker: str
    span: str
    part: RankSummary
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEvidence:
    """The input of rules over a run: summaries and outcomes of its traces, without their events."""

    name: str
    recordings: tuple[Recording, ...]
    unreadable: tuple[str, ...] = ()
    """Names of files of the run that could not be read."""
    awaited_count: int = 0
    """Number of files that were not read yet, or whose reading was cancelled."""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[OptionsT]):
    """A check with its texts and its thresholds."""

    id: str
    title: str
    """The bad state, as a sentence without a full stop."""
    passed: str = ""
    """The good state, likewise: shown where the check passed."""
    category: str
    why: str
    """Why that state costs time: sentences."""
    detects: str
    """What it checks and when it reports: sentences, in which thresholds are called by the names
    of the options."""
    silent: tuple[str, ...] = ()
    """Cases in which it does not report although the reader may expect it: a sentence each."""
    saving: str
    """How the saving is estimated, or why none is claimed: sentences."""
    fix: Fix
    effort: Effort
    risk: Risk
    options: OptionsT
    check: Callable[[Trace, OptionsT], Iterable[RuleResult]] | None = None
    check_run: Callable[[RunEvidence, OptionsT], Iterable[RuleResult]] | None = None
    """In place of `check`, for rules over all traces of a run."""
    priority: Stage | int = "program"
    """Stage of its claims, by name (see `Priority`); see `claim_order`."""
    after: tuple[str, ...] = ()
    """Ids of more specific rules of the same stage, whose claims come first."""
    is_symptom: bool = False
    """Whether the rule names no cause: it is listed after all causes, and sure of no saving."""
    is_general: bool = False
    """Whether its cause is one of any loop with short kernels: findings of the same severity that
    name more, and save half as much or more, come before it."""
    reports_missing_data: bool = False
    """Whether its findings list data missing from the run: they also stand above the others."""
    rests_on: Parts = PARTS
    """Where these parts of a trace are damaged, it has low confidence or does not run."""
    links: tuple[str, ...] = ()
    """Addresses; relative ones are pages of PyTorch's documentation (`optim.html`)."""
    since: str = "0.1.0"
    life_cycle: LifeCycle = "stable"
    origin: str = ""
    """Source of the check; each threshold's origin is given with its option."""
    aliases: tuple[str, ...] = ()
    """Other names that configuration and `stepscope explain` accept."""
    culprit: str = ""
    """The cause as a verdict names it: `the DataLoader` (alone costs 59 ms per step)."""
    judges: str = ""
    """Category of the step (`communication`) that it judges: while the rule is inconclusive and the
    category takes 5 % or more of the step, the trace is not called healthy."""
    package: str = ""
    """The package that provides it; empty for stepscope's own rules."""

    def __post_init__(self) -> None:
        """Complete the relative links."""
        object.__setattr__(self, "links", tuple(urljoin(LINKS_BASE, link) for link in self.links))

    @property
    def stage(self) -> int:
        """Number of the stage of its claims: those of a lower stage come first."""
        if isinstance(self.priority, int):
            return self.priority
        return Priority[self.priority.replace(" ", "_").upper()]

    @property
    def scope(self) -> Literal["recording", "run"]:
        """Whether it checks each trace, or all traces of a run together."""
        return "recording" if self.check_run is None else "run"


def all_rules() -> tuple[Rule[Any], ...]:
    """Return every rule in this folder, in name order; `shared/` holds code of several rules."""
    return tuple(import_module(f"{__name__}.{name}").RULE for name in _rule_names())


@cache
def _rule_names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules(__path__) if not module.ispkg))


def claim_order(rules: Iterable[Rule[Any]]) -> dict[str, int]:
    """Return the position of each rule, by id, in the order in which claims get time.

    By `priority`, then more specific rules first (`after`), then by id. An `after` counts also
    where the rule that it names is not among `rules`: what two rules claim must not depend on
    which others were run, or found something.
    """
    by_id = {rule.id: rule for rule in (*all_rules(), *rules)}

    def depth(rule: Rule[Any]) -> int:
        return 1 + max(
            (depth(by_id[rule_id]) for rule_id in rule.after if rule_id in by_id), default=0
        )

    ordered = sorted(by_id.values(), key=lambda rule: (rule.stage, depth(rule), rule.id))
    return {rule.id: position for position, rule in enumerate(ordered)}


__getattr__ = deprecated_names(
    __name__, {"Rejected": (__name__, "RuledOut"), "Answer": (__name__, "RuleResult")}
)
