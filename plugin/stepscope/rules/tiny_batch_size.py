"""The batch is too small for what each step costs: launches on a device, calls on a CPU."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.batch_size import BatchSize, batch_size, token_count
from stepscope.analyses.core.data_loading import data_loading, handover_ns, tensor_count
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.links import rows_of_keys
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_metrics import grid_sizes
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.analyses.host.short_operator_runs import OperatorCalls, operator_calls
from stepscope.analyses.idle.data_stalls import data_stalls
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import FULLER_KERNELS, LARGER_BATCH, LARGER_BATCH_ON_CPU, part_of
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Evidence, Link, View
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, loading_costs, phrases

ROW = "aten::select"
"""Taking one row of a tensor; a loop over samples does it for each."""
BY_WORKERS = "_MultiProcessing"
SAME_SAMPLES = (
    "A larger batch saves it for the same number of samples: a step takes longer, a sample less."
)


class Options(Thresholds):
    """Thresholds of batch size and of room on the device."""

    most_count: int = option(
        8,
        "Samples per step up to which a batch is looked at.",
        origin="ours: SageMaker's BatchSize looks at utilisation alone; the size spares batches of "
        "16 and more, which are idle for other reasons in public traces",
    )
    busy_below_share: float = option(
        0.70,
        "Busy share of the window below which the device has room.",
        origin="SageMaker Debugger's BatchSize: 70 %; low-gpu-utilization's threshold",
    )
    least_dispatch_share: float = option(
        0.10,
        "Fraction of the window lost to dispatch from which launches are the reason.",
        origin="launch-bound's threshold, above the 0 to 6 % of healthy traces",
    )
    kernel_below_ns: int = option(
        10_000,
        "Median kernel below which kernels are short.",
        origin="TraceLens: kernels of less than 10 µs are short",
    )
    small_grid_share: float = option(
        0.30,
        "Kernel time in kernels of less than one block a multiprocessor that shows room.",
        origin="torch-tb-profiler calls such a kernel not fully utilised; the share is ours: "
        "small-grid-kernels' threshold",
    )
    memory_below_share: float = option(
        0.60,
        "Fraction of the device's memory in use at the peak from which no larger batch fits.",
        origin="ours: SageMaker's BatchSize asks for less than 70 % of memory at the 95th "
        "percentile; the peak is above that",
    )
    filled_least_share: float = option(
        0.90,
        "Fraction of the multiprocessors in use while kernels run that leaves no room.",
        origin="ours: one large image per step fills an H100 to 98.7 %, tiny ones less than 80 %",
    )
    most_count_on_host: int = option(
        32,
        "Samples per step up to which a batch is looked at where no device computes.",
        origin="ours: the larger of two batches in our traces that a larger one made faster, on "
        "CPUs, 8 (batch_size) and 32 (cifar_resnet18)",
    )
    most_token_count_on_host: int = option(
        256,
        "Tokens per step from which a step of few texts has much to compute where no device does.",
        origin="ours: two trainings of language models with 512 tokens per step took 0.90 and "
        "0.95 of their time per sample with twice the batch, where 0.75 was expected",
    )
    call_ns: int = option(
        30_000,
        "Time from the start of an operator on a CPU that a larger batch does not lengthen: its "
        "call, and what it prepares.",
        origin="ours: with it the share comes closest to the one that eight trainings and servers "
        "show by their steps at 4 to 64 samples (0.76 to 1.3 times it; a call alone takes 5 µs)",
    )
    operator_below_ns: int = option(
        250_000,
        "An operator on a CPU below which it is mostly its call; a gap between two operators below "
        "which it is Python's, not loading.",
        origin="ours: it best separates the traces that a larger batch made faster from the "
        "healthy ones (by 100 µs 44 against 38 %)",
    )
    least_call_share: float = option(
        0.36,
        "Fraction of the window, without longer gaps, in calls of operators and between operators "
        "from which they are the limit.",
        origin="ours: 39 to 62 % in ten traces on CPUs that a larger batch made faster, mostly by "
        "a third and more per sample; 34 % and less in others in which operators are short",
    )
    least_short_share: float = option(
        0.62,
        "Fraction of the same time in short operators and between operators.",
        origin="ours: 65 % and more in those traces, at most 58 % in the healthy ones whose batch "
        "is known and small",
    )


@dataclass(frozen=True, kw_only=True)
class _Signs:
    busy: float
    dispatch: float
    median_kernel_ns: int
    small_grid: float | None
    filled: float | None
    memory: float | None
    """Fraction of the device's memory in use at the peak; None: not recorded."""


