"""Summary of one trace for comparisons across ranks: small, and without the trace's events."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from sys import intern
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.collective_events import step_numbers
from stepscope.analyses.communication.collective_readiness import end_times, ready_times
from stepscope.analyses.communication.process_groups import process_groups
from stepscope.analyses.communication.rank_assignment import RankEvidence, rank_evidence
from stepscope.analyses.communication.rank_steps import Curve, RankSteps, rank_steps
from stepscope.analyses.core.device_activity import device_activity, main_device
from stepscope.analyses.core.exposed_communication import HOST, computing_times, exposure, hidden_ns
from stepscope.analyses.core.memory_peak import MOST_BYTES, device_properties, memory_peak
from stepscope.analyses.core.window import window
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.table import plain_values
from stepscope.model.trace import Trace, computed, whole_number

SHAPE = re.compile(r"\[([0-9]+(?:,[0-9]+)*)\]")
"""The shape of one tensor in `input_dims`."""
UNEVEN = frozenset({"all_to_all", "all_to_allv", "gather", "scatter", "other"})
"""Kinds in which ranks may send different amounts."""
POINT_TO_POINT = frozenset({"send", "recv"})
NO_HOSTS = frozenset({"", "localhost", "localhost.localdomain"})
"""Names of machines without a configured name."""
MOST_ELEMENTS = 2.0**62
"""Of the inputs of one call; a damaged shape may have any number."""
MOST_UNUSED = 64
"""Most unused groups in a summary: a header may list all groups of the job."""


class Key(NamedTuple):
    """Properties that a collective has in common on all its ranks."""

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
    """Collectives with known times, of groups of more than one rank, in order."""

    keys: tuple[Key, ...]
    key: NDArray[np.int32]
    """Index in `keys`."""
    sequence: Ints
    """torch's `Seq`; -1: not recorded."""
    start_ns: Ints
    """On this rank's clock, as Unix time where the file has it."""
    ready_ns: Ints
    """When its data was ready and its call began (`ready_times`), on the same clock."""
    duration_ns: Ints
    message_bytes: Floats
    step: Ints
    hidden_ns: Ints
    """Time in which its device also computes."""
    event: Ints
    """Index in the file of its first kernel; on the host, of its annotation."""

    def __len__(self) -> int:
        """Return the number of collectives."""
        return len(self.key)


@dataclass(frozen=True, kw_only=True)
class RankTotals:
    """Breakdown of the mean step, without regard to other ranks."""

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
    """Kernels per step; NaN without a device."""
    operator_count: float
    """Operators per step."""
    element_count: float
    """Elements of the operators' inputs per step; NaN: no shape was recorded."""
    memory_peak_bytes: float
    """Highest peak of a device; NaN: not recorded."""


@dataclass(frozen=True, kw_only=True)
class RankDevice:
    """One device; None: not recorded."""

    number: int
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    processor_count: int | None
    """Streaming multiprocessors, or compute units."""
    busy_share: float | None
    """Of the window; None: unused device."""


@dataclass(frozen=True, kw_only=True)
class RankGroup:
    """One process group with this rank's cost; see `process_groups`."""

    name: str
    ranks: str
    """As JSON; empty where unknown."""
    description: str
    backend: str
    size: int
    """0: unknown."""
    role: str
    """Empty: unknown."""
    role_confidence: str
    role_reason: str
    kinds: tuple[str, ...]
    call_count: int
    total_ns: int
    exposed_ns: int
    total_bytes: float
    """NaN: not recorded."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RankSummary:
    """Summary of one trace of a run."""

    evidence: RankEvidence
    host: str | None
    """The machine's name (`host_name`)."""
    device_name: str | None
    has_device: bool
    world_size: int | None
    totals: RankTotals
    collectives: RankCollectives
    steps: RankSteps
    """Times are on this rank's clock, as Unix time where the file has it."""
    devices: tuple[RankDevice, ...]
    groups: tuple[RankGroup, ...]
    process_id: int | None


