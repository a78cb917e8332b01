"""Recording itself takes a part of what was recorded."""

from collections.abc import Iterator

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.host.profiler_cost import ProfilerCost, profiler_cost
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence
from stepscope.base.formatting import duration, share, significant
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts

ROWS_SHOWN = 5
HOST_CAUSES = ("dispatch", "host-stall")


class Options(Thresholds):
    """Thresholds of distortion by recording."""

    least_own_share: float = option(
        0.01,
        "Of the window: the profiler's own work.",
        origin="Nsight Systems subtracts it from gaps; below 1 % it moves no figure",
    )
    least_python_calls: float = option(
        3.0,
        "Python functions recorded for each operator.",
        origin="ours: traces without stacks have none, modest ones 1, distorted ones 3 to 31",
    )
    least_late_share: float = option(
        0.10,
        "Of the window: the device waits for the host while stacks are recorded.",
        origin="launch-bound's threshold: with less the host is in time nevertheless",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report the profiler's own work, and stacks that slow a host which is late anyway."""
    if not len(trace.host_calls) and not len(trace.device_events):
        msg = "neither operators nor device events were recorded"
        raise NotApplicableError(msg)
    cost = profiler_cost(trace)
    self_fraction = intervals.duration_ns(cost.overhead) / window(trace).reference_ns
    late = _late_share(trace)
    has_stacks = cost.python_per_operator >= options.least_python_calls
    is_distorted = has_stacks and late is not None and late >= options.least_late_share
    if self_fraction < options.least_own_share and not is_distorted:
        return
    yield Finding(
        severity="info",
        message=" ".join(
            _sentences(trace, cost, self_fraction, options, late if is_distorted else None)
        ),
        evidence=tuple(_evidence(cost, self_fraction, late)),
        fix=RULE.fix if is_distorted else _FLUSHED,
    )


def _late_share(trace: Trace) -> float | None:
    """Return the share of the window in which the main device waits for the host; None: none."""
    device = main_device(trace)
    if device is None:
        return None
    idle = idle_ledger(trace)[device.device].idle_ns
    return sum(idle[cause] for cause in HOST_CAUSES) / window(trace).reference_ns


def _sentences(
    trace: Trace, cost: ProfilerCost, self_fraction: float, options: Options, late: float | None
) -> Iterator[str]:
    if self_fraction >= options.least_own_share:
        self_ns = intervals.duration_ns(cost.overhead)
        most = next(iter(cost.overhead_ns))
        yield (
            f"The profiler itself works for {duration(self_ns)} ({share(self_fraction)}), "
            f"most in {most}."
        )
    if late is not None:
        yield (
            f"{significant(cost.python_per_operator)} Python functions were recorded for each "
            f"operator, and the {trace.dialect.device} waits for the host {share(late)} of the "
            "time: without stacks the host would be faster."
        )


def _evidence(cost: ProfilerCost, self_fraction: float, late: float | None) -> Iterator[Evidence]:
    yield facts.fraction("The profiler's own work", self_fraction)
    for name, total_ns in list(cost.overhead_ns.items())[:ROWS_SHOWN]:
        yield facts.duration(f"Of that, {name}", total_ns)
    if cost.python_per_operator:
        yield facts.count("Python functions an operator", cost.python_per_operator)
    if late is not None:
        yield facts.fraction("The device waits for the host", late, "overview")


_FLUSHED = Fix(
    "Record fewer events, or a step more of warm-up: buffers are made in the first steps.",
    "schedule=torch.profiler.schedule(wait=1, warmup=2, active=3)",
    verify="The profiler's own work is below 1 % of the window.",
)
RULE = Rule(
    id="profiler-overhead",
    title="Recording takes a part of the recorded time",
    passed="Recording added little time",
    category="profiling",
    why="The profiler's work counts as the program's time, and stacks cost the host about a "
    "microsecond per Python function: a late host becomes later still.",
    detects="The profiler's own work (`overhead` events) from `least_own_share` on; and stacks "
    "with `least_python_calls` for each operator where the device waits for the host for "
    "`least_late_share`.",
    silent=(
        "Loading and compiling kernels at their first use, and waiting for room in the queue of "
        "launches, are filed as overhead too, and are the program's own.",
        "Stacks cost nothing where the device is the limit.",
    ),
    saving="None: it concerns the trace, not the program.",
    fix=Fix(
        "Measure without stacks; use the recording with them to find source lines.",
        "torch.profiler.profile(..., with_stack=False)",
        verify="The step without stacks is the step that counts.",
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks"}),
    priority="trace",
    links=("https://docs.nvidia.com/cupti/api/structCUpti__ActivityOverhead3.html",),
    origin="Nsight Systems' gpu_gaps; CUPTI's overhead records",
)
