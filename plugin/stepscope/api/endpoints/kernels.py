"""Details of one kernel, and durations of all kernels."""

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import group_rows, sums
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.occurrences import launch_ns, longest, step_index
from stepscope.analyses.devices.kernel_launches import launch_call_ns, launches
from stepscope.analyses.devices.kernel_table import kernel_durations, launching_operator
from stepscope.api import name_details
from stepscope.api.endpoint import TimeRangeQuery, trace_endpoint
from stepscope.api.endpoints.operators import related
from stepscope.api.messages import Response
from stepscope.api.metrics import whole
from stepscope.api.name_details import (
    MOST_INSTANCES,
    CallInstance,
    KernelDetails,
    KernelLaunch,
    StreamUse,
    ranked,
)
from stepscope.base.errors import UnknownNameError
from stepscope.dialects import Kind
from stepscope.model.trace import Trace

LAUNCH = ("grid", "block", "registers_per_thread", "shared_memory_bytes")


class OneKernel(TimeRangeQuery, frozen=True, kw_only=True):
    """One row of the table of kernels, with a time range."""

    full_name: str
    """The kernel's name as the profiler wrote it."""
    operator: str | None = None
    """Only runs launched by this operator; empty: by no recorded operator."""
    grid: str | None = None
    """Only runs with this grid (JSON); empty: without a recorded grid."""
    block: str | None = None
    """Only runs with this block (JSON); empty: without a recorded block."""
    device: int | None = None
    """Only runs on the device with this number."""
    stream: int | None = None
    """Only runs on this stream; -1: without a recorded stream."""


def kernel_details(trace: Trace, query: OneKernel) -> KernelDetails:
    """Return durations, launches, streams, operators and stacks of a kernel's runs.

    Raises:
        UnknownNameError: the kernel did not run.
    """
    runs = _runs(trace, query)
    duration_ns = runs["duration_ns"].to_numpy()
    durations = name_details.distribution(duration_ns)
    if durations is None:
        msg = f"no kernel {query.full_name!r} was launched in this time range"
        raise UnknownNameError(msg)
    rows = runs.index.to_numpy()
    step = step_index(trace, launch_ns(trace, rows))
    owner = links(trace).owner_of_device_event[rows]
    configurations = _launches(runs)
    uses, count, missing = name_details.call_stacks(trace, owner, duration_ns, duration_ns)
    return KernelDetails(
        name=short(query.full_name),
        full_name=query.full_name,
        durations=durations,
        delays=_delays(trace, rows),
        steps=name_details.over_steps(trace, step, duration_ns, duration_ns),
        launches=tuple(configurations[: name_details.MOST_PARTS]),
        launch_count=len(configurations),
        streams=_streams(runs),
        operators=related(trace, owner, duration_ns),
        stacks=uses,
        stack_count=count,
        stacks_missing=missing,
        instances=_instances(trace, runs, name_details.step_numbers(trace, step)),
    )


def _runs(trace: Trace, query: OneKernel) -> pd.DataFrame:
    """Return the runs as rows of `kernels`, indexed by their rows in `device_events`."""
    rows = np.flatnonzero(trace.device_events["kind"].to_numpy() == int(Kind.KERNEL))
    kernels = trace.kernels.assign(operator=launching_operator(trace)).set_axis(rows)
    runs = kernels[(kernels["name"] == query.full_name).to_numpy(dtype=bool)]
    for column in ("operator", "grid", "block"):
        value = getattr(query, column)
        if value is not None:
            texts = runs[column].astype(object)
            fits = texts.isna() if value == "" else texts == value
            runs = runs[fits.to_numpy(dtype=bool)]
    for column in ("device", "stream"):
        value = getattr(query, column)
        if value is not None:
            runs = runs[runs[column].to_numpy() == value]
    return runs


def _delays(trace: Trace, rows: NDArray[np.int64]) -> name_details.TimeDistribution | None:
    delays = launches(trace)
    return name_details.distribution(delays.delay_ns[np.isin(delays.row, rows)])


