"""Response types and shared code of the details of operators and kernels."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.event_references import source_lines
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.occurrences import histogram, sums_by_step
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.operators.grouping import stacks
from stepscope.api.messages import Response
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import SourceLine
from stepscope.model.trace import Trace

MOST_INSTANCES = 12
MOST_PARTS = 25
"""Limit of listed shapes, kernels, callers and the like; all are counted."""
MOST_STACKS = 10
MOST_FRAMES = 60
NONE = -1
Values = NDArray[np.int64]


class TimeDistribution(msgspec.Struct, frozen=True):
    """Distribution of durations."""

    count: int
    total_ns: int
    min_ns: int
    mean_ns: int
    p50_ns: int
    p95_ns: int
    max_ns: int
    edges_ns: tuple[int, ...]
    """Edges of the bins: one more than `counts`."""
    counts: tuple[int, ...]
    is_logarithmic: bool
    """Whether the bins grow by a constant factor."""


class StepUse(msgspec.Struct, frozen=True):
    """Calls and time in one step."""

    number: int
    call_count: int
    time_ns: int
    """Host total of an operator, duration of a kernel."""
    device_ns: int
    """Device time launched by an operator's calls, nested calls included."""


class CallInstance(msgspec.Struct, frozen=True):
    """One call, or one run of a kernel."""

    event: int
    start_ns: int
    duration_ns: int
    device_ns: int
    track: str
    """The thread, or the device and stream."""
    step: int | None
    """The number in `ProfilerStep#N`; null: in no complete step."""


class ShapeUse(msgspec.Struct, frozen=True):
    """Calls with the same shapes and types of inputs."""

    input_dims: str
    """JSON; empty where not recorded."""
    input_types: str
    call_count: int
    host_total_ns: int
    device_total_ns: int


class StackFrame(msgspec.Struct, frozen=True):
    """One Python function of a call stack."""

    text: str
    """The profiler's text."""
    line: SourceLine | None
    """Source line; null where the text has none."""


class StackUse(msgspec.Struct, frozen=True):
    """Calls from the same Python functions, innermost first."""

    frames: tuple[StackFrame, ...]
    call_count: int
    time_ns: int
    """Host total of an operator, duration of a kernel."""
    device_ns: int


class LaunchedWork(msgspec.Struct, frozen=True):
    """A kernel, copy or memory set that an operator or its nested calls launched."""

    name: str
    full_name: str
    kind: str
    event_count: int
    total_ns: int
    own_ns: int
    """Time of the events that the operator launched itself."""
    share: float
    """Fraction of all device time that the operator launched."""


class RelatedOperator(msgspec.Struct, frozen=True):
    """An operator that calls this one, that this one calls, or that launches this kernel."""

    name: str
    """Empty: no operator contains the calls."""
    kind: str
    call_count: int
    time_ns: int
    """Host total of an operator's calls, duration of a kernel."""
    share: float
    """Fraction of the time of all rows."""


class OperatorDetails(Response, frozen=True, kw_only=True):
    """Details of the calls of an operator or annotation."""

    name: str
    kind: str
    host: TimeDistribution
    """Host totals of the calls."""
    device: TimeDistribution | None
    """Device totals of the calls with device work; null: none has any."""
    steps: tuple[StepUse, ...]
    shapes: tuple[ShapeUse, ...]
    shape_count: int
    stacks: tuple[StackUse, ...]
    stack_count: int
    stacks_missing: str
    """The code that records call stacks; empty where stacks are recorded."""
    kernels: tuple[LaunchedWork, ...]
    kernel_count: int
    callers: tuple[RelatedOperator, ...]
    callees: tuple[RelatedOperator, ...]
    instances: tuple[CallInstance, ...]
    """The longest calls."""


class KernelLaunch(msgspec.Struct, frozen=True):
    """Runs with the same launch configuration."""

    grid: str
    """Blocks in x, y, z (JSON); empty where not recorded."""
    block: str
    registers_per_thread: int | None
    shared_memory_bytes: int | None
    call_count: int
    total_ns: int
    mean_ns: int


