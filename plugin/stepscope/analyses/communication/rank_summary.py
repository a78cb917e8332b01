"""What one recording has to say beside the others of its run: small, and free of its events."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import steps_of
from stepscope.analyses.communication.rank_assignment import RankEvidence, rank_evidence
from stepscope.analyses.communication.rank_devices import RankDevice, process_id, rank_devices
from stepscope.analyses.communication.rank_process_groups import RankGroup, rank_groups
from stepscope.analyses.communication.rank_steps import Curve, RankSteps, rank_steps
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.exposed_communication import HOST, computing, exposure, hidden_ns
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.core.window import window
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model import intervals
from stepscope.model.table_columns import plain
from stepscope.model.trace import Trace, computed

UNEVEN = frozenset({"all_to_all", "all_to_allv", "gather", "scatter", "other"})
"""Kinds in which each rank may send another amount."""
POINT_TO_POINT = frozenset({"send", "recv"})
NO_HOSTS = frozenset({"", "localhost", "localhost.localdomain"})
"""What machines are called that were given no name."""


class Key(NamedTuple):
    """What collectives have in common that may be one and the same on several ranks."""

    group: str
    ranks: str
    kind: str
    dtype: str
    bytes: float
    """-1 where unknown, or where ranks differ in it."""
    source: int
    destination: int


@dataclass(frozen=True, kw_only=True, eq=False)
class RankCollectives:
    """The collectives whose time is known, of groups of more than one rank, in order."""

    keys: tuple[Key, ...]
    key: NDArray[np.int32]
    """Which of `keys` each has."""
    sequence: NDArray[np.int64]
    """torch's `Seq`; -1: not recorded."""
    start_ns: NDArray[np.int64]
    """On this rank's clock, from Unix time 0 where the file says so."""
    duration_ns: NDArray[np.int64]
    message_bytes: NDArray[np.float64]
    step: NDArray[np.int64]
    hidden_ns: NDArray[np.int64]
    """How long something computed meanwhile."""
    event: NDArray[np.int64]
    """The place in the file of its first kernel, or on the host of its annotation."""

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.key)


@dataclass(frozen=True, kw_only=True)
class RankTotals:
    """Where a mean step goes, without regard to other ranks."""

    step_count: int
    step_ns: float
    computing_ns: float
    communication_ns: float
    exposed_ns: float
    idle_ns: float
    """Of the main device; NaN where there is none."""
    parts_ns: Mapping[str, int]
    """The mean step's categories: `step_breakdown`."""
    kernel_count: float
    """Kernels a step; NaN without a device."""
    memory_peak_bytes: float
    """The most that it held of one device; NaN: not recorded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RankPart:
    """One recording of a run."""

    evidence: RankEvidence
    host: str | None
    """The machine's name (`host_name`)."""
    device_name: str | None
    has_device: bool
    world_size: int | None
    totals: RankTotals
    collectives: RankCollectives
    steps: RankSteps
    """With times on this rank's clock, from Unix time 0 where the file says so."""
    devices: tuple[RankDevice, ...]
    groups: tuple[RankGroup, ...]
    process_id: int | None


@computed
def rank_part(trace: Trace) -> RankPart:
    """Return what a recording has to say beside others."""
    main = main_device(trace)
    return RankPart(
        evidence=rank_evidence(trace),
        host=_host(trace),
        device_name=_device_name(trace, main.device if main is not None else None),
        has_device=main is not None,
        world_size=_world_size(trace),
        totals=_totals(trace),
        collectives=_collectives(trace),
        steps=_steps(trace),
        devices=rank_devices(trace),
        groups=rank_groups(trace),
        process_id=process_id(trace),
    )


def _host(trace: Trace) -> str | None:
    name = trace.metadata.get("host_name")
    return name if isinstance(name, str) and name.lower() not in NO_HOSTS else None


def _world_size(trace: Trace) -> int | None:
    info = trace.metadata.get("distributedInfo")
    size = info.get("world_size") if isinstance(info, Mapping) else None
    return size if isinstance(size, int) and size > 0 else None


def _device_name(trace: Trace, device: int | None) -> str | None:
    listed = trace.metadata.get("deviceProperties")
    entries = [of for of in listed if isinstance(of, Mapping)] if isinstance(listed, list) else []
    own = [entry for entry in entries if entry.get("id") == device]
    names = {str(entry["name"]) for entry in (own or entries) if entry.get("name")}
    return names.pop() if len(names) == 1 else None


