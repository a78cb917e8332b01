"""Collectives: one row each, with its kernels, its message, and its ranks.

The time is the kernels', or for gloo and MPI the annotation's, which lasts as long as the transfer.
The host's call into a device's library is never communication time. The message is described by the
kernel's arguments, otherwise by `record_param_comms` around its launch, otherwise by the shapes of
the annotation `nccl:all_reduce` or of the operator.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames import TIMING, Column, Schema, collective_calls
from stepscope.model.frames.collective_calls import CollectiveCalls
from stepscope.model.frames.collective_message import message
from stepscope.model.frames.source import Source

SCHEMA: Schema = (
    *TIMING,
    Column("is_timed", "bool", "", "False if only the host's call into a device's library was "
                                   "recorded: the row then begins with the call, and its "
                                   "duration of 0 is meaningless."),
    Column("active_ns", "int64", "ns", "Sum of its kernels' durations."),
    Column("kernel_count", "int64", "count", "Kernels of it; 0 on the host."),
    Column("device", "int64", "id", "The device of its first kernel; -1: the host, or unknown."),
    Column("stream", "int64", "id", "The stream of its first kernel; -1: none."),
    Column("call", "int64", "id", "The host's call, as an event; -1: unknown."),
    Column("call_start_ns", "float64", "ns", "Start of the host's call; NaN: unknown."),
    Column("call_end_ns", "float64", "ns", "End of that call; NaN: unknown."),
    Column("kind", "category", "text", "`all_reduce`, `all_gather`, `send`, …; `other`: unknown."),
    Column("backend", "category", "text", "The library: `nccl`, `rccl`, `gloo`, …; `custom` and"
           " `symm_mem` for kernels that reach into other devices' memory themselves."),
    Column("dtype", "category", "text", "torch's name of the element type."),
    Column("in_bytes", "float64", "bytes", "Input of the rank; NaN: not recorded."),
    Column("out_bytes", "float64", "bytes", "Output of the rank; NaN: not recorded."),
    Column("message_bytes", "float64", "bytes", "The larger of the two: nccl-tests' size S."),
    Column("group", "category", "text", "The process group's name (`Process Group Name`)."),
    Column("group_description", "category", "text", "Its description, such as `default_pg`."),
    Column("group_ranks", "category", "text", "Its ranks (JSON), if all are known."),
    Column("group_size", "float64", "count", "Number of its ranks; NaN: not recorded."),
    Column("group_rank", "int64", "id", "This rank's index in the group (`Rank`); -1: unknown."),
    Column("sequence", "int64", "id", "Its number within the group (`Seq`); -1: not recorded."),
    Column("source_rank", "int64", "id", "Sender of a point-to-point transfer; -1: unknown."),
    Column("destination_rank", "int64", "id", "Receiver; -1: unknown."),
    Column("is_async", "object", "", "Whether the host did not wait for it; None: not recorded."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Locations:
    """Location of each collective: a row of `device_events` (-1: none), and its host calls."""

    kernel: Ints
    """The first of its kernels."""
    calls: CollectiveCalls
    timing: dict[str, NDArray[Any]]


NO_ROWS = pd.DataFrame({column.name: pd.Series([], dtype=column.dtype) for column in SCHEMA})


def build(
    source: Source, events: pd.DataFrame, host_calls: pd.DataFrame, runtime_calls: pd.DataFrame
) -> pd.DataFrame:
    """Return one row per collective, in `SCHEMA` columns, in the order they began."""
    is_collective_kernel = events["is_collective"].to_numpy()
    if not is_collective_kernel.any() and not collective_calls.has_any(host_calls):
        return NO_ROWS.copy()
    kernels = events[is_collective_kernel]
    launch = collective_calls.launches(kernels, runtime_calls)
    of_kernel = _calls_of_kernels(host_calls, runtime_calls, launch)
    on_device = _on_device(kernels, of_kernel)
    elsewhere = _elsewhere(source, host_calls, of_kernel)
    locations = _joined(on_device, elsewhere)
    order = np.argsort(locations.timing["start_ns"], kind="stable")
    kernel_event = np.append(events["event"].to_numpy(), NONE)[locations.kernel]
    message_columns = message(source, host_calls, kernel_event, locations.calls)
    columns = {
        **_identity(source, host_calls, events, locations),
        **locations.timing,
        **message_columns,
    }
    frame = pd.DataFrame({column.name: columns[column.name] for column in SCHEMA}, copy=False)
    is_collective = np.asarray(frame["kind"] != "")  # a wait is not a collective
    collectives: pd.DataFrame = frame.iloc[order[is_collective[order]]]
    return collectives.reset_index(drop=True)


def _calls_of_kernels(
    host_calls: pd.DataFrame, runtime_calls: pd.DataFrame, launch: Ints
) -> CollectiveCalls:
    launched = np.flatnonzero(launch >= 0)
    index_of = np.full(len(launch), NONE, dtype=np.int64)
    index_of[launched] = np.arange(len(launched))
    inner = runtime_calls.iloc[launch[launched]]
    return collective_calls.around(host_calls, inner).at(index_of)


def _on_device(kernels: pd.DataFrame, calls: CollectiveCalls) -> Locations:
    """Return the collectives with kernels; kernels of one call on one device are merged."""
    call, device = calls.call, kernels["device"].to_numpy()
    alone = NONE - 1 - np.arange(len(kernels))
    key = pd.factorize(np.where(call >= 0, call, alone))[0].astype(np.int64)
    group, distinct = pd.factorize(key * (len(kernels) + 1) + pd.factorize(device)[0])
    count = len(distinct)
    start, end = kernels["start_ns"].to_numpy(), kernels["end_ns"].to_numpy()
    first = np.full(count, len(kernels), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(kernels)))  # they are in the order they began
    last_ns = end[first]
    np.maximum.at(last_ns, group, end)
    active = np.zeros(count, dtype=np.int64)
    np.add.at(active, group, kernels["duration_ns"].to_numpy())
    timing = {
        "start_ns": start[first],
        "duration_ns": last_ns - start[first],
        "end_ns": last_ns,
        "is_timed": np.ones(count, dtype=bool),
        "active_ns": active,
        "kernel_count": np.bincount(group, minlength=count),
    }
    return Locations(kernel=kernels.index.to_numpy()[first], calls=calls.at(first), timing=timing)


def _elsewhere(source: Source, host_calls: pd.DataFrame, used: CollectiveCalls) -> Locations:
    """Return the host's collectives, and calls without any recorded kernel."""
    calls = collective_calls.all_calls(host_calls)
    is_host = collective_calls.is_on_host(host_calls, calls)
    is_collective = is_host | (calls.annotation >= 0) | _names_collective(source, host_calls, calls)
    is_used = np.isin(calls.call, used.call[used.call >= 0])
    is_new = is_collective & ~is_used
    calls, is_host = calls.at(is_new), is_host[is_new]
    row = np.where(is_host, calls.annotation, calls.call)
    start = host_calls["start_ns"].to_numpy()[row]
    duration = np.where(is_host, host_calls["duration_ns"].to_numpy()[row], 0)
    timing = {
        "start_ns": start,
        "duration_ns": duration,
        "end_ns": start + duration,
        "is_timed": is_host,
        "active_ns": duration,
        "kernel_count": np.zeros(len(row), dtype=np.int64),
    }
    return Locations(kernel=np.full(len(row), NONE, dtype=np.int64), calls=calls, timing=timing)