class StreamUse(msgspec.Struct, frozen=True):
    """Runs on one stream."""

    device: int
    stream: int
    """-1: not recorded."""
    call_count: int
    total_ns: int


class KernelDetails(Response, frozen=True, kw_only=True):
    """Details of the runs of a kernel."""

    name: str
    full_name: str
    durations: TimeDistribution
    delays: TimeDistribution | None
    """From the launching call's end to the kernel's start, at least 0; null: unknown call."""
    steps: tuple[StepUse, ...]
    launches: tuple[KernelLaunch, ...]
    launch_count: int
    streams: tuple[StreamUse, ...]
    operators: tuple[RelatedOperator, ...]
    stacks: tuple[StackUse, ...]
    """By the Python functions around the launching operators."""
    stack_count: int
    stacks_missing: str
    instances: tuple[CallInstance, ...]
    """The longest runs."""


def distribution(durations_ns: Values) -> TimeDistribution | None:
    """Return the distribution of durations; None for no durations."""
    if not len(durations_ns):
        return None
    bins = histogram(durations_ns)
    p50, p95 = np.quantile(durations_ns, (0.5, 0.95))
    return TimeDistribution(
        count=len(durations_ns),
        total_ns=int(durations_ns.sum()),
        min_ns=int(durations_ns.min()),
        mean_ns=round(float(durations_ns.mean())),
        p50_ns=round(float(p50)),
        p95_ns=round(float(p95)),
        max_ns=int(durations_ns.max()),
        edges_ns=tuple(bins.edges_ns.tolist()),
        counts=tuple(bins.counts.tolist()),
        is_logarithmic=bins.is_logarithmic,
    )


def over_steps(
    trace: Trace, step: Values, time_ns: Values, device_ns: Values
) -> tuple[StepUse, ...]:
    """Return calls and time of the complete steps with any calls."""
    table = sums_by_step(trace, step, time_ns, device_ns)
    return tuple(
        StepUse(number=number, call_count=count, time_ns=time, device_ns=device)
        for number, count, time, device in table.itertuples(index=False, name=None)
    )


def step_numbers(trace: Trace, step: Values) -> list[int | None]:
    """Return the numbers of complete steps, given by index; None for -1."""
    numbers = complete_steps(trace).steps["number"].to_numpy().tolist()
    return [numbers[index] if index != NONE else None for index in step.tolist()]


def stack_of(text: str, cost: tuple[int, int, int]) -> StackUse:
    """Return a stack from the text of its frames and its calls, time and device time."""
    frames = [frame.strip() for frame in text.split(";") if frame.strip()]
    count, time_ns, device_ns = cost
    return StackUse(
        frames=tuple(
            StackFrame(text=frame, line=next(iter(source_lines([frame])), None))
            for frame in frames[:MOST_FRAMES]
        ),
        call_count=count,
        time_ns=time_ns,
        device_ns=device_ns,
    )


def call_stacks(
    trace: Trace, rows: Values, time_ns: Values, device_ns: Values
) -> tuple[tuple[StackUse, ...], int, str]:
    """Return the stacks of host calls with the most time, their count, and the code for stacks.

    The code is empty where the trace records stacks; a row of -1 has no call.
    """
    try:
        labels = stacks(trace)
    except MissingDataError as missing:
        return (), 0, missing.remedy
    codes = np.append(labels.codes, NONE)[rows]
    has_stack, size = codes != NONE, len(labels.texts)
    count = np.bincount(codes[has_stack], minlength=size)
    time = sums(time_ns[has_stack], codes[has_stack], size)
    device = sums(device_ns[has_stack], codes[has_stack], size)
    uses = tuple(
        stack_of(labels.texts[at], (int(count[at]), int(time[at]), int(device[at])))
        for at in ranked(time, count, MOST_STACKS)
    )
    return uses, int((count > 0).sum()), ""


def ranked(total: Values, count: Values, most: int = MOST_PARTS) -> list[int]:
    """Return the groups with calls, longest total first, then the most frequent."""
    order = np.lexsort((-count, -total))
    return [int(group) for group in order if count[group]][:most]
