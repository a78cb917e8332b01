"""The batch is too small to fill this device."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope import intervals
from stepscope.analyses import requirements
from stepscope.analyses.batch_size import BatchSize, batch_size
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.memory.peak import memory_peak
from stepscope.analyses.steps.window import window
from stepscope.analyses.training import is_training
from stepscope.errors import MissingDataError
from stepscope.quantities import duration, share
from stepscope.report import Evidence, Fix, Link
from stepscope.rules import Finding, Rule, option
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """When a batch is tiny."""

    most: int = option(
        8,
        "SageMaker's BatchSize rule looks at utilisation alone; the size spares large batches.",
        origin="",
    )
    busy_below: float = option(0.70, "Of the window: `low-gpu-utilization`'s threshold.", origin="")
    dispatch_least: float = option(
        0.10, "Share of the window lost to dispatch (`launch-bound`'s threshold).", origin=""
    )
    kernel_below_ns: int = option(
        10_000, "TraceLens calls a kernel of less than 10 µs short.", origin=""
    )
    small_grid_share: float = option(
        0.30, "Of kernel time in kernels with less than one block a multiprocessor.", origin=""
    )
    memory_below: float = option(
        0.60, "Of the device's memory, so that a larger batch fits (SageMaker: 70 %).", origin=""
    )
    filled_least: float = option(
        0.90,
        "A device whose multiprocessors are filled while kernels run has no room for more.",
        origin="",
    )


@dataclass(frozen=True, kw_only=True)
class _Signs:
    busy: float
    dispatch: float
    median_kernel_ns: int
    small_grid: float | None
    filled: float | None


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report a batch of at most `most` samples on a device that has room for more."""
    device = requirements.main(trace)
    requirements.reliable_timeline(trace)
    requirements.shapes(trace)
    batch = batch_size(trace)
    if batch is None:
        msg = "no convolution, embedding or linear layer tells the batch size"
        raise MissingDataError(msg)
    signs = _signs(trace, device)
    if (
        batch.size > options.most
        or not _has_room(signs, options)
        or _is_full(trace, device, options)
    ):
        return
    is_filled = signs.filled is not None and signs.filled >= options.filled_least
    yield Finding(
        severity="warning" if is_training(trace) and not is_filled else "info",
        confidence="medium" if batch.is_certain else "low",
        message=_message(trace, batch, signs, is_filled=is_filled),
        evidence=tuple(_evidence(trace, batch, signs)),
        fix=_fix(batch),
    )


def _signs(trace: Trace, device: DeviceActivity) -> _Signs:
    total_ns = max(1, window(trace).device_duration_ns)
    kernels = trace.kernels[(trace.kernels["device"] == device.device).to_numpy()]
    duration_ns = kernels["duration_ns"].to_numpy().astype(float)
    blocks = kernels["blocks_per_sm"].to_numpy()
    told = ~np.isnan(blocks) & ~kernels["is_collective"].to_numpy()
    told_ns = duration_ns[told].sum()
    idle = idle_ledger(trace)[device.device].idle_ns
    return _Signs(
        busy=intervals.duration_ns(device.busy) / total_ns,
        dispatch=idle["dispatch"] / total_ns,
        median_kernel_ns=int(np.median(duration_ns)) if len(duration_ns) else 0,
        small_grid=float(duration_ns[told & (blocks < 1)].sum() / told_ns) if told_ns else None,
        filled=float((duration_ns * np.minimum(blocks, 1))[told].sum() / told_ns)
        if told_ns
        else None,
    )


def _has_room(signs: _Signs, options: Options) -> bool:
    is_waiting = signs.busy < options.busy_below and signs.dispatch >= options.dispatch_least
    is_short = 0 < signs.median_kernel_ns < options.kernel_below_ns
    is_small = signs.small_grid is not None and signs.small_grid > options.small_grid_share
    if signs.busy >= options.busy_below and not is_short and not is_small:
        return False
    return is_waiting or is_short or is_small


def _is_full(trace: Trace, device: DeviceActivity, options: Options) -> bool:
    peak = memory_peak(trace).get(device.device)
    if peak is None or peak.held_bytes is None or not peak.capacity_bytes:
        return False
    return peak.held_bytes >= options.memory_below * peak.capacity_bytes


def _message(trace: Trace, batch: BatchSize, signs: _Signs, *, is_filled: bool) -> str:
    what = "batch" if batch.is_certain else "batch (or token count)"
    text = (
        f"The {what} is {batch.size} (first dimension of {batch.operator}); the "
        f"{trace.dialect.device} is busy {share(signs.busy)} and its median kernel takes "
        f"{duration(signs.median_kernel_ns)}."
    )
    if is_filled:
        return f"{text} While kernels run they fill the device, so a larger batch may gain little."
    return text


def _evidence(trace: Trace, batch: BatchSize, signs: _Signs) -> Iterator[Evidence]:
    by_shape = Link(view="operators", search=batch.operator, group="shape")
    yield Evidence(label="Batch size", value=batch.size, unit="count", link=by_shape)
    yield Evidence(
        label="Read from", value=f"{batch.operator} {batch.dims}", unit="code", link=by_shape
    )
    yield Evidence(label=f"{trace.dialect.device} busy", value=signs.busy, unit="share")
    yield Evidence(
        label="Throughput to gain at most (time lost to dispatch)",
        value=signs.dispatch,
        unit="share",
        link=Link(view="overview"),
    )
    yield Evidence(
        label="Median kernel",
        value=signs.median_kernel_ns,
        unit="ns",
        link=Link(view="kernels"),
    )
    if signs.small_grid is not None:
        yield Evidence(
            label="Kernel time with less than one block a multiprocessor",
            value=signs.small_grid,
            unit="share",
            link=Link(view="kernels"),
        )


def _fix(batch: BatchSize) -> Fix:
    return Fix(
        summary="Give each step more samples; the launches then cost the same for more work.",
        code=f"loader = DataLoader(dataset, batch_size={4 * batch.size or 4})  # was {batch.size}",
        verify="Samples a second rise; the step gets longer by less than the batch grew.",
        caveats=(
            "A larger batch changes training: scale the learning rate, and watch convergence.",
            "Gradient accumulation does not help: it launches as many kernels.",
            "In serving, a small batch may be what keeps latency low.",
        ),
    )


RULE = Rule(
    id="tiny-batch-size",
    title="The batch is too small for this GPU",
    category="utilization",
    why=(
        "Every kernel costs a launch however little it computes. With few samples the device waits "
        "for launches and runs kernels that do not fill it. The gain is in samples a second, not "
        "in the time of a step, so no step time is claimed."
    ),
    fix=Fix(summary="Give each step more samples."),
    detects="",
    saving="",
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=890,
    links=("https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",),
    origin="SageMaker Debugger BatchSize; torch-tb-profiler; TraceLens short kernels",
)
