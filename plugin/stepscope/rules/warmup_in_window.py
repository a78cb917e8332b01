"""The trace holds the program's start: steps that warm up, code loaded at its first use."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.lazy_loading import first_use_times
from stepscope.analyses.settings.record_command import command, is_of_command
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.analyses.settings.whole_run import whole_run
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.findings import Evidence
from stepscope.base.formatting import duration, share, significant
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts

LEAST_STEPS = 3
LONGER = Fix(
    "Record for longer, so that the start is a small part of the recorded time.",
    "stepscope record --seconds 20 -- python script.py",
    language="shell",
    verify="Loading code takes less than 1 % of the recorded time.",
)


class Options(Thresholds):
    """Thresholds of start-up."""

    least_ratio: float = option(
        1.3,
        "The first step over the median of the others.",
        origin="ours: torch-tb-profiler's samples, which warm up, reach 1.44 and 1.30",
    )
    least_loading_share: float = option(
        0.01,
        "Of the window: loading code at its first use while the device is idle.",
        origin="ours: less moves no figure; public traces that begin cold have 3 s and 92 %",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report a first step that is longer than the others, and loading while the device waits."""
    if not len(trace.host_calls) and not len(trace.runtime_calls):
        requirements.main_device(trace)
    span = window(trace)
    ratio = _first_over_median(trace)
    loading_ns = _loading_ns(trace)
    loading = loading_ns / span.reference_ns
    is_slow = ratio is not None and ratio >= options.least_ratio
    if not is_slow and loading < options.least_loading_share:
        return
    yield Finding(
        severity="info",
        confidence="high" if is_slow else "medium",
        message=" ".join(_sentences(ratio if is_slow else None, loading_ns, loading, options)),
        evidence=tuple(_evidence(ratio, loading_ns)),
        fix=_fix(trace),
    )


def _fix(trace: Trace) -> Fix | None:
    """Return the recorded schedule with a longer warm-up; None: the rule's own."""
    if whole_run(trace) is not None:
        return LONGER
    now = recorded_settings(trace).profiler.schedule
    if now.warmup is None or now.active is None:
        return None
    if is_of_command(trace):
        code = f"{command(f'--warmup {now.warmup + 2}')}  # was {now.warmup} ({RECORDED})"
        return replace(RULE.fix, code=code, language="shell")
    wait, warmup = max(5, 2 * (now.wait or 0)), max(2, now.warmup + 2)
    code = (
        f"schedule=torch.profiler.schedule(wait={wait}, warmup={warmup}, active={now.active})"
        f"\n# was wait={now.wait or 0}, warmup={now.warmup} ({RECORDED})"
    )
    return replace(RULE.fix, code=code)


def _first_over_median(trace: Trace) -> float | None:
    steps = step_breakdown(trace)
    if steps.step_count < LEAST_STEPS:
        return None
    median = float(np.median(steps.duration_ns[1:]))
    return float(steps.duration_ns[0]) / median if median else None


def _loading_ns(trace: Trace) -> int:
    """Return how long code was loaded while the device did nothing."""
    device, span = main_device(trace), window(trace)
    loading = intervals.clip(first_use_times(trace), span.start_ns, span.end_ns)
    if device is not None:
        loading = intervals.difference(loading, device.busy)
    return intervals.duration_ns(loading)


def _sentences(
    ratio: float | None, loading_ns: int, loading: float, options: Options
) -> Iterator[str]:
    if ratio is not None:
        yield f"The first step takes {significant(ratio)} times the median of the others."
    if loading >= options.least_loading_share:
        yield (
            f"Code was loaded at its first use for {duration(loading_ns)} ({share(loading)}), "
            "while the device did nothing."
        )
    yield "Means over all steps are of the start as well."


def _evidence(ratio: float | None, loading_ns: int) -> Iterator[Evidence]:
    if ratio is not None:
        yield facts.count("First step over the median of the others", ratio, "overview")
    if loading_ns:
        yield facts.duration("Loading code while the device is idle", loading_ns)


RULE = Rule(
    id="warmup-in-window",
    title="The trace contains the program's start",
    passed="The steps contain no start-up",
    category="profiling",
    why="The first steps allocate memory, load kernels, choose algorithms and compile. Figures "
    "that include them do not represent the thousands of steps that follow.",
    detects="The first step's duration over the median of the others (three steps or more), and "
    "stretches of 1 ms or more that load code at its first use while the device does nothing: in a "
    "launch, in an operator before the first launch of a kernel, or in a call that loads. It "
    "reports from `least_ratio` or `least_loading_share` on.",
    silent=(
        "A launch that lasts long because the queue is full is no start: the device works "
        "meanwhile.",
        "An operator that takes as long before later launches of the same kernel does work of its "
        "own.",
    ),
    saving="None: it concerns the trace, not the program.",
    fix=Fix(
        "Let the profiler warm up for longer before it records.",
        "schedule=torch.profiler.schedule(wait=5, warmup=2, active=3)",
        verify="The first step in Overview is as long as the others.",
        caveats=("Where start-up is what you care about, record it alone.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times"}),
    priority="trace",
    is_symptom=False,
    links=("profiler.html#torch.profiler.schedule",),
    origin="the PyTorch profiler's schedule; CUDA's lazy loading",
)
