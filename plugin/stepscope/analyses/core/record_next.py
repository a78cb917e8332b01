"""Data that the trace lacks, and the profiler call that records it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from stepscope.analyses.core.memory_peak import device_properties
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.settings.record_command import OPTIONS, command, is_of_command
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.analyses.settings.unrecorded_steps import (
    USE_RECORDER,
    WAIT_COUNT,
    has_recorder,
    measured_steps,
)
from stepscope.base.report import RecordNext
from stepscope.dialects import Kind, all_dialects
from stepscope.model.trace import Trace, computed

LEAST_STEPS = 3
HOST = "ProfilerActivity.CPU"
TORCH = "torch.profiler"
RECORDER_IMPORT = "import stepscope\n"
SHAPES = ("Input Dims", "Input dims")
STACKS = ("Call stack",)
MODULES = ("Python module id", "Module Hierarchy")
PRESERVED = ("with_flops", "with_modules")
"""Flags that change nothing in the file, but may have been set for `key_averages()`."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """Data that the profiler records on request."""

    name: str
    argument: str
    """Of `torch.profiler.profile`."""
    is_missing: Callable[[Trace], bool]
    """Whether a trace lacks it and could have it."""
    why: str
    """A sentence on its use."""
    message: str = ""
    """Trace health's message that it is missing; empty where another flag's message covers it."""
    remedy: str = ""


def _has(trace: Trace, kind: Kind) -> bool:
    return bool((trace.source.kinds == int(kind)).any())


def _without_device(trace: Trace) -> bool:
    used = (trace.memory["device_type_code"] > 0).any()
    return bool(used) and not len(trace.device_events)


def _without_stacks(trace: Trace) -> bool:
    return not _has(trace, Kind.PYTHON_CALL) and not trace.source.has(*STACKS)


def _could_wait(trace: Trace) -> bool:
    """Return whether stepscope's handler could have measured steps before the window."""
    return bool(len(complete_steps(trace))) and _activity(trace)[0] == TORCH


FLAGS: tuple[Flag, ...] = (
    Flag(
        name="operators",
        argument="activities",
        is_missing=lambda trace: bool(len(trace.device_events)) and not len(trace.host_calls),
        why="Operators show the code that launches device work, and why the device waits.",
        message="no operator was recorded: device work cannot be traced to code",
        remedy=f"torch.profiler.profile(activities=[{HOST}, ...])",
    ),
    Flag(
        name="device",
        argument="activities",
        is_missing=_without_device,
        why="Kernels and copies show how busy the device is and why it is idle.",
    ),
    Flag(
        name="steps",
        argument="schedule",
        is_missing=lambda trace: not len(complete_steps(trace)),
        why="Steps make figures comparable: without them, figures cover the whole trace.",
        message="no step is marked: figures cover the whole trace, not a step",
        remedy="Call prof.step() at the end of each iteration",
    ),
    Flag(
        name="more-steps",
        argument="schedule",
        is_missing=lambda trace: 0 < len(complete_steps(trace)) < LEAST_STEPS,
        why="Three steps show the usual step; with fewer, no finding has high confidence.",
    ),
    Flag(
        name="unrecorded-steps",
        argument="on_trace_ready",
        is_missing=lambda trace: _could_wait(trace) and not has_recorder(trace),
        why="Steps before the window show the step without the profiler, which slows the host.",
    ),
    Flag(
        name="waiting-steps",
        argument="schedule",
        is_missing=lambda trace: (
            _could_wait(trace) and has_recorder(trace) and measured_steps(trace) is None
        ),
        why="With a longer wait, the recorder measures the step without the profiler.",
    ),
    Flag(
        name="shapes",
        argument="record_shapes",
        is_missing=lambda trace: (
            bool(trace.host_calls["is_operator"].any()) and not trace.source.has(*SHAPES)
        ),
        why="Shapes show the batch size and distinguish calls of one operator.",
        message="input shapes were not recorded: batch size and grouping by shape are missing",
        remedy="torch.profiler.profile(..., record_shapes=True)",
    ),
    Flag(
        name="stacks",
        argument="with_stack",
        is_missing=_without_stacks,
        why="Python stacks let advice name the line of code; they slow the host down.",
        message="Python stacks were not recorded: advice cannot name the source line",
        remedy="torch.profiler.profile(..., with_stack=True)",
    ),
    Flag(
        name="modules",
        argument="with_stack",
        is_missing=lambda trace: _without_stacks(trace) and not trace.source.has(*MODULES),
        why="Time per nn.Module comes with the stacks; with_modules adds nothing to the file.",
    ),
    Flag(
        name="memory",
        argument="profile_memory",
        is_missing=lambda trace: not _has(trace, Kind.MEMORY),
        why="Allocations show how full the device's memory is and which operators fill it.",
        message="allocations were not recorded",
        remedy="torch.profiler.profile(..., profile_memory=True)",
    ),
)