def check(trace: Trace, options: Options) -> Results:
    """Report a batch of at most `most_count` samples on a device that has room for more."""
    try:
        device = requirements.main_device(trace)
    except NotApplicableError:
        yield from _on_host(trace, options)
        return
    requirements.reliable_timeline(trace)
    batch = _batch(trace)
    if not 0 < batch.size <= options.most_count:
        return
    signs = _signs(trace, device)
    text, evidence = _message(trace, batch, signs), tuple(_evidence(trace, batch, signs))
    if acquittal := _acquittal(signs, options):
        yield RuledOut(message=f"{text} {acquittal}", evidence=evidence)
        return
    yield Finding(
        severity="warning" if is_training(trace) else "info",
        confidence="medium" if batch.is_certain else "low",
        message=text,
        evidence=evidence,
        claims=tuple(_claims(trace, device)),
        fix=_fix(batch),
        subject=batch.operator,
    )


def _claims(trace: Trace, device: DeviceActivity) -> Iterator[Claim]:
    """Yield the time lost to launches, and that in which kernels leave multiprocessors idle."""
    yield Claim(
        idle_ledger(trace)[device.device].times["dispatch"],
        LARGER_BATCH,
        f"Idle time in gaps of under 1 ms. {SAME_SAMPLES}",
    )
    grids = grid_sizes(trace, device.device)
    if not grids.is_small.any():
        return
    small = trace.kernels["event"].to_numpy()[grids.rows[grids.is_small]]
    rows = rows_of_keys(small, trace.device_events["event"].to_numpy())
    yield Claim(
        exclusive_device_time(trace, rows),
        part_of(FULLER_KERNELS, grids.small_idle_share),
        f"The same of {share(grids.small_idle_share)} of the time in kernels with less than one "
        "block per multiprocessor: so many multiprocessors are idle then.",
    )


def _batch(trace: Trace) -> BatchSize:
    batch = batch_size(trace)
    if batch is None:
        requirements.shapes(trace)
        msg = "no convolution, embedding or linear layer shows the batch size"
        raise MissingDataError(msg)
    return batch


