"""Shared code of the checks of a trace.

A check is a pure function of a trace, `check`, with one `HealthItem` per kind, and a table
`DAMAGES` of the parts of the trace that each kind damages. From these and from the item's severity
follows the effect on everything that rests on those parts:

| severity | results that rest on the damaged parts |
|---|---|
| info | unchanged |
| warning | low confidence |
| critical | withheld |
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from stepscope.analyses.core import event_references
from stepscope.base.findings import Severity
from stepscope.base.formatting import duration
from stepscope.base.report import HealthExample, HealthItem
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace

Part = Literal[
    "host calls", "nesting", "device times", "launches", "clocks", "steps", "memory", "ranks"
]
"""Parts of a trace that results and rules rest on.

`host calls`: operators, annotations and runtime calls with their times. `nesting`: the callers of
calls. `device times`: times and kinds of device work. `launches`: calls and operators of device
work. `clocks`: times of host and device compare. `steps`: the steps are typical. `memory`: the
allocator's events. `ranks`: each trace of a run stands for one rank."""
PARTS: frozenset[Part] = frozenset(get_args(Part))
Parts = frozenset[Part]
NOTHING: Parts = frozenset()
EXAMPLES = 3
NAME_LENGTH = 60
UNLIKELY_SHARE = 0.01
"""Fraction of the affected events below which no displayed number changes."""


@dataclass(frozen=True)
class Check:
    """A check, with the damaged parts by kind of item."""

    damages: Mapping[str, Iterable[Part]]
    check: Callable[[Trace], Iterable[HealthItem]]


def by_share(share: float, warning_at: float, critical_at: float = np.inf) -> Severity:
    """Return the severity of damage to a fraction of something."""
    if share >= critical_at:
        return "critical"
    return "warning" if share >= warning_at else "info"


def examples(
    trace: Trace, events: Ints, describe: Callable[[int], str]
) -> tuple[HealthExample, ...]:
    """Return the first few of some events; `describe` gives the oddity of the n-th."""
    return tuple(
        HealthExample(
            offset_bytes=int(trace.columns.offset_bytes[event]),
            text=f"{event_name(trace, int(event))}: {describe(number)}",
            start_ns=_start_ns(trace, int(event)),
        )
        for number, event in enumerate(events[:EXAMPLES])
    )


def _start_ns(trace: Trace, event: int) -> int | None:
    start = int(trace.columns.start_ns[event])
    return None if start == NO_TIME else start


def event_name(trace: Trace, event: int) -> str:
    """Return an event's name, shortened if it is long."""
    code = int(trace.columns.name[event])
    name = trace.columns.strings[code] if code >= 0 else "an event without a name"
    return shorten(name)


def shorten(name: str) -> str:
    """Return a name, with an ellipsis if it is long."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def on_device(trace: Trace, row: int) -> str:
    """Return time, duration and track of a row of `device_events` as text."""
    event = event_references.device_event(trace, row)
    lasting = f"{duration(event.duration_ns)} from {duration(event.start_ns)}"
    return f"{lasting} on {event.track}"


def synchronize(trace: Trace) -> str:
    """Return the line of code that waits for this vendor's device."""
    return f"torch.{trace.dialect.terms.get('module', 'accelerator')}.synchronize()"