@computed
def rank_summary(trace: Trace) -> RankSummary:
    """Return the summary of a trace."""
    main = main_device(trace)
    return RankSummary(
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
    matching = [entry for entry in entries if entry.get("id") == device]
    names = {str(entry["name"]) for entry in (matching or entries) if entry.get("name")}
    return names.pop() if len(names) == 1 else None


def _totals(trace: Trace) -> RankTotals:
    span, steps, main = window(trace), step_breakdown(trace), main_device(trace)
    times = computing_times(trace)
    device = HOST if main is None else main.device
    worked = intervals.clip(
        times.get(device, times[HOST]), span.device_start_ns, span.device_end_ns
    )
    sent = exposure(trace, span.device_start_ns, span.device_end_ns)
    count, operators = max(1, span.step_count), _operators(trace)
    busy_ns = intervals.duration_ns(main.busy) if main is not None else np.nan
    return RankTotals(
        step_count=span.step_count,
        step_ns=span.duration_ns / count,
        computing_ns=intervals.duration_ns(worked) / count,
        communication_ns=sent.communication_ns / count,
        exposed_ns=sent.exposed_ns / count,
        idle_ns=(span.duration_ns - busy_ns) / count,
        parts_ns=steps.mean_parts_ns,
        kernel_count=_kernel_count(trace) / count if main is not None else np.nan,
        operator_count=len(operators) / count,
        element_count=_element_count(trace, operators) / count,
        memory_peak_bytes=_memory_peak(trace),
    )


def _kernel_count(trace: Trace) -> int:
    span, start_ns = window(trace), trace.kernels["start_ns"].to_numpy()
    return int(((start_ns >= span.device_start_ns) & (start_ns < span.device_end_ns)).sum())


def _operators(trace: Trace) -> Ints:
    """Return the rows of `host_calls` of operators that began in the window."""
    span, calls = window(trace), trace.host_calls
    start_ns, is_operator = calls["start_ns"].to_numpy(), calls["is_operator"].to_numpy()
    return np.flatnonzero(is_operator & (start_ns >= span.start_ns) & (start_ns < span.end_ns))


def _element_count(trace: Trace, operators: Ints) -> float:
    """Return the elements of the inputs of some operators; NaN: no shape was recorded."""
    dims = trace.host_calls["input_dims"].cat
    shape = dims.codes.to_numpy()[operators]
    calls = np.bincount(shape[shape >= 0], minlength=len(dims.categories))
    elements = (
        min(MOST_ELEMENTS, sum(prod(map(float, size.split(","))) for size in SHAPE.findall(text)))
        for text in dims.categories.astype(str)
    )
    return float(calls @ np.fromiter(elements, dtype=np.float64)) if calls.any() else np.nan


def _memory_peak(trace: Trace) -> float:
    peaks = [peak.peak_bytes for peak in memory_peak(trace).values()]
    return float(
        max((peak_bytes for peak_bytes in peaks if peak_bytes is not None), default=np.nan)
    )


def _collectives(trace: Trace) -> RankCollectives:
    frame = trace.collectives
    is_included = (frame["is_timed"] & (frame["group_size"] != 1)).to_numpy()
    duration_ns = (end_times(trace) - frame["start_ns"].to_numpy())[is_included]
    steps = step_numbers(trace)[is_included]
    frame = frame[is_included]
    kind = plain_values(frame["kind"])
    size = frame["message_bytes"].to_numpy()
    even = np.where(np.isin(kind, list(UNEVEN)) | np.isnan(size), -1.0, size)
    is_direct = np.isin(kind, list(POINT_TO_POINT))
    has_peers = is_direct & (frame["source_rank"] >= 0) & (frame["destination_rank"] >= 0)
    keyed = pd.DataFrame(
        {
            "group": _texts(frame["group"]),
            "ranks": _texts(frame["group_ranks"]),
            "kind": np.where(has_peers, "send", kind),  # so that both ends match
            "dtype": _texts(frame["dtype"]),
            "bytes": even,
            "source": np.where(has_peers, frame["source_rank"], -1),
            "destination": np.where(has_peers, frame["destination_rank"], -1),
        }
    )
    code = keyed.groupby(list(keyed), sort=False).ngroup().to_numpy()
    return RankCollectives(
        keys=tuple(Key(*row) for row in keyed.drop_duplicates().itertuples(index=False)),
        key=code.astype(np.int32),
        # torch's sequence numbers of point-to-point transfers differ between ranks
        sequence=np.where(is_direct, -1, frame["sequence"].to_numpy()),
        start_ns=frame["start_ns"].to_numpy() + _origin_ns(trace),
        ready_ns=ready_times(trace)[is_included] + _origin_ns(trace),
        duration_ns=duration_ns,
        message_bytes=size,
        step=steps,
        hidden_ns=np.minimum(hidden_ns(trace)[is_included], duration_ns),
        event=frame["event"].to_numpy(),
    )


def _texts(values: "pd.Series[Any]") -> "pd.Series[Any]":
    texts = plain_values(values)
    return pd.Series(np.where(pd.isna(texts), np.array("", dtype=object), texts), dtype=object)


def _steps(trace: Trace) -> RankSteps:
    steps, origin_ns = rank_steps(trace), _origin_ns(trace)
    curve = Curve(at_ns=steps.exposed.at_ns + origin_ns, until_ns=steps.exposed.until_ns)
    return replace(steps, start_ns=steps.start_ns + origin_ns, exposed=curve)


def _origin_ns(trace: Trace) -> int:
    """Return the trace's start, 0 where later times might exceed 64 bits."""
    stamp_ns = trace.columns.origin_ns + trace.columns.base_time_ns
    return stamp_ns if abs(stamp_ns) < 2**62 else 0


def rank_devices(trace: Trace) -> tuple[RankDevice, ...]:
    """Return the devices that a trace used, else those that its file lists."""
    properties = device_properties(trace)
    whole_ns = window(trace).duration_ns
    busy = {
        activity.device: intervals.duration_ns(activity.busy) for activity in device_activity(trace)
    }
    return tuple(
        _device(number, properties.get(number, {}), busy.get(number), whole_ns)
        for number in sorted(busy or properties)
    )


def _device(
    number: int, entry: Mapping[str, Any], busy_ns: int | None, whole_ns: int
) -> RankDevice:
    name, memory = entry.get("name"), whole_number(entry.get("totalGlobalMem"))
    major, minor = (whole_number(entry.get(f"compute{which}")) for which in ("Major", "Minor"))
    return RankDevice(
        number=number,
        name=str(name) if name else None,
        memory_bytes=memory if memory is not None and 0 < memory < MOST_BYTES else None,
        compute_capability=f"{major}.{minor}" if major is not None and minor is not None else None,
        processor_count=whole_number(entry.get("numSms")),
        busy_share=busy_ns / whole_ns if busy_ns is not None and whole_ns > 0 else None,
    )


def process_id(trace: Trace) -> int | None:
    """Return the id of the process with most host calls."""
    usual = trace.host_calls["thread"].mode()
    return whole_number(str(usual.iloc[0]).partition("/")[0]) if len(usual) else None


def rank_groups(trace: Trace) -> tuple[RankGroup, ...]:
    """Return a trace's process groups, most time first."""
    try:
        table = process_groups(trace)
    except MissingDataError:
        return ()
    used = table[table["call_count"] > 0]
    unused = table[table["call_count"] == 0].head(MOST_UNUSED)
    return tuple(_group(row) for row in pd.concat([used, unused]).to_dict("records"))


def _group(row: dict[Any, Any]) -> RankGroup:
    size = row["group_size"]
    return RankGroup(
        name=str(row["group"]),
        ranks=intern(row["ranks"] or ""),  # the same text on every rank of it
        description=row["description"] or "",
        backend=row["backend"] or "",
        size=int(size) if size == size else 0,  # noqa: PLR0124 (NaN)
        role=row["role"] or "",
        role_confidence=row["role_confidence"] or "",
        role_reason=row["role_reason"],
        kinds=tuple(filter(None, row["kinds"].split(", "))),
        call_count=int(row["call_count"]),
        total_ns=int(row["total_ns"]),
        exposed_ns=int(row["exposed_ns"]),
        total_bytes=float(row["total_bytes"]),
    )
