"""Advice, one piece a file: `rules/<name>.py` with its cases in `tests/rules/<name>.yml`.

A rule is a pure function of a trace. It yields `Finding`s, which are fields and never markup, and
`Rejected`, what looks like a fault and is none. It raises `NotApplicableError` where the recording
has nothing of what it is about, and `MissingDataError`, with the line of code that would record it,
where it cannot tell. It claims time as intervals; `stepscope.advice` gives every nanosecond to one
claim only. A rule over all ranks of a run has `check_run` in place of `check`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, Literal, TypeVar

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.health import PARTS, Parts
from stepscope.base.calibration import EXPOSED_TIME, Factor
from stepscope.base.report import (
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
)
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

OptionsT = TypeVar("OptionsT")

CRITICAL_SHARE = 0.20
WARNING_SHARE = 0.05
INFO_SHARE = 0.01
"""Recoverable share of the window: xprof's 5 and 20 % for input, torch-tb-profiler's 5 %."""


def option(
    default: Any,  # noqa: ANN401 (of the field's own type)
    meaning: str,
    *,
    origin: str,
    is_threshold: bool = True,
) -> Any:  # noqa: ANN401 (as `dataclasses.field`)
    """Return a field of a rule's `Options`: what it means, and where its default comes from.

    The field's name ends in its unit. `is_threshold=False` is for what changes no answer, such as
    how many rows of evidence are shown.
    """
    about = {"meaning": meaning, "origin": origin, "is_threshold": is_threshold}
    return field(default=default, metadata=about)


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """Time that the fix could win back. A gain in throughput alone is no claim: it is evidence."""

    intervals: Intervals
    """What could be saved, on the window's clock (int64, shape (n, 2), nanoseconds)."""
    factor: Factor = EXPOSED_TIME
    """How much of it is won at least and at most."""
    method: str = ""
    """One sentence: how it was reckoned."""
    low_intervals: Intervals | None = None
    """The part to which the factor's `low` applies, where it is not all of it."""
    is_device_work: bool = False
    """True where the times are of the device's own work that would become faster, not of waiting:
    then only that part is won in which the device, not the host, is the limit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RunClaim:
    """What a finding about a whole run could save: nanoseconds of the run's mean step."""

    low_ns: float
    high_ns: float
    method: str
    taken_ns: Mapping[str, float] = field(default_factory=dict)
    """Recording (`Trace.id`) to how much of its step `taken_from` then does not claim."""
    taken_from: tuple[str, ...] = ()
    """Ids of the rules, the nearest first, whose claims on a recording hold the same time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """One thing that a rule found, in plain text and plain numbers."""

    message: str
    severity: Severity | None = None
    """None: from the recoverable share, by the thresholds above; hidden below the lowest."""
    confidence: Confidence = "high"
    evidence: tuple[Evidence, ...] = ()
    tables: tuple[EvidenceTable, ...] = ()
    events: tuple[EventReference, ...] = ()
    locations: tuple[SourceLine, ...] = ()
    """Lines of the user's program that it is about (`references.source_lines`)."""
    claims: tuple[Claim, ...] = ()
    run_claim: RunClaim | None = None
    """Of rules over a run, in place of `claims`."""
    fix: Fix | None = None
    """In place of the rule's own, where this case asks for other words or code."""
    effort: Effort | None = None
    risk: Risk | None = None
    """In place of the rule's own, where this case differs."""
    blamed: tuple[str, ...] = ()
    """Of rules over a run: ids of the recordings (`Trace.id`) that are the cause. What these say of
    themselves, and their peers do not, is told beside the finding."""
    place: str = ""
    """What tells this finding from the rule's others on the same recording, without numbers: an
    operator's name, a function. It goes into the fingerprint."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Rejected:
    """What looks like a fault and costs nothing here, with the numbers that acquit it."""

    message: str
    evidence: tuple[Evidence, ...] = ()
    tables: tuple[EvidenceTable, ...] = ()
    events: tuple[EventReference, ...] = ()


Answer = Finding | Rejected


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """What rules over a run know of one recording."""

    trace: str
    worker: str
    span: str
    part: RankSummary
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class RunEvidence:
    """What rules over a run are given: what each recording has to say, without its events."""

    name: str
    recordings: tuple[Recording, ...]
    unreadable: tuple[str, ...] = ()
    """Names of files of the run that could not be read."""
    awaited_count: int = 0
    """How many others were not read yet, or their reading was cancelled."""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[OptionsT]):
    """A check with its words and its thresholds."""

    id: str
    title: str
    """The bad state, as a sentence without a full stop."""
    category: str
    why: str
    """Why that state costs time: sentences."""
    detects: str
    """What it looks at and when it speaks: sentences, in which thresholds are called by the names
    of the options."""
    silent: tuple[str, ...] = ()
    """When it keeps silent though it seems that it should speak: a sentence each."""
    saving: str
    """How the saving is reckoned, or why none is claimed: sentences."""
    fix: Fix
    effort: Effort
    risk: Risk
    options: OptionsT
    check: Callable[[Trace, OptionsT], Iterable[Answer]] | None = None
    check_run: Callable[[RunEvidence, OptionsT], Iterable[Answer]] | None = None
    """In place of `check`, for rules over all recordings of a run."""
    priority: int = 500
    """Who gets time that several claim: the lowest number first (special causes before general)."""
    is_symptom: bool = False
    """True where the rule names no cause: listed after all causes, and it claims nothing."""
    rests_on: Parts = PARTS
    """Where these parts of a recording are damaged, it has low confidence or is not asked."""
    links: tuple[str, ...] = ()
    since: str = "0.1.0"
    life_cycle: LifeCycle = "stable"
    origin: str = ""
    """Where the check comes from; each threshold's origin stands with its option."""
    aliases: tuple[str, ...] = ()
    """Other names by which configuration and `stepscope explain` know it."""
    culprit: str = ""
    """What costs the time, as a verdict names it: `the DataLoader` (alone costs 59 ms a step)."""
    package: str = ""
    """The package that brings it; empty for stepscope's own."""

    @property
    def scope(self) -> Literal["recording", "run"]:
        """What it looks at."""
        return "recording" if self.check_run is None else "run"


def all_rules() -> tuple[Rule[Any], ...]:
    """Return every rule in this folder, in name order; `shared/` holds code of several rules."""
    return tuple(import_module(f"{__name__}.{name}").RULE for name in _rule_names())


@cache
def _rule_names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules(__path__) if not module.ispkg))


def severity_of(share: float) -> Severity | None:
    """Return how serious a recoverable share of the window is; None: not worth a word."""
    if share >= CRITICAL_SHARE:
        return "critical"
    if share >= WARNING_SHARE:
        return "warning"
    return "info" if share >= INFO_SHARE else None