def _on_host(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report a batch of at most `most_count_on_host` samples whose steps are mostly calls.

    The size is asked for only where a larger one would save much.
    """
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    calls = operator_calls(trace, options.call_ns, options.operator_below_ns)
    is_short = calls.short_share >= options.least_short_share
    if not is_short or calls.share < options.least_call_share:
        return
    batch = _batch(trace)
    if (token_count(trace) or 0) > options.most_token_count_on_host:
        return
    if 0 < batch.size <= options.most_count_on_host and not _loops_over_samples(trace, batch):
        _require_samples(batch)
        yield _host_finding(trace, batch, calls, options.call_ns)


def _loops_over_samples(trace: Trace, batch: BatchSize) -> bool:
    """Return whether a step takes as many rows of tensors as it has samples, and more than one."""
    calls, span = trace.host_calls, window(trace)
    start_ns = calls["start_ns"].to_numpy()
    is_row = name_mask(calls["name"], ROW.__eq__)
    is_row &= (start_ns >= span.start_ns) & (start_ns < span.end_ns)
    return batch.size > 1 and int(is_row.sum()) >= batch.size * max(1, span.step_count)


def _require_samples(batch: BatchSize) -> None:
    """Require that the size counts samples, and is the same in every step."""
    requirements.conclusive_if(
        batch.is_certain,
        f"much of the time goes to calling operators, but the {batch.size} rows "
        f"({batch.source_text}) may not be samples: whether the batch is small is unknown",
        "Record once with a larger batch, and compare the two traces with `stepscope compare`",
    )


def _host_finding(trace: Trace, batch: BatchSize, calls: OperatorCalls, call_ns: int) -> Finding:
    """Return the finding about time in calls and updates that a larger batch could save."""
    handovers = _handovers(trace)
    outside = intervals.difference(calls.times, _loading_in_process(trace))
    times = intervals.merged(outside, _updates(trace), handovers)
    taking = "taking batches from workers" if len(handovers) else ""
    time = phrases.time_and_fraction(trace, intervals.duration_ns(times))
    fix = _fix(batch)
    return Finding(
        severity="warning" if is_training(trace) else "info",
        confidence="medium",
        message=f"The batch is {batch.size} ({batch.source_text}); {time} goes to calling "
        f"operators (the first {duration(call_ns)} of each), to the time between them"
        f"{f', to {taking}' if taking else ''} and to the optimizer's updates, which take as long "
        "for more samples.",
        evidence=(
            *_size(batch, "operators"),
            facts.fraction("Time in calls of operators and between them", calls.share),
            facts.count(
                f"Operators {phrases.per_step(trace)}",
                window(trace).per_step(calls.operators),
                "operators",
            ),
        ),
        claims=(
            Claim(
                times,
                LARGER_BATCH_ON_CPU,
                f"The loop's thread in the first {duration(call_ns)} of operators, between them"
                f"{f', {taking}' if taking else ''} and in updates; four times the batch saves "
                f"three quarters. {SAME_SAMPLES}",
            ),
        ),
        fix=replace(
            fix,
            summary="Give each step more samples; its calls then cost the same for more work.",
            caveats=(
                fix.caveats[0],
                "Gradient accumulation does not help: it calls as many operators.",
                *fix.caveats[2:],
                "Only a trace with the larger batch shows the saving.",
            ),
        ),
        subject=batch.operator,
    )


def _handovers(trace: Trace) -> Intervals:
    """Return the times in which batches are taken from workers, without waits for them."""
    try:
        stalls = data_stalls(trace)
    except NotApplicableError:
        return intervals.EMPTY
    if not any(BY_WORKERS in name for name in stalls.iterators):
        return intervals.EMPTY
    start_ns, end_ns = (
        trace.host_calls[name].to_numpy()[stalls.rows] for name in ("start_ns", "end_ns")
    )
    ready_ns = handover_ns(loading_costs.rest_ns(trace, stalls), tensor_count(trace))
    times = intervals.union(start_ns, np.minimum(end_ns, start_ns + ready_ns))
    return intervals.intersection(times, stalls.exposed)


def _loading_in_process(trace: Trace) -> Intervals:
    """Return the times in which the loop makes batches itself: each sample takes as long in any."""
    loading = data_loading(trace)
    is_by_workers = loading.multi_process_count > loading.single_process_count
    return intervals.EMPTY if is_by_workers else loading.times


def _updates(trace: Trace) -> Intervals:
    """Return the times of the optimizers' updates in the window; none where nothing trains."""
    try:
        updates = optimizer_updates(trace)
    except NotApplicableError:
        return intervals.EMPTY
    return intervals.union(updates.begin_ns, updates.end_ns)


def _size(batch: BatchSize, view: View) -> Iterator[Evidence]:
    """Yield the size and its source; without a source they link to the view."""
    link = Link(view=view)
    if batch.operator:
        link = Link(view="operators", search=batch.operator, group="shape")
    yield facts.count("Batch size", batch.size, link)
    if batch.operator:
        yield facts.code("Read from", f"{batch.operator} {batch.dims}", link)


def _signs(trace: Trace, device: DeviceActivity) -> _Signs:
    total_ns = max(1, window(trace).duration_ns)
    kernels = trace.kernels[(trace.kernels["device"] == device.device).to_numpy()]
    requirements.applies_if(len(kernels), "no kernel ran on the device")
    grids = grid_sizes(trace, device.device)
    peak = memory_peak(trace).get(device.device)
    return _Signs(
        busy=intervals.duration_ns(device.busy) / total_ns,
        dispatch=idle_ledger(trace)[device.device].idle_ns["dispatch"] / total_ns,
        median_kernel_ns=int(kernels["duration_ns"].median()),
        small_grid=grids.small_share,
        filled=grids.filled_share,
        memory=peak.capacity_share if peak else None,
    )


def _acquittal(signs: _Signs, options: Options) -> str:
    """Return why the small batch is right here; "" where nothing does."""
    if (signs.memory or 0.0) >= options.memory_below_share:
        return (
            f"The device's memory is {share(signs.memory or 0.0)} full: a larger one may not fit."
        )
    is_filled = (signs.filled or 0.0) >= options.filled_least_share
    if _is_starved(signs, options) or (_is_little(signs, options) and not is_filled):
        return ""
    if is_filled:
        return (
            f"While kernels run they fill {share(signs.filled or 0.0)} of the device: a larger "
            "batch would take longer in proportion."
        )
    return (
        f"Its kernels are long, and only {share(signs.dispatch)} of the time is lost to launching "
        "them: more samples per step would save little."
    )


def _is_starved(signs: _Signs, options: Options) -> bool:
    """Return whether the device waits for launches."""
    is_idle = signs.busy < options.busy_below_share
    return is_idle and signs.dispatch >= options.least_dispatch_share


def _is_little(signs: _Signs, options: Options) -> bool:
    """Return whether kernels have little to do."""
    is_short = 0 < signs.median_kernel_ns < options.kernel_below_ns
    return is_short or (signs.small_grid or 0.0) > options.small_grid_share


def _message(trace: Trace, batch: BatchSize, signs: _Signs) -> str:
    what = "batch" if batch.is_certain else "batch (or token count)"
    return (
        f"The {what} is {batch.size} ({batch.source_text}); the "
        f"{trace.dialect.device} is busy {share(signs.busy)} and its median kernel takes "
        f"{duration(signs.median_kernel_ns)}."
    )


def _evidence(trace: Trace, batch: BatchSize, signs: _Signs) -> Iterator[Evidence]:
    yield from _size(batch, "overview")
    yield facts.fraction(f"{trace.dialect.device} busy", signs.busy)
    yield facts.fraction(
        "Throughput to gain at most (time lost to dispatch)", signs.dispatch, "overview"
    )
    yield facts.duration("Median kernel", signs.median_kernel_ns, "kernels")
    if signs.small_grid is not None:
        yield facts.fraction(
            "Kernel time with less than one block a multiprocessor", signs.small_grid, "kernels"
        )


def _fix(batch: BatchSize) -> Fix:
    return Fix(
        "Give each step more samples; the launches then cost the same for more work.",
        f"loader = DataLoader(dataset, batch_size={4 * batch.size})  # was {batch.size}",
        verify="Samples a second rise; the step gets longer by less than the batch grew.",
        caveats=(
            "A larger batch changes training: scale the learning rate, and watch convergence.",
            "Gradient accumulation does not help: it launches as many kernels.",
            "In serving, a small batch may be what keeps latency low.",
        ),
    )


RULE = Rule(
    id="tiny-batch-size",
    title="The batch is too small for what each step costs",
    passed="The batch is large enough for the fixed cost of a step",
    category="utilization",
    why="Every kernel costs a launch however little it computes. With few samples the device waits "
    "for launches and runs kernels that do not fill it. On a CPU every operator costs its call.",
    detects="The batch is what the trace handler recorded, else the first dimension of each step's "
    "first convolution, embedding or linear layer. It reports where that is at most `most_count` "
    "samples and the device has room for more: it is busy less than `busy_below_share` while "
    "`least_dispatch_share` or more goes to launching, its median kernel takes less than "
    "`kernel_below_ns`, or more than `small_grid_share` of kernel time is in kernels with fewer "
    "blocks than the device has multiprocessors. Where the model computes on the CPU it reports of "
    "at most `most_count_on_host` samples, where `least_call_share` or more of the window goes to "
    "the first `call_ns` of operators and to gaps between them, and `least_short_share` or more to "
    "operators shorter than `operator_below_ns`; longer gaps do not count.",
    silent=(
        "Where kernels fill `filled_least_share` or more of the device while they run, as with one "
        "large image, and launches do not delay it: it is ruled out.",
        "Where `memory_below_share` or more of the device's memory is in use: ruled out too.",
        "Where kernels are long and little time is lost to launches: ruled out too.",
        "Rows of a linear layer may be tokens, not samples: the confidence is low. On a CPU it "
        "is inconclusive.",
        "On a CPU, steps that loop over their samples (one row of a tensor each): their calls grow "
        "with the batch.",
    ),
    saving="For the same number of samples: a step with more takes longer. On a device, the "
    "idle time in gaps of under 1 ms, and the fraction of the time of small kernels in which "
    "multiprocessors have no block: half at least, as with twice the batch, and all at most. On a "
    "CPU, the time in calls of operators, between them, in the optimizer's updates and in taking "
    "ready batches from workers, without what makes batches in the loop itself: 55 % of it at "
    "least, as with four times the batch, all at most.",
    fix=Fix(
        "Give each step more samples.",
        "loader = DataLoader(dataset, batch_size=4 * batch_size)",
        verify="Samples a second rise; the step gets longer by less than the batch grew.",
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority="launches",
    after=("launch-bound",),
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html",
        "https://docs.aws.amazon.com/sagemaker/latest/dg/debugger-built-in-profiler-rules.html",
    ),
    origin="SageMaker Debugger BatchSize; torch-tb-profiler; TraceLens short kernels; on CPUs ours",
    culprit="the small batch",
)
