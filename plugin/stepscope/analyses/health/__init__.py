"""Health of a trace: repaired or lost data, and data that was not recorded. One check per file.

`health` runs every check of this folder. The severity of an item sets its effect on everything that
rests on the damaged parts; `_check.py` has the table.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import msgspec

from stepscope.analyses.health._check import NOTHING, PARTS, Check, Part, Parts
from stepscope.analyses.health.incidents import losses, losses_among
from stepscope.base.errors import in_one_line
from stepscope.base.findings import Severity
from stepscope.base.report import Effect, HealthItem, Nature
from stepscope.model.trace import Trace, computed

__all__ = [
    "PARTS",
    "Part",
    "Parts",
    "all_checks",
    "damaged_parts",
    "doubts",
    "failed_item",
    "health",
    "losses",
    "losses_among",
    "with_effect",
]

log = logging.getLogger(__name__)

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
NATURES: tuple[Nature, ...] = ("damage", "gap", "note")
EFFECTS: Mapping[Severity, Effect] = {"critical": "withheld", "warning": "low", "info": "none"}
OF_MANY: Mapping[str, Parts] = {
    "duplicate-file": frozenset({"ranks"}),
    "duplicate-rank": frozenset({"ranks"}),
}
"""Kinds that only a comparison of all traces of a run can show: `advice/duplicate_ranks.py`."""
FAILED, FAILED_PART = "failed-check", "failed-part"
RESTS_ON: Mapping[str, Parts] = {
    "verdict": frozenset({"device times", "steps"}),
    "step breakdown": frozenset({"host calls", "device times", "clocks", "steps"}),
    "device use": frozenset({"device times"}),
    "idle causes": frozenset({"device times", "launches", "clocks"}),
    "operators": frozenset({"host calls", "nesting", "launches"}),
    "kernels": frozenset({"device times"}),
    "memory": frozenset({"memory"}),
    "comparison of ranks": frozenset({"ranks"}),
}
"""Results other than advice, and the parts that they rest on."""


@computed
def health(trace: Trace) -> tuple[HealthItem, ...]:
    """Return everything that affects this trace's numbers, the worst first."""
    items = [
        with_effect(item) for name, check in all_checks() for item in _items_of(trace, name, check)
    ]
    return tuple(sorted(items, key=severity_order))


def severity_order(item: HealthItem) -> tuple[int, int]:
    """Return the sort key of an item: the worst first, damage before gaps before notes."""
    return SEVERITIES.index(item.severity), NATURES.index(item.nature)


@cache
def all_checks() -> tuple[tuple[str, Check], ...]:
    """Return every check in this folder by its name; `_<name>.py` is shared code."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name[0] != "_")
    modules = ((name, import_module(f"{__name__}.{name}")) for name in names)
    return tuple((name, Check(module.DAMAGES, module.check)) for name, module in modules)


def _items_of(trace: Trace, name: str, check: Check) -> Iterator[HealthItem]:
    try:
        yield from check.check(trace)
    except Exception as error:  # a check for damage must survive all of it
        log.warning("health check %s failed on %s: %s", name, trace.path, in_one_line(error))
        item = failed_item(f"the check {name.replace('_', '-')} failed: {in_one_line(error)}")
        yield msgspec.structs.replace(item, kind=FAILED, severity="info")


def failed_item(message: str) -> HealthItem:
    """Return the item of a part of the analysis that failed unexpectedly."""
    return HealthItem(
        kind=FAILED_PART,
        severity="warning",
        count=1,
        message=message,
        remedy="This is a bug in stepscope: please report it with this line.",
    )


@cache
def damaged_parts() -> Mapping[str, Parts]:
    """Return, for each kind of item, the parts of a trace that it damages."""
    damages = (check.damages for _, check in all_checks())
    of_checks = {kind: frozenset(parts) for of_check in damages for kind, parts in of_check.items()}
    return {**of_checks, **OF_MANY, FAILED: NOTHING, FAILED_PART: NOTHING}


def _damage(item: HealthItem) -> Parts:
    """Return the parts that an item damages; all for an unknown kind."""
    return damaged_parts().get(item.kind, PARTS)


def with_effect(item: HealthItem) -> HealthItem:
    """Return the item with its effect on everything that rests on the damaged parts."""
    effect = EFFECTS[item.severity] if _damage(item) else "none"
    shown = [name for name, parts in RESTS_ON.items() if effect != "none" and parts & _damage(item)]
    return msgspec.structs.replace(item, effect=effect, affects=tuple(shown))


def doubts(trace: Trace, rests_on: Iterable[Part], effect: Effect) -> tuple[HealthItem, ...]:
    """Return the items with this effect on results that rest on these parts, the worst first."""
    parts = frozenset(rests_on)
    return tuple(item for item in health(trace) if item.effect == effect and parts & _damage(item))
