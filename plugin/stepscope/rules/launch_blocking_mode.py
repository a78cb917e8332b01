"""A debugging mode makes every launch wait for its kernel."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.dispatch_gaps import BlockingLaunches, blocking_launches
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import HALF_TO_ALL, part_of
from stepscope.base.findings import Evidence, Link, Severity, severity_of
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 5


class Options(Thresholds):
    """Thresholds of launches that wait; shares are from 0 to 1."""

    least_blocked_share: float = option(
        0.9,
        "Of the launches, those that return only when their kernel has ended.",
        origin="ours: of 53 real traces none has more than 0.053; the mode makes it 1",
    )
    least_waited_share: float = option(
        0.5,
        "Of the launches, those whose thread waits for the device right behind them.",
        origin="MindStudio Insight's `synchronize_stream` rule: more than half",
    )
    least_launches: int = option(
        50, "Launches in total.", origin="ours: fewer are no program, but a benchmark of one kernel"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report that nearly every launch waits for what it launched."""
    requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    blocking = blocking_launches(trace)
    number = len(blocking.calls)
    requirements.applies_if(
        number >= options.least_launches,
        f"only {count(number, 'launch', 'launches')} of single kernels in the profiled time",
    )
    blocks, waits = float(blocking.blocks.mean()), float(blocking.is_waited_for.mean())
    if blocks >= options.least_blocked_share:
        how = f"{share(blocks)} of {number:,} launches return only when their kernel has ended"
    elif waits >= options.least_waited_share:
        how = f"behind {share(waits)} of {number:,} launches the host waits for the device"
    else:
        return
    is_waiting = blocks < options.least_blocked_share
    freed = synchronizations(trace).calls if is_waiting else None
    yield _finding(trace, blocking, _idle(trace, is_waiting=is_waiting), how, freed)


def _idle(trace: Trace, *, is_waiting: bool) -> Intervals:
    """Return the idle time in which the device could work, were the next launch there already."""
    device = main_device(trace)
    if device is None:
        return intervals.EMPTY
    times = idle_ledger(trace)[device.device].times
    kinds = ("dispatch", "post-sync") if is_waiting else ("dispatch",)
    return intervals.merged(*(times[kind] for kind in kinds))


def _finding(
    trace: Trace, blocking: BlockingLaunches, idle: Intervals, how: str, waits: Ints | None
) -> Finding:
    span = window(trace)
    idle_ns = intervals.duration_ns(idle)
    won_ns = min(idle_ns, blocking.blocked_ns)
    return Finding(
        severity=_severity(won_ns / span.reference_ns),
        message=f"{how[0].upper()}{how[1:]}: host and {trace.dialect.device} work in turn. The "
        f"host waits for {phrases.time(trace, blocking.blocked_ns)}, and then the "
        f"{trace.dialect.device} for {duration(span.per_step(idle_ns))}.{_cause(trace)}",
        evidence=tuple(_evidence(trace, blocking, idle_ns)),
        events=tuple(
            event_references.runtime_call(
                trace, int(call), detail=str(trace.device_events["name"].iloc[row])
            )
            for call, row in zip(
                blocking.calls[:MOST_SHOWN].tolist(),
                blocking.rows[:MOST_SHOWN].tolist(),
                strict=True,
            )
        ),
        claims=(
            Claim(
                idle,
                part_of(HALF_TO_ALL, won_ns / max(1, idle_ns)),
                "Where both work at once, the step is as long as the one that needs longer: what "
                "is won is at most the host's waiting, and at most the device's.",
                waits=waits,
            ),
        ),
        fix=_fix(trace),
    )


def _cause(trace: Trace) -> str:
    blocking = _set_variables(trace)
    environment = recorded_settings(trace).environment
    named = " and ".join(f"{name}={environment[name]}" for name in blocking)
    return f" {named} {'is' if len(blocking) == 1 else 'are'} set ({RECORDED})." if blocking else ""


def _severity(won: float) -> Severity:
    return "critical" if severity_of(won) == "critical" else "warning"


def _evidence(trace: Trace, blocking: BlockingLaunches, idle_ns: int) -> Iterator[Evidence]:
    device, view = trace.dialect.device, Link(view="overview")
    yield facts.fraction("Launches that block", float(blocking.blocks.mean()), view)
    yield facts.fraction("Launches with a wait behind them", float(blocking.is_waited_for.mean()))
    yield facts.count("Launches", len(blocking.calls))
    yield facts.duration("Host waits in or behind launches", blocking.blocked_ns)
    yield facts.duration(f"{device} waits for the next launch", idle_ns, view)
    duration_ns = trace.device_events["duration_ns"].to_numpy()[blocking.rows]
    yield facts.duration("Median kernel", int(np.median(duration_ns)))


def _fix(trace: Trace) -> Fix:
    names = trace.dialect.environment.get("blocking", "").split(", ")
    blocking = _set_variables(trace)
    return replace(RULE.fix, code="\n".join(f"unset {name}" for name in blocking or names if name))


def _set_variables(trace: Trace) -> list[str]:
    """Return the variables of this mode that were recorded as set."""
    names = trace.dialect.environment.get("blocking", "").split(", ")
    environment = recorded_settings(trace).environment
    return [name for name in names if environment.get(name, "") not in ("", "0")]


RULE = Rule(
    id="launch-blocking-mode",
    title="Every launch waits for its kernel: a debugging mode is on",
    passed="Launches do not wait for their kernels",
    category="synchronization",
    why="Host and device work in turn instead of at the same time: while one works, the other "
    "waits. No two streams overlap, and no queue hides the host's work.",
    detects="Launches of single kernels, at least `least_launches` of them, of which "
    "`least_blocked_share` return only when their kernel has ended, or behind `least_waited_share` "
    "of which the same thread waits for the device.",
    silent=(
        "Work that graphs replay is launched by one call and is left out.",
        "A kernel may end by chance before its launch returns, but not nine of ten.",
    ),
    saving="Idle time of under 1 ms before launches (and after waits), at most as much as the "
    "host waits in launches: with both working at the same time, the longer one decides. An "
    "estimate: at least half of it.",
    fix=Fix(
        "Take the debugging mode out of the environment of the job.",
        language="sh",
        caveats=(
            "It may be set in the job's script, a Dockerfile, or by os.environ at a module's top.",
            (
                "Errors of kernels are then reported later again, at another line than the one "
                "that caused them."
            ),
        ),
        verify="In the next trace kernels run on while the host launches the next ones.",
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority="runtime",
    after=("debug-mode-on",),
    links=("notes/cuda.html#asynchronous-execution", "cuda_environment_variables.html"),
    origin="MindStudio Insight's synchronize_stream; NVIDIA's and AMD's debugging variables",
    culprit="waiting for each kernel at its launch",
)