def _totals(trace: Trace) -> RankTotals:
    within, steps, main = window(trace), step_breakdown(trace), main_device(trace)
    times = computing(trace)
    device = HOST if main is None else main.device
    worked = intervals.clip(times.get(device, times[HOST]), within.start_ns, within.device_end_ns)
    sent = exposure(trace, within.start_ns, within.device_end_ns)
    count = max(1, within.step_count)
    busy_ns = intervals.duration_ns(main.busy) if main is not None else np.nan
    return RankTotals(
        step_count=within.step_count,
        step_ns=within.device_duration_ns / count,
        computing_ns=intervals.duration_ns(worked) / count,
        communication_ns=sent.communication_ns / count,
        exposed_ns=sent.exposed_ns / count,
        idle_ns=(within.device_duration_ns - busy_ns) / count,
        parts_ns=steps.mean_parts_ns,
        kernel_count=_kernel_count(trace) / count if main is not None else np.nan,
        memory_peak_bytes=_memory_peak(trace),
    )


def _kernel_count(trace: Trace) -> int:
    """Return how many began in the window: a last step that was cut is not in it."""
    within, start_ns = window(trace), trace.kernels["start_ns"].to_numpy()
    return int(((start_ns >= within.start_ns) & (start_ns < within.device_end_ns)).sum())


def _memory_peak(trace: Trace) -> float:
    held = [peak.held_bytes for peak in memory_peak(trace).values()]
    return float(max((each for each in held if each is not None), default=np.nan))


def _collectives(trace: Trace) -> RankCollectives:
    frame = trace.collectives
    is_wanted = (frame["is_timed"] & (frame["group_size"] != 1)).to_numpy()
    steps = steps_of(trace)[is_wanted]
    frame = frame[is_wanted]
    kind = plain(frame["kind"])
    size = frame["message_bytes"].to_numpy()
    even = np.where(np.isin(kind, list(UNEVEN)) | np.isnan(size), -1.0, size)
    is_direct = np.isin(kind, list(POINT_TO_POINT))
    is_told = is_direct & (frame["source_rank"] >= 0) & (frame["destination_rank"] >= 0)
    keyed = pd.DataFrame(
        {
            "group": _texts(frame["group"]),
            "ranks": _texts(frame["group_ranks"]),
            "kind": np.where(is_told, "send", kind),  # of both, so that the two ends are one
            "dtype": _texts(frame["dtype"]),
            "bytes": even,
            "source": np.where(is_told, frame["source_rank"], -1),
            "destination": np.where(is_told, frame["destination_rank"], -1),
        }
    )
    code = keyed.groupby(list(keyed), sort=False).ngroup().to_numpy()
    return RankCollectives(
        keys=tuple(Key(*row) for row in keyed.drop_duplicates().itertuples(index=False)),
        key=code.astype(np.int32),
        # torch counts a group's point-to-point transfers on each rank by itself
        sequence=np.where(is_direct, -1, frame["sequence"].to_numpy()),
        start_ns=frame["start_ns"].to_numpy() + _origin_ns(trace),
        duration_ns=frame["duration_ns"].to_numpy(),
        message_bytes=size,
        step=steps,
        hidden_ns=hidden_ns(trace)[is_wanted],
        event=frame["event"].to_numpy(),
    )


def _texts(values: "pd.Series[Any]") -> "pd.Series[Any]":
    texts = plain(values)
    return pd.Series(np.where(pd.isna(texts), np.array("", dtype=object), texts), dtype=object)


def _steps(trace: Trace) -> RankSteps:
    steps, origin_ns = rank_steps(trace), _origin_ns(trace)
    curve = Curve(at_ns=steps.exposed.at_ns + origin_ns, until_ns=steps.exposed.until_ns)
    return replace(steps, start_ns=steps.start_ns + origin_ns, exposed=curve)


def _origin_ns(trace: Trace) -> int:
    """Return when a recording began, 0 where adding its length might leave 64 bits."""
    stamp_ns = trace.columns.origin_ns + trace.columns.base_time_ns
    return stamp_ns if abs(stamp_ns) < 2**62 else 0