@computed
def record_next(trace: Trace) -> tuple[RecordNext, ...]:
    """Return the data that the trace lacks, each with the argument that records it."""
    return tuple(
        RecordNext(flag=flag.name, why=flag.why, code=_code(trace, flag))
        for flag in FLAGS
        if flag.is_missing(trace)
    )


@computed
def profile_call(trace: Trace) -> str:
    """Return a profiler call that records the trace's data and the missing data (`# new`).

    Of a trace of `stepscope record`, it is the command with options for all of this data.
    """
    package, _ = _activity(trace)
    flags = [flag for flag in FLAGS if flag.is_missing(trace)]
    if is_of_command(trace):
        settings = recorded_settings(trace).profiler
        names = (name for name in ("with_stack", "profile_memory") if getattr(settings, name))
        options = (*(OPTIONS[f"{name}=True"] for name in names), *map(_option, flags))
        return command(*dict.fromkeys(filter(None, options)))
    missing = {flag.argument for flag in flags}
    if "on_trace_ready" in missing:
        missing.add("schedule")  # whose `wait` the handler measures
    lines = [
        f"    {_line(trace, argument)},{'  # new' if argument in missing else ''}\n"
        for argument in _arguments(trace)
    ]
    return (
        f"{RECORDER_IMPORT if package == TORCH else ''}"
        f"import {package.partition('.')[0]}\n"
        f"from {package} import ProfilerActivity\n"
        "\n"
        f"with {package}.profile(\n"
        f"{''.join(lines)}"
        ") as prof:\n"
        "    for batch in loader:\n"
        "        train_step(batch)\n"
        "        prof.step()"
    )


def _arguments(trace: Trace) -> Iterator[str]:
    yield from ("activities", "schedule", "on_trace_ready")
    yield from ("record_shapes", "profile_memory", "with_stack")
    yield from (flag for flag in PRESERVED if trace.metadata.get(flag) in (1, True))


STEP_OPTIONS = {
    "steps": "--steps-from dataloader",
    "more-steps": f"--active {LEAST_STEPS}",
    "waiting-steps": f"--skip {WAIT_COUNT}",
}
"""Option of `stepscope record` by flag."""


def remedy_of(trace: Trace, flag: Flag) -> str:
    """Return the remedy of a flag: of a trace of `stepscope record`, its command."""
    option = _option(flag)
    return command(option) if option and is_of_command(trace) else flag.remedy


def _option(flag: Flag) -> str:
    return STEP_OPTIONS.get(flag.name) or OPTIONS.get(f"{flag.argument}=True", "")


def _code(trace: Trace, flag: Flag) -> str:
    option = _option(flag) if is_of_command(trace) else ""
    return option or _line(trace, flag.argument)


def _line(trace: Trace, argument: str) -> str:
    package, device = _activity(trace)
    match argument:
        case "activities":
            line = f"activities=[{', '.join((HOST, device) if device else (HOST,))}]"
        case "schedule":
            active = max(LEAST_STEPS, len(trace.steps))
            wait = WAIT_COUNT if package == TORCH else 1
            line = f"schedule={package}.schedule(wait={wait}, warmup=1, active={active})"
        case "on_trace_ready":
            torchs = f'on_trace_ready={package}.tensorboard_trace_handler("log/run")'
            line = USE_RECORDER if package == TORCH else torchs
        case _:
            line = f"{argument}=True"
    return line


def _activity(trace: Trace) -> tuple[str, str]:
    """Return the package that profiles the trace's device, and its activity, or ""."""
    activity = _qualified_activity(trace)
    package, _, name = activity.rpartition("ProfilerActivity.")
    return package.rstrip(".") or TORCH, f"ProfilerActivity.{name}" if name else ""


def _qualified_activity(trace: Trace) -> str:
    """Return the activity by the dialect, the allocations' devices or `deviceProperties`, or ""."""
    if activity := trace.dialect.terms.get("activity"):
        return activity
    if len(trace.device_events):
        return "ProfilerActivity.PrivateUse1"  # torch's activity for other vendors
    allocated = {int(code) for code in trace.memory["device_type_code"].unique()}
    for dialect in all_dialects().values():
        if dialect.vendor and dialect.memory_device_types & allocated:
            return dialect.terms.get("activity", "")
    return "ProfilerActivity.CUDA" if device_properties(trace) else ""
