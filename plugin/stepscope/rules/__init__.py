"""Advice, one piece a file: `rules/<name>.py` with its cases in `tests/rules/<name>.yml`.

A rule is a pure function of a trace. It yields `Finding`s, which are fields and never markup, or
raises `MissingDataError` with the line of code that would record what it lacks. It claims time as
intervals; `stepscope.advice` gives every nanosecond to one claim only.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

from stepscope.analyses.health import PARTS, Parts
from stepscope.intervals import Intervals
from stepscope.report import Confidence, EventReference, Evidence, Fix, Severity
from stepscope.trace import Trace

OptionsT = TypeVar("OptionsT")

CALIBRATED_LOW = 0.75
"""Realised over exposed time in torch-tb-profiler's own natural experiment (0 against 4 DataLoader
workers): 0.84 and 0.77 of what was predicted."""
CALIBRATED_LOW_WITHOUT_DEVICE = 0.4
"""The same on a CPU alone, where workers take cores from computing: 0.46 to 0.56 with two workers
on two cores (`sample_logs/dataloader`)."""
CRITICAL_SHARE = 0.20
WARNING_SHARE = 0.05
INFO_SHARE = 0.01
"""Recoverable share of the window: xprof's 5 and 20 % for input, torch-tb-profiler's 5 %."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Claim:
    """Time that the fix could win back. A gain in throughput alone is no claim: it is evidence."""

    intervals: Intervals
    """What could be saved, on the window's clock (int64, shape (n, 2), nanoseconds)."""
    low: float = CALIBRATED_LOW
    """Share of the claimed time that is won at least."""
    high: float = 1.0
    method: str = ""
    """One sentence: how it was reckoned."""
    low_intervals: Intervals | None = None
    """The part to which `low` applies, where it is not all of it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Finding:
    """One thing that a rule found, in plain text and plain numbers."""

    message: str
    severity: Severity | None = None
    """None: from the recoverable share, by the thresholds above; hidden below the lowest."""
    confidence: Confidence = "high"
    evidence: tuple[Evidence, ...] = ()
    events: tuple[EventReference, ...] = ()
    claim: Claim | None = None
    fix: Fix | None = None
    """In place of the rule's own, where this case asks for other words or code."""


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[OptionsT]):
    """A check with its words and its thresholds."""

    id: str
    title: str
    """The bad state, as a sentence."""
    category: str
    why: str
    fix: Fix
    options: OptionsT
    check: Callable[[Trace, OptionsT], Iterable[Finding]]
    priority: int = 50
    """Who gets time that several claim: the lowest number first (special causes before general)."""
    is_symptom: bool = False
    """True where the rule names no cause: listed after all causes, and it claims nothing."""
    rests_on: Parts = PARTS
    """Where these parts of a recording are damaged, it has low confidence or is not asked."""
    links: tuple[str, ...] = ()
    since: str = "0.1.0"
    origin: str = ""
    """Where the check and its thresholds come from."""


def all_rules() -> tuple[Rule[Any], ...]:
    """Return every rule in this folder, in name order; `_<name>.py` is what several share."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name[0] != "_")
    return tuple(import_module(f"{__name__}.{name}").RULE for name in names)


def severity_of(share: float) -> Severity | None:
    """Return how serious a recoverable share of the window is; None: not worth a word."""
    if share >= CRITICAL_SHARE:
        return "critical"
    if share >= WARNING_SHARE:
        return "warning"
    return "info" if share >= INFO_SHARE else None
