"""What the file itself is worth: what was repaired or lost, and which flags were off."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.links import links
from stepscope.analyses.window import window
from stepscope.dialects import Kind
from stepscope.frames.source import DEVICE_KINDS
from stepscope.ingest import Incident
from stepscope.report import HealthItem
from stepscope.trace import Trace, computed

ORPHAN_SHARE = 0.02
"""Share of device events without a recorded launch from which attribution suffers."""
CUT_OFF = frozenset({"truncated-gzip", "truncated-json"})
EARLY_SHARE = 0.01
"""Share of device events that begin before their launch from which the clocks are in doubt."""


@computed
def health(trace: Trace) -> tuple[HealthItem, ...]:
    """Return everything a reader of this recording's numbers should know of it, worst first."""
    items = [*_incidents(trace), *_lost(trace), *_orphans(trace), *_clocks(trace), *_flags(trace)]
    rank = {"critical": 0, "warning": 1, "info": 2}
    return tuple(sorted(items, key=lambda item: rank[item.severity]))


def _incidents(trace: Trace) -> Iterator[HealthItem]:
    for incident in trace.columns.incidents:
        yield HealthItem(
            kind=incident.kind,
            severity="warning",
            count=incident.count,
            message=_counted(incident),
            remedy=incident.remedy,
        )


def _counted(incident: Incident) -> str:
    return f"{incident.count:,} {incident.message}" if incident.count > 1 else incident.message


def is_cut_off(trace: Trace) -> bool:
    """Tell whether the file ends in the middle. Kineto writes the device's events last."""
    return any(incident.kind in CUT_OFF for incident in trace.columns.incidents)


def _lost(trace: Trace) -> Iterator[HealthItem]:
    on_device = np.isin(trace.source.kinds, [int(kind) for kind in DEVICE_KINDS])
    count = int((on_device & trace.source.is_lost).sum())
    if count:
        yield HealthItem(
            kind="empty-records",
            severity="info",
            count=count,
            message=f"{count:,} device events have neither start nor duration and are left out",
        )


def _orphans(trace: Trace) -> Iterator[HealthItem]:
    launch = links(trace).call_of_device_event
    missing = int((launch < 0).sum())
    if missing and missing >= ORPHAN_SHARE * len(launch):
        yield HealthItem(
            kind="launch-not-recorded",
            severity="warning",
            count=missing,
            message=(
                f"{missing:,} of {len(launch):,} device events have no recorded launch: no "
                "operator can be named for them, and gaps before them have no cause"
            ),
            remedy="Record one more warm-up step: schedule(wait=1, warmup=2, active=3)",
        )


def _clocks(trace: Trace) -> Iterator[HealthItem]:
    if early_share(trace) > EARLY_SHARE:
        early = int(_is_early(trace).sum())
        yield HealthItem(
            kind="clocks-disagree",
            severity="warning",
            count=early,
            message=(
                f"{early:,} device events begin before the host launched them: idle causes are in "
                "doubt"
            ),
        )


def _is_early(trace: Trace) -> NDArray[np.bool_]:
    """Tell, for each device event with a recorded launch, whether it began before that."""
    launch = links(trace).call_of_device_event
    linked = np.flatnonzero(launch >= 0)
    begun = trace.device_events["start_ns"].to_numpy()[linked]
    launched = trace.runtime_calls["start_ns"].to_numpy()[launch[linked]]
    return np.asarray(begun < launched)


def early_share(trace: Trace) -> float:
    """Return the share of linked device events that begin before their launch."""
    is_early = _is_early(trace)
    return float(is_early.mean()) if len(is_early) else 0.0


def _flags(trace: Trace) -> Iterator[HealthItem]:
    if not window(trace).has_steps:
        yield HealthItem(
            kind="no-steps",
            severity="info",
            count=1,
            message="no step is marked: figures are of the whole recording, not per step",
            remedy="Call prof.step() at the end of each iteration",
        )
    if len(trace.operators) and not trace.source.has("Input Dims", "Input dims"):
        yield HealthItem(
            kind="no-shapes",
            severity="info",
            count=1,
            message="input shapes were not recorded: batch size and grouping by shape are missing",
            remedy="torch.profiler.profile(..., record_shapes=True)",
        )
    if not (trace.source.kinds == int(Kind.PYTHON_CALL)).any() and not trace.source.has(
        "Call stack"
    ):
        yield HealthItem(
            kind="no-stacks",
            severity="info",
            count=1,
            message="Python stacks were not recorded: advice cannot name the source line",
            remedy="torch.profiler.profile(..., with_stack=True)",
        )
    if not (trace.source.kinds == int(Kind.MEMORY)).any():
        yield HealthItem(
            kind="no-memory",
            severity="info",
            count=1,
            message="allocations were not recorded",
            remedy="torch.profiler.profile(..., profile_memory=True)",
        )