def _launches(runs: pd.DataFrame) -> list[KernelLaunch]:
    """Return the launch configurations, longest total first."""
    group, first = group_rows(runs, LAUNCH)
    total = sums(runs["duration_ns"].to_numpy(), group, len(first))
    count = np.bincount(group, minlength=len(first))
    rows = runs[list(LAUNCH)].astype(object).iloc[first].to_numpy()
    return [
        KernelLaunch(
            grid=_text(rows[at][0]),
            block=_text(rows[at][1]),
            registers_per_thread=whole(rows[at][2]),
            shared_memory_bytes=whole(rows[at][3]),
            call_count=int(count[at]),
            total_ns=int(total[at]),
            mean_ns=round(total[at] / count[at]),
        )
        for at in ranked(total, count, len(first))
    ]


def _text(value: object) -> str:
    return "" if pd.isna(value) else str(value)  # type: ignore[call-overload]


def _streams(runs: pd.DataFrame) -> tuple[StreamUse, ...]:
    by = runs.groupby(["device", "stream"])["duration_ns"].agg(["size", "sum"])
    uses = (
        StreamUse(device=int(device), stream=int(stream), call_count=int(size), total_ns=int(total))
        for (device, stream), size, total in zip(by.index, by["size"], by["sum"], strict=True)
    )
    return tuple(sorted(uses, key=lambda use: -use.total_ns))


def _instances(
    trace: Trace, runs: pd.DataFrame, steps: list[int | None]
) -> tuple[CallInstance, ...]:
    best = longest(runs["duration_ns"].to_numpy(), MOST_INSTANCES)
    rows = runs.iloc[best]
    return tuple(
        CallInstance(
            event=int(event),
            start_ns=int(start_ns),
            duration_ns=int(duration_ns),
            device_ns=int(duration_ns),
            track=f"{trace.dialect.device} {device}" + (f" stream {stream}" if stream >= 0 else ""),
            step=steps[index],
        )
        for event, start_ns, duration_ns, device, stream, index in zip(
            rows["event"],
            rows["start_ns"],
            rows["duration_ns"],
            rows["device"],
            rows["stream"],
            best.tolist(),
            strict=True,
        )
    )


class DurationClass(msgspec.Struct, frozen=True):
    """Kernels of similar durations."""

    from_ns: int
    below_ns: int | None
    """Exclusive; null in the last class."""
    kernel_count: int
    total_ns: int


class KernelDurations(Response, frozen=True, kw_only=True):
    """Durations of all kernels of a trace, and of those shorter than a launch."""

    kernel_count: int
    total_ns: int
    classes: tuple[DurationClass, ...]
    """Shortest first, empty ones included."""
    launch_ns: int | None
    """Median duration of the calls that launch one kernel each; null: none was recorded."""
    shorter_count: int
    """Kernels that take less than `launch_ns`."""
    shorter_ns: int
    """Their total duration."""


def durations_of_kernels(trace: Trace, _: TimeRangeQuery) -> KernelDurations:
    """Return a histogram of the durations of kernels, with their total time."""
    took = trace.kernels["duration_ns"].to_numpy()
    launch = launch_call_ns(trace)
    shorter = took[took < (launch or 0)]
    columns = ["kernel_count", "total_ns"]
    classes = kernel_durations(trace).groupby(["from_ns", "below_ns"])[columns].sum()
    return KernelDurations(
        kernel_count=len(took),
        total_ns=int(took.sum()),
        classes=tuple(
            DurationClass(
                from_ns=int(from_ns),
                below_ns=int(below_ns) if np.isfinite(below_ns) else None,
                kernel_count=int(count),
                total_ns=int(total_ns),
            )
            for (from_ns, below_ns), (count, total_ns) in zip(
                classes.index.tolist(), classes.to_numpy().tolist(), strict=True
            )
        ),
        launch_ns=launch,
        shorter_count=len(shorter),
        shorter_ns=int(shorter.sum()),
    )


ENDPOINTS = (
    trace_endpoint("kernels/details", kernel_details),
    trace_endpoint("kernels/durations", durations_of_kernels),
)
