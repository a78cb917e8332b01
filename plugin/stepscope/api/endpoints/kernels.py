"""One kernel in detail."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import group_rows, sums
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.occurrences import launch_ns, longest, step_index
from stepscope.analyses.devices.kernel_launches import launches
from stepscope.analyses.devices.kernel_table import launching_operator
from stepscope.analyses.operators.grouping import stacks
from stepscope.api import name_details
from stepscope.api.endpoint import TimeRangeQuery, TraceEndpoint
from stepscope.api.endpoints.operators import related
from stepscope.api.metrics import whole
from stepscope.api.name_details import (
    MOST_INSTANCES,
    MOST_STACKS,
    NONE,
    CallInstance,
    KernelDetails,
    KernelLaunch,
    StackUse,
    StreamUse,
    ranked,
)
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.dialects import Kind
from stepscope.model.trace import Trace

LAUNCH = ("grid", "block", "registers_per_thread", "shared_memory_bytes")


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """Which runs: those of a name, and of one group of a table where more is said."""

    full_name: str
    operator: str | None = None
    """Empty: launched by none that is known."""
    grid: str | None = None
    block: str | None = None
    device: int | None = None
    stream: int | None = None


def kernel_details(trace: Trace, chosen: Chosen) -> KernelDetails:
    """Return everything about a kernel's runs.

    Raises:
        UnknownNameError: it did not run.
    """
    runs = _chosen(trace, chosen)
    duration_ns = runs["duration_ns"].to_numpy()
    durations = name_details.distribution(duration_ns)
    if durations is None:
        msg = f"no kernel {chosen.full_name!r} was launched in the time that is shown"
        raise UnknownNameError(msg)
    rows = runs.index.to_numpy()
    place = step_index(trace, launch_ns(trace, rows))
    owner = links(trace).owner_of_device_event[rows]
    alike = _launches(runs)
    found, count, missing = _stacks(trace, owner, duration_ns)
    return KernelDetails(
        schema=SCHEMA_VERSION,
        name=short(chosen.full_name),
        full_name=chosen.full_name,
        durations=durations,
        delays=_delays(trace, rows),
        steps=name_details.over_steps(trace, place, duration_ns, duration_ns),
        launches=tuple(alike[: name_details.MOST_PARTS]),
        launch_count=len(alike),
        streams=_streams(runs),
        operators=related(trace, owner, duration_ns),
        stacks=found,
        stack_count=count,
        stacks_missing=missing,
        instances=_instances(trace, runs, name_details.step_numbers(trace, place)),
    )


def _chosen(trace: Trace, chosen: Chosen) -> pd.DataFrame:
    """Return the runs as rows of `kernels`, by their rows in `device_events`."""
    places = np.flatnonzero(trace.device_events["kind"].to_numpy() == int(Kind.KERNEL))
    kernels = trace.kernels.assign(operator=launching_operator(trace)).set_axis(places)
    runs = kernels[(kernels["name"] == chosen.full_name).to_numpy(dtype=bool)]
    for column in ("operator", "grid", "block"):
        wanted = getattr(chosen, column)
        if wanted is not None:
            texts = runs[column].astype(object)
            fits = texts.isna() if wanted == "" else texts == wanted
            runs = runs[fits.to_numpy(dtype=bool)]
    for column in ("device", "stream"):
        wanted = getattr(chosen, column)
        if wanted is not None:
            runs = runs[runs[column].to_numpy() == wanted]
    return runs


def _delays(trace: Trace, rows: NDArray[np.int64]) -> name_details.TimeDistribution | None:
    found = launches(trace)
    return name_details.distribution(found.delay_ns[np.isin(found.row, rows)])


def _launches(runs: pd.DataFrame) -> list[KernelLaunch]:
    """Return by grid, block, registers and shared memory, the costliest first."""
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
    found = (
        StreamUse(device=int(device), stream=int(stream), call_count=int(size), total_ns=int(total))
        for (device, stream), size, total in zip(by.index, by["size"], by["sum"], strict=True)
    )
    return tuple(sorted(found, key=lambda each: -each.total_ns))


def _stacks(
    trace: Trace, owner: NDArray[np.int64], duration_ns: name_details.Values
) -> tuple[tuple[StackUse, ...], int, str]:
    """Return the costliest stacks of the launching operators, how many, and what records them."""
    try:
        labels = stacks(trace)
    except MissingDataError as missing:
        return (), 0, missing.remedy
    codes = np.append(labels.codes, NONE)[owner]
    known, size = codes != NONE, len(labels.texts)
    count = np.bincount(codes[known], minlength=size)
    total = sums(duration_ns[known], codes[known], size)
    found = tuple(
        name_details.stack_of(labels.texts[at], (int(count[at]), int(total[at]), int(total[at])))
        for at in ranked(total, count, MOST_STACKS)
    )
    return found, int((count > 0).sum()), ""


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
            step=steps[place],
        )
        for event, start_ns, duration_ns, device, stream, place in zip(
            rows["event"],
            rows["start_ns"],
            rows["duration_ns"],
            rows["device"],
            rows["stream"],
            best.tolist(),
            strict=True,
        )
    )


class OneKernel(TimeRangeQuery, frozen=True, kw_only=True):
    """Which kernel, as a row of the table of kernels names it."""

    full_name: str
    """As the profiler wrote it."""
    operator: str | None = None
    """Only launched by this operator; empty: by none that is known."""
    grid: str | None = None
    """Only with this grid (JSON); empty: where none was recorded."""
    block: str | None = None
    """Only with this block (JSON); empty: where none was recorded."""
    device: int | None = None
    """Only on this device, by its number."""
    stream: int | None = None
    """Only on this stream; -1: where none was recorded."""


def details(trace: Trace, query: OneKernel) -> KernelDetails:
    """Answer with everything about a kernel's runs."""
    chosen = Chosen(
        full_name=query.full_name,
        operator=query.operator,
        grid=query.grid,
        block=query.block,
        device=query.device,
        stream=query.stream,
    )
    return kernel_details(trace, chosen)


ENDPOINTS = (
    TraceEndpoint(
        path="kernels/details",
        meaning="A kernel's runs: how long, when, how launched, by which operators.",
        query=OneKernel,
        response=KernelDetails,
        handler=details,
    ),
)
