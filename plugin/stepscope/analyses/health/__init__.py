"""What a recording is worth: what was repaired or lost, what was not recorded, one check a file.

`health` runs every check of this folder. What a check yields says by its severity what becomes of
everything that rests on the damaged parts; `_check.py` has the table.
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
"""What only a look at all recordings of a run can tell: `advice/duplicate_ranks.py`."""
FAILED = "failed-check"
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
"""What is shown beside the advice, and what it rests on."""


@computed
def health(trace: Trace) -> tuple[HealthItem, ...]:
    """Return everything a reader of this recording's numbers should know of it, worst first."""
    items = [
        with_effect(item) for name, check in all_checks() for item in _found(trace, name, check)
    ]
    return tuple(sorted(items, key=severity_order))


def severity_order(item: HealthItem) -> tuple[int, int]:
    """Return an item's place among others: the worst first, damage before gaps before notes."""
    return SEVERITIES.index(item.severity), NATURES.index(item.nature)


@cache
def all_checks() -> tuple[tuple[str, Check], ...]:
    """Return every check in this folder by its name; `_<name>.py` is what several share."""
    names = sorted(module.name for module in iter_modules(__path__) if module.name[0] != "_")
    return tuple((name, import_module(f"{__name__}.{name}").CHECK) for name in names)


def _found(trace: Trace, name: str, check: Check) -> Iterator[HealthItem]:
    try:
        yield from check.check(trace)
    except Exception as error:  # what looks for damage must survive all of it
        log.warning("health check %s failed on %s: %s", name, trace.path, in_one_line(error))
        yield HealthItem(
            kind=FAILED,
            severity="info",
            count=1,
            message=f"the check {name.replace('_', '-')} failed: {in_one_line(error)}",
            remedy="This is a bug in stepscope: please report it with this line.",
        )


@cache
def damaged_parts() -> Mapping[str, Parts]:
    """Return the one table: for each kind of item, the parts of a recording that it damages."""
    of_checks = {kind: parts for _, check in all_checks() for kind, parts in check.damages.items()}
    return {**of_checks, **OF_MANY, FAILED: NOTHING}


def _damage(item: HealthItem) -> Parts:
    """Return the parts that an item damages; all, where its kind is not known."""
    return damaged_parts().get(item.kind, PARTS)


def with_effect(item: HealthItem) -> HealthItem:
    """Return the item with what becomes of that which rests on what it damages."""
    effect = EFFECTS[item.severity] if _damage(item) else "none"
    shown = [name for name, parts in RESTS_ON.items() if effect != "none" and parts & _damage(item)]
    return msgspec.structs.replace(item, effect=effect, affects=tuple(shown))


def doubts(trace: Trace, rests_on: Iterable[Part], effect: Effect) -> tuple[HealthItem, ...]:
    """Return the items with this effect on what rests on these parts, the worst first."""
    wanted = frozenset(rests_on)
    return tuple(item for item in health(trace) if item.effect == effect and wanted & _damage(item))
