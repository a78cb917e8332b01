"""Time of unrecorded steps by source line, from samples of the main thread and of workers.

A sample belongs to the user's innermost line, and to the phase of the innermost function that names
one (`phase_names`); in a DataLoader, to data loading. It counts for the time that the sampler gave
it. A line's fraction of the step has a confidence interval of 95 % by Wilson's score (1927),
of as many independent samples. Lines of DataLoader workers have fractions of the time in which the
workers work.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

import pandas as pd

from stepscope.analyses.core.event_references import FRAME, is_user_code
from stepscope.analyses.host.phase_names import (
    BACKWARD,
    COLLECTIVES,
    FORWARD,
    FORWARD_ONLY,
    HOST_CODE,
    LOADING,
    NOT_MODEL,
    OPTIMIZER,
    PHASES,
    RUNTIME,
    phase_of_function,
    phase_of_label,
)
from stepscope.analyses.settings.host_samples import (
    PACKAGES,
    HostSamples,
    SampledStack,
    host_samples,
    worker_samples,
)
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base.errors import MissingDataError
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, to_frame
from stepscope.model.trace import Trace, computed

RECORD = 'stepscope.trace_handler("log/run")  # with schedule(wait=50, ...), on 64-bit Linux'
NORMAL_95 = 1.96
LEAST_SAMPLES = 3
"""Fewer samples do not show that a line is a phase's largest."""
NAMED_BY_TORCH = (FORWARD, BACKWARD, OPTIMIZER, LOADING, COLLECTIVES)
OF_TORCH: dict[str, re.Pattern[str]] = {
    BACKWARD: re.compile(
        r"^torch/(?:_tensor\.py\(\d+\): backward|autograd/(?:__init__|graph)\.py\(\d+\): )"
    ),
    OPTIMIZER: re.compile(
        r"^torch/(?:optim/|amp/grad_scaler|nn/utils/clip_grad)"
        r"|^(?:accelerate|lightning|pytorch_lightning|transformers)/"
        r".*: (?:clip_grad\w*|zero_grad|optimizer_\w+)$"
        r"|^accelerate/optimizer\.py\("
    ),
    COLLECTIVES: re.compile(r"^torch/distributed/(?:distributed_c10d|nn/)"),
    FORWARD: re.compile(
        r"^torch/nn/(?:modules/module|parallel/distributed)\.py\(\d+\): "
        r"(?:_wrapped_call_impl|_call_impl|forward|_run_ddp_forward)$"
        r"|^torch/nn/functional\.py\(\d+\): (?:\w*cross_entropy\w*|\w+_loss|kl_div)$"
    ),
}
OF_LOADING = re.compile(r"^torch/utils/data/")
SCHEMA: Schema = (
    Column("file", "object", "text", "The file."),
    Column("line", "int64", "id", "The line in progress."),
    Column("function", "object", "text", "The function's name."),
    Column("phase", "object", "text", "Phase of the step."),
    Column("sample_count", "int64", "count", "Samples on this line in this phase."),
    Column("step_share", "float64", "share", "Fraction of the unrecorded step."),
    Column("least_share", "float64", "share", "Lower end of its 95 % confidence interval."),
    Column("most_share", "float64", "share", "Upper end."),
    Column("step_ns", "float64", "ns", "Time per unrecorded step; none where the step was not"
           " measured."),
)  # fmt: skip
OF_WORKERS: Schema = (
    *SCHEMA[:3],
    Column("sample_count", "int64", "count", "Samples of working workers on this line."),
    Column("working_share", "float64", "share", "Fraction of the workers' working time."),
    Column("least_share", "float64", "share", "Lower end of its 95 % confidence interval."),
    Column("most_share", "float64", "share", "Upper end."),
    Column("working_ns", "float64", "ns", "Working time of all workers on this line, as sampled."),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class SampledLine:
    """Samples on one line, in one phase."""

    frame: str
    """`file(line): function`."""
    phase: str
    """Key of `PHASES`."""
    count: int
    share: float
    """Fraction of the unrecorded step, from 0 to 1."""
    interval: tuple[float, float]
    """Of the fraction, at 95 %."""
    is_direct: bool = True
    """Whether in most samples the user's function is at work, or C code that it calls itself: no
    function of a library."""


@computed
def sampled_lines(trace: Trace) -> tuple[SampledLine, ...]:
    """Return the lines by their time, the longest first; none without samples."""
    samples = host_samples(trace)
    if samples is None:
        return ()
    return _lines(samples, {stack: (user_line(stack), phase_of(stack)) for stack in samples.stacks})


def lines_in(trace: Trace, phase: str) -> tuple[SampledLine, ...]:
    """Return the lines of a phase with enough samples, the longest first.

    Operators and their order name phases that samples do not show: operators outside the model are
    host code in samples; a forward pass without backward pass is known by the name of a function;
    and host code between operators may be of any function, also in a model's forward pass.
    """
    if phase == FORWARD_ONLY:
        lines: tuple[SampledLine, ...] = validating_lines(trace)
    elif phase == HOST_CODE:
        lines = tuple(line for line in sampled_lines(trace) if _may_be_host_code(line))
    else:
        sampled_as = HOST_CODE if phase in (NOT_MODEL, RUNTIME) else phase
        lines = tuple(line for line in sampled_lines(trace) if line.phase == sampled_as)
    return tuple(line for line in lines if line.count >= LEAST_SAMPLES)


def only_line_for(trace: Trace, share: float) -> str:
    """Return the user's line at which the host is for a fraction of the step, by samples.

    That is the only line whose confidence interval reaches so high; "" where several may be it.
    """
    samples = host_samples(trace)
    if samples is None:
        return ""
    keys = {stack: (user_line(stack), "") for stack in samples.stacks}
    lines = (line for line in _lines(samples, keys) if line.count >= LEAST_SAMPLES)
    reaching = [line for line in lines if line.interval[1] >= share]
    return reaching[0].frame if len(reaching) == 1 and reaching[0].is_direct else ""


def _may_be_host_code(line: SampledLine) -> bool:
    return line.phase not in NAMED_BY_TORCH or (line.phase == FORWARD and line.is_direct)


@computed
def validating_lines(trace: Trace) -> tuple[SampledLine, ...]:
    """Return the lines that call a model in functions whose names say that they validate."""
    samples = host_samples(trace)
    if samples is None:
        return ()
    inside = {stack: line for stack in samples.stacks if (line := _validating_line(stack))}
    return _lines(samples, {stack: (line, FORWARD_ONLY) for stack, line in inside.items()})


def _validating_line(stack: SampledStack) -> str | None:
    is_model_called = False
    for frame in reversed(stack.frames):
        is_model_called |= bool(OF_TORCH[FORWARD].search(frame))
        match = FRAME.match(frame) if is_model_called and is_user_code(frame) else None
        if match and phase_of_label(match["function"]) == FORWARD_ONLY:
            return frame
    return None


@computed
def no_grad_lines(trace: Trace) -> tuple[SampledLine, ...]:
    """Return the lines that call a model while autograd is off, in a program that also trains."""
    samples = host_samples(trace)
    if samples is None:
        return ()
    phases = {stack: phase_of(stack) for stack in samples.stacks}
    if BACKWARD not in phases.values():
        return ()
    called = {
        stack: line
        for stack, phase in phases.items()
        if phase == FORWARD and stack.is_without_grad and (line := _line_before_model(stack))
    }
    lines = _lines(samples, {stack: (line, FORWARD_ONLY) for stack, line in called.items()})
    return tuple(line for line in lines if line.count >= LEAST_SAMPLES)


def _line_before_model(stack: SampledStack) -> str | None:
    """Return the user's line that calls the outermost module."""
    outside = takewhile(lambda frame: not OF_TORCH[FORWARD].search(frame), stack.frames)
    users = [frame for frame in outside if is_user_code(frame)]
    return users[-1] if users else None


@public_table(
    "sampled-lines",
    SCHEMA,
    "One row per source line and phase of the steps that were not recorded, by samples.",
)
@computed
def sampled_line_table(trace: Trace) -> pd.DataFrame:
    """Return one row per line and phase.

    Raises:
        MissingDataError: no samples were taken.
    """
    lines = sampled_lines(trace)
    if not lines:
        msg = "the host was not sampled in unrecorded steps"
        raise MissingDataError(msg, RECORD)
    steps = measured_steps(trace)
    step_ns = float("nan") if steps is None else float(steps.step_ns)
    locations = [_location(line.frame) for line in lines]
    rows = {
        "file": [file for file, _, _ in locations],
        "line": [number for _, number, _ in locations],
        "function": [function for _, _, function in locations],
        "phase": [PHASES[line.phase] for line in lines],
        "sample_count": [line.count for line in lines],
        "step_share": [line.share for line in lines],
        "least_share": [line.interval[0] for line in lines],
        "most_share": [line.interval[1] for line in lines],
        "step_ns": [line.share * step_ns for line in lines],
    }
    return to_frame(SCHEMA, rows)


@public_table(
    "sampled-worker-lines",
    OF_WORKERS,
    "One row per source line at which DataLoader workers worked in unrecorded steps, by samples.",
)
@computed
def worker_line_table(trace: Trace) -> pd.DataFrame:
    """Return one row per line.

    Raises:
        MissingDataError: no samples were taken.
    """
    samples = worker_samples(trace)
    if samples is None:
        msg = "no DataLoader workers were sampled in unrecorded steps"
        raise MissingDataError(msg, RECORD)
    stacks = samples.working.stacks
    lines = _lines(samples.working, {stack: (user_line(stack), LOADING) for stack in stacks})
    locations = [_location(line.frame) for line in lines]
    rows = {
        "file": [file for file, _, _ in locations],
        "line": [number for _, number, _ in locations],
        "function": [function for _, _, function in locations],
        "sample_count": [line.count for line in lines],
        "working_share": [line.share for line in lines],
        "least_share": [line.interval[0] for line in lines],
        "most_share": [line.interval[1] for line in lines],
        "working_ns": [line.share * samples.working.time_ns for line in lines],
    }
    return to_frame(OF_WORKERS, rows)


def _location(frame: str) -> tuple[str, int, str]:
    match = FRAME.match(frame)
    return (match["path"], int(match["line"]), match["function"]) if match else (frame, 0, "")


def _lines(
    samples: HostSamples, keys: Mapping[SampledStack, tuple[str, str]]
) -> tuple[SampledLine, ...]:
    """Return the lines and phases of some stacks."""
    time_ns: Counter[tuple[str, str]] = Counter()
    count: Counter[tuple[str, str]] = Counter()
    direct: Counter[tuple[str, str]] = Counter()
    for stack, key in keys.items():
        time_ns[key] += stack.time_ns
        count[key] += stack.count
        direct[key] += stack.count * (stack.frames[-1] == key[0])
    return tuple(
        SampledLine(
            frame=key[0],
            phase=key[1],
            count=count[key],
            share=spent_ns / samples.time_ns,
            interval=wilson(spent_ns / samples.time_ns, samples.count),
            is_direct=2 * direct[key] >= count[key],
        )
        for key, spent_ns in time_ns.most_common()
    )


def user_line(stack: SampledStack) -> str:
    """Return the user's innermost line; the innermost of all in a stack of libraries alone."""
    lines = (frame for frame in reversed(stack.frames) if is_user_code(frame))
    return next(lines, stack.frames[-1])


def phase_of(stack: SampledStack) -> str:
    """Return a stack's phase.

    The user's code that an optimizer calls is a closure: a framework's hooks, no update.
    """
    if any(OF_LOADING.match(frame) for frame in stack.frames):
        return LOADING
    is_closure = False
    for frame in reversed(stack.frames):
        phase = _phase_of_frame(frame)
        if phase and not (is_closure and phase == OPTIMIZER):
            return phase
        is_closure |= is_user_code(frame)
    return HOST_CODE


def _phase_of_frame(frame: str) -> str | None:
    name = frame.removeprefix(PACKAGES)
    of_torch = (phase for phase, pattern in OF_TORCH.items() if pattern.search(name))
    return next(of_torch, None) or phase_of_function(frame)


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a fraction of `count` samples (Wilson 1927)."""
    square = NORMAL_95**2
    middle = (share + square / (2 * count)) / (1 + square / count)
    spread = math.sqrt(share * (1 - share) / count + square / (4 * count**2))
    half = NORMAL_95 * spread / (1 + square / count)
    return max(0.0, middle - half), min(1.0, middle + half)
