"""What the page shows of one operator or kernel: wire types, and what both kinds share."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.event_references import source_lines
from stepscope.analyses.core.occurrences import histogram, sums_by_step
from stepscope.analyses.core.window import complete_steps
from stepscope.base.findings import SourceLine
from stepscope.model.trace import Trace

MOST_INSTANCES = 12
MOST_PARTS = 25
"""Of shapes, kernels, callers and the like, the costliest; all are counted."""
MOST_STACKS = 10
MOST_FRAMES = 60
RECORD_STACKS = "profile(with_stack=True)"
NONE = -1
Values = NDArray[np.int64]


class TimeDistribution(msgspec.Struct, frozen=True):
    """How times spread."""

    count: int
    total_ns: int
    min_ns: int
    mean_ns: int
    p50_ns: int
    p95_ns: int
    max_ns: int
    edges_ns: tuple[int, ...]
    """Of the bins: one more than there are counts."""
    counts: tuple[int, ...]
    is_logarithmic: bool
    """Whether the bins grow by a factor each, since the times are so far apart."""


class StepUse(msgspec.Struct, frozen=True):
    """What one step has of it."""

    number: int
    call_count: int
    time_ns: int
    """Host total of an operator, duration of a kernel."""
    device_ns: int
    """Device time that an operator's calls launched, with calls within."""


class CallInstance(msgspec.Struct, frozen=True):
    """One call, or one run of a kernel."""

    event: int
    start_ns: int
    duration_ns: int
    device_ns: int
    track: str
    """The thread; or the device and stream."""
    step: int | None
    """The number in `ProfilerStep#N`; None: in no complete step."""


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
    """As the profiler wrote it."""
    line: SourceLine | None
    """Where it is, if that can be told from the text."""


class StackUse(msgspec.Struct, frozen=True):
    """Calls from the same Python functions, the innermost first."""

    frames: tuple[StackFrame, ...]
    call_count: int
    time_ns: int
    """Host total of an operator, duration of a kernel."""
    device_ns: int


class LaunchedWork(msgspec.Struct, frozen=True):
    """A kernel, copy or memory set that an operator launched, itself or in calls within."""

    name: str
    full_name: str
    kind: str
    event_count: int
    total_ns: int
    own_ns: int
    """Of it, what no operator within launched."""
    share: float
    """Of all that the operator launched."""


class RelatedOperator(msgspec.Struct, frozen=True):
    """An operator that calls this one, that this one calls, or that launches this kernel."""

    name: str
    """Empty: none is around it."""
    kind: str
    call_count: int
    time_ns: int
    """Of those calls: an operator's host total, a kernel's duration."""
    share: float
    """Of the time of all rows of this list."""


class OperatorDetails(msgspec.Struct, frozen=True):
    """Everything about one operator's or annotation's calls."""

    schema: int
    name: str
    kind: str
    host: TimeDistribution
    """Host total of each call."""
    device: TimeDistribution | None
    """Device total of the calls that launched anything; None: none did."""
    steps: tuple[StepUse, ...]
    shapes: tuple[ShapeUse, ...]
    shape_count: int
    stacks: tuple[StackUse, ...]
    stack_count: int
    stacks_missing: str
    """The line of code that records call stacks, where there are none; empty where there are."""
    kernels: tuple[LaunchedWork, ...]
    kernel_count: int
    callers: tuple[RelatedOperator, ...]
    callees: tuple[RelatedOperator, ...]
    instances: tuple[CallInstance, ...]
    """The longest calls."""


class KernelLaunch(msgspec.Struct, frozen=True):
    """Runs that were launched alike."""

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


class KernelDetails(msgspec.Struct, frozen=True):
    """Everything about one kernel's runs."""

    schema: int
    name: str
    full_name: str
    durations: TimeDistribution
    delays: TimeDistribution | None
    """From the launching call's end to the kernel's begin, at least 0; None: no call is known."""
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
    """Return how times spread; None where there are none."""
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
    trace: Trace, place: Values, time_ns: Values, device_ns: Values
) -> tuple[StepUse, ...]:
    """Return what each complete step has."""
    table = sums_by_step(trace, place, time_ns, device_ns)
    return tuple(
        StepUse(number=number, call_count=count, time_ns=time, device_ns=device)
        for number, count, time, device in table.itertuples(index=False, name=None)
    )


def step_numbers(trace: Trace, place: Values) -> list[int | None]:
    """Return the number of each place among the complete steps; None for -1."""
    numbers = complete_steps(trace).steps["number"].to_numpy().tolist()
    return [numbers[each] if each != NONE else None for each in place.tolist()]


def stack_of(text: str, cost: tuple[int, int, int]) -> StackUse:
    """Return a stack of its frames' text, and its calls, time and device time."""
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


def ranked(total: Values, count: Values, most: int = MOST_PARTS) -> list[int]:
    """Return the groups that occur, the costliest first, then the most frequent."""
    order = np.lexsort((-count, -total))
    return [int(each) for each in order if count[each]][:most]