def _names_collective(source: Source, host_calls: pd.DataFrame, calls: CollectiveCalls) -> Mask:
    """Return a mask of the `record_param_comms` that name their collective, unlike old versions."""
    events = np.append(host_calls["event"].to_numpy(), NONE)[calls.params]
    return np.asarray(source.label("Collective name", np.maximum(events, 0)).codes >= 0) & (
        events >= 0
    )


def _joined(first: Locations, second: Locations) -> Locations:
    return Locations(
        kernel=np.concatenate((first.kernel, second.kernel)),
        calls=CollectiveCalls(*map(np.concatenate, zip(first.calls, second.calls, strict=True))),
        timing={
            key: np.concatenate((values, second.timing[key]))
            for key, values in first.timing.items()
        },
    )


def _identity(
    source: Source, host_calls: pd.DataFrame, events: pd.DataFrame, locations: Locations
) -> dict[str, Any]:
    is_kernel = locations.kernel >= 0
    host_rows = np.where(
        locations.timing["is_timed"], locations.calls.annotation, locations.calls.call
    )
    host_event = np.append(host_calls["event"].to_numpy(), NONE)
    event = np.append(events["event"].to_numpy(), NONE)[locations.kernel]
    event = np.where(is_kernel, event, host_event[host_rows])
    call = locations.calls.call
    return {
        "event": event,
        "name": source.text(source.columns.name[event]),
        "device": np.append(events["device"].to_numpy(), NONE)[locations.kernel],
        "stream": np.append(events["stream"].to_numpy(), NONE)[locations.kernel],
        "call": host_event[call],
        "call_start_ns": np.append(host_calls["start_ns"].to_numpy().astype(float), np.nan)[call],
        "call_end_ns": np.append(host_calls["end_ns"].to_numpy().astype(float), np.nan)[call],
    }
