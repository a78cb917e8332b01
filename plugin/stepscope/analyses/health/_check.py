"""What a check of a recording is, and what checks share: one thing to look for a file.

A check is a pure function of a trace. It yields one `HealthItem` a kind, and says beside it on
which parts of the recording the damage lies. From that and from the item's severity follows what
becomes of everything that rests on those parts:

| severity | what rests on the damaged parts |
|---|---|
| info | stands as it is |
| warning | has low confidence |
| critical | is withheld |
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.base.findings import Severity
from stepscope.base.formatting import duration
from stepscope.base.report import HealthExample, HealthItem
from stepscope.dialects import GRAPH_CAPTURE_NAME, GRAPH_LAUNCH_NAME, LAUNCH_NAME
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

Part = Literal[
    "host calls", "nesting", "device times", "launches", "clocks", "steps", "memory", "ranks"
]
"""What figures and rules rest on.

`host calls`: operators, annotations and runtime calls with their times. `nesting`: which of them
called which. `device times`: when the device worked, and at what. `launches`: which call and
operator launched what. `clocks`: that the times of host and device compare. `steps`: that the steps
are what usually happens. `memory`: the allocator's events. `ranks`: that each recording of a run
stands for one rank.
"""
PARTS: frozenset[Part] = frozenset(get_args(Part))
Parts = frozenset[Part]
NOTHING: Parts = frozenset()
EXAMPLES = 3
NAME_LENGTH = 60
CAPTURE_END_NAME = re.compile(r"EndCapture|CaptureEnd")
UNLIKELY_SHARE = 0.01
"""Of the events concerned: less than that moves no figure that people read."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """Something to look for in a recording."""

    damages: Mapping[str, Parts]
    """For each kind of item that it may yield, the parts that are damaged then."""
    check: Callable[[Trace], Iterable[HealthItem]]


def by_share(share: float, warning_at: float, critical_at: float = np.inf) -> Severity:
    """Return how serious it is that a share of something is damaged."""
    if share >= critical_at:
        return "critical"
    return "warning" if share >= warning_at else "info"


def examples(
    trace: Trace, events: NDArray[np.int64], say: Callable[[int], str]
) -> tuple[HealthExample, ...]:
    """Return the first few of some events; `say` tells of the n-th what is odd about it."""
    return tuple(
        HealthExample(
            offset_bytes=int(trace.columns.offset_bytes[event]),
            text=f"{event_name(trace, int(event))}: {say(place)}",
            start_ns=_start_ns(trace, int(event)),
        )
        for place, event in enumerate(events[:EXAMPLES])
    )


def _start_ns(trace: Trace, event: int) -> int | None:
    start = int(trace.columns.start_ns[event])
    return None if start == NO_TIME else start


def event_name(trace: Trace, event: int) -> str:
    """Return an event's name, cut where it is long."""
    code = int(trace.columns.name[event])
    name = trace.columns.strings[code] if code >= 0 else "an event without a name"
    return shorten(name)


def shorten(name: str) -> str:
    """Return a name, without its end where it is long."""
    return name if len(name) <= NAME_LENGTH else f"{name[: NAME_LENGTH - 1]}…"


def on_device(trace: Trace, row: int) -> str:
    """Say when and where a row of `device_events` ran."""
    event = event_references.device_event(trace, row)
    lasting = f"{duration(event.duration_ns)} from {duration(event.start_ns)}"
    return f"{lasting} on {event.track}"


def synchronize(trace: Trace) -> str:
    """Return the line of code that waits for this vendor's device."""
    return f"torch.{trace.dialect.terms.get('module', 'accelerator')}.synchronize()"


def kernel_launches(trace: Trace) -> NDArray[np.int64]:
    """Return the rows of `runtime_calls` that launch one kernel each and made it run at once.

    What is launched while a graph is captured runs when the graph is replayed.
    """
    calls = trace.runtime_calls
    names = calls["name"]
    is_launch = name_mask(names, _launches_a_kernel) & (calls["correlation"].to_numpy() >= 0)
    begins = calls["start_ns"].to_numpy()
    captures = np.sort(begins[name_mask(names, GRAPH_CAPTURE_NAME.search)])
    ends = np.sort(begins[name_mask(names, CAPTURE_END_NAME.search)])
    open_count = np.searchsorted(captures, begins, side="right")
    open_count -= np.searchsorted(ends, begins, side="right")
    return np.flatnonzero(is_launch & (open_count <= 0))


def _launches_a_kernel(name: str) -> bool:
    return bool(LAUNCH_NAME.search(name)) and not GRAPH_LAUNCH_NAME.search(name)
