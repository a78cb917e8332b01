"""The host cannot launch kernels fast enough."""

from collections.abc import Iterator

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.dispatch_gaps import DispatchGaps, dispatch_gaps
from stepscope.analyses.idle.idle_tables import idle_by_source_line
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base.calibration import FEWER_LAUNCHES
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import share
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
OUTSIDE = "outside any operator"
STACKS_PER_OPERATOR = 3
"""Python functions per operator from which recording them causes such gaps: PyTorch's own depth."""
REPLAYING = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that replay graphs."""
VERIFY = "In the next trace `Dispatch` in Overview is below 10 %."


class Options(Thresholds):
    """Fractions of the window or of the gaps, from 0 to 1."""

    warning_share: float = option(
        0.10,
        "Idle time in gaps of under 1 ms, as a fraction of the window, from which it is reported.",
        origin="ours: healthy real traces have 0 to 6 %; xprof warns of kernel launches from 3 %",
    )
    critical_share: float = option(
        0.30,
        "The same, from which it is critical.",
        origin="ours: xprof calls 15 % of a step in kernel launches severe, hidden ones included",
    )
    least_kernels: int = option(
        50, "Kernels per step.", origin="ours: with fewer there is hardly anything to fuse"
    )
    python_share: float = option(
        0.30,
        "Time between operators, as a fraction of the gaps, from which Python is named as a cause.",
        origin="ours: in eager PyTorch the operators' part is 55 to 80 % (real traces)",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report gaps of under 1 ms in which the device waits for the host's next launch."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    requirements.linked_launches(trace)
    span = window(trace)
    gaps = dispatch_gaps(trace, device)
    lost = gaps.idle_ns / max(1, span.duration_ns)
    kernels = span.per_step(gaps.kernel_count)
    if lost < options.warning_share or kernels < options.least_kernels:
        return
    is_distorted, is_slowed = _is_distorted(trace), _is_slowed(trace)
    table = _table(trace, device)
    yield Finding(
        severity="critical" if lost >= options.critical_share else "warning",
        confidence="medium" if is_distorted or is_slowed else "high",
        message=f"{trace.dialect.device} {device.device} waits {phrases.time(trace, gaps.idle_ns)} "
        f"({share(lost)}) for the next of {kernels:,} kernels, in gaps of under 1 "
        f"ms{_split(gaps)}.",
        evidence=tuple(_evidence(trace, device, gaps, lost)),
        tables=(table,),
        locations=event_references.source_lines(str(row.cells[1] or "") for row in table.rows),
        claims=(
            Claim(
                gaps.idle,
                FEWER_LAUNCHES,
                "All idle time in gaps of under 1 ms: graphs save nearly all, compiling half.",
            ),
        ),
        fix=_fix(trace, gaps, options, is_distorted=is_distorted),
    )


def _is_slowed(trace: Trace) -> bool:
    """Return whether the unrecorded steps were measured with the profiler's remains loaded."""
    steps = measured_steps(trace)
    return steps is not None and steps.is_after_profiler


def _is_distorted(trace: Trace) -> bool:
    operator_count = int(trace.host_calls["is_operator"].sum())
    python_count = len(trace.source.rows(Kind.PYTHON_CALL))
    return python_count >= STACKS_PER_OPERATOR * max(1, operator_count)


def _split(gaps: DispatchGaps) -> str:
    if not gaps.has_operators:
        return ""
    return (
        f": {share(gaps.inside_share)} of it inside operators, {share(gaps.launch_share)} in the "
        f"launch calls, {share(gaps.between_share)} between operators (Python)"
    )


def _table(trace: Trace, device: DeviceActivity) -> EvidenceTable:
    """Return the operators and lines before which the device waits longest."""
    idle = idle_by_source_line(trace)
    rows = idle[(idle["device"] == device.device) & (idle["cause"] == "dispatch")].head(MOST_ROWS)
    columns = ["operator", "source_line", "gap_count", "idle_ns"]
    return facts.table(
        "Waits for launches",
        {"Operator": "code", "Source line": "code", "Gaps": "count", "Idle in total": "ns"},
        (
            facts.row(
                operator or OUTSIDE,
                *cells,
                link=Link(view="operators", search=operator) if operator else None,
            )
            for operator, *cells in rows[columns].itertuples(index=False, name=None)
        ),
    )


def _evidence(
    trace: Trace, device: DeviceActivity, gaps: DispatchGaps, lost: float
) -> Iterator[Evidence]:
    span = window(trace)
    yield facts.fraction("Idle, dispatch", lost, "overview")
    label = f"Kernels {phrases.per_step(trace)}"
    yield facts.count(label, span.per_step(gaps.kernel_count), "kernels")
    yield facts.duration("Median kernel", gaps.median_kernel_ns, "kernels")
    if gaps.has_operators:
        yield facts.fraction("Of the gaps, inside operators", gaps.inside_share)
        yield facts.fraction("Of the gaps, in launch calls", gaps.launch_share)
        yield facts.fraction("Of the gaps, between operators", gaps.between_share)
    busy = intervals.duration_ns(device.busy) / max(1, span.duration_ns)
    yield facts.fraction(f"{trace.dialect.device} busy", busy)


def _fix(trace: Trace, gaps: DispatchGaps, options: Options, *, is_distorted: bool) -> Fix:
    graph = trace.dialect.terms.get("graph", "")
    caveats = list(RULE.fix.caveats)
    if is_distorted:
        caveats.append("Recording stacks causes such gaps: record again with_stack=False.")
    if _is_slowed(trace):
        caveats.append(
            "The unrecorded steps were measured after a first recording, which slows launches "
            "until the program ends: less may be saved. Time the fix without a profiler."
        )
    if gaps.between_share >= options.python_share and gaps.has_operators:
        caveats.append(
            "Much of it is Python between operators: move it out of the loop; drop per-layer hooks."
        )
    if gaps.has_graphs:
        summary = f"{graph or 'Graph'}s are used already: put the single launches into them."
        code = ""
    elif recorded_facts.is_compiled(trace) and graph:
        return _compiled_fix(trace, graph, tuple(caveats))
    elif graph:
        summary = f"Replay the step's launches as one {graph}, or fuse them."
        code = 'model = torch.compile(model, mode="reduce-overhead")'
    else:
        summary = "Fuse the step's kernels, so that there are fewer to launch."
        code = recorded_facts.compiling(trace)
    return Fix(summary, code, verify=VERIFY, caveats=tuple(caveats))


def _compiled_fix(trace: Trace, graph: str, caveats: tuple[str, ...]) -> Fix:
    """Return the fix for a program that torch.compile compiled, by the mode that was recorded."""
    mode = recorded_settings(trace).compile.mode
    if mode in REPLAYING:
        return Fix(
            f"Find what keeps these launches out of {graph}s: the mode asks for them.",
            "# TORCH_LOGS=cudagraphs,graph_breaks,recompiles python train.py",
            verify=VERIFY,
            caveats=(f'It is compiled with mode="{mode}" ({RECORDED}).', *caveats),
        )
    now = f'  # was mode="{mode}"' if mode else ""
    return Fix(
        f"Compile in the mode that replays each step's launches as one {graph}.",
        f'model = torch.compile(model, mode="reduce-overhead"){now}',
        verify=VERIFY,
        caveats=(
            f"It is compiled already ({RECORDED}), or a part of it: compile everything that is "
            "launched in a step.",
            *caveats,
        ),
    )


RULE = Rule(
    id="launch-bound",
    title="The CPU cannot launch kernels fast enough",
    passed="The CPU launches kernels fast enough",
    category="kernel launch",
    why="Each kernel costs the host some 5 to 20 µs of Python, dispatch and launch. Where kernels "
    "are shorter than that, the device waits for the host.",
    detects="Gaps of under 1 ms on the busiest device that end with work which was launched, or "
    "still being launched, after the gap began. It reports where there are `least_kernels` "
    "kernels per step and such gaps are `warning_share` of the window; from `critical_share` on "
    "it is critical. Python is named as a cause where `python_share` of the gaps is between "
    "operators.",
    silent=(
        "Gaps of 1 ms and more are not dispatch: the host did something else.",
        "Gaps after a wait, in the allocator or while data was loaded are reported by other rules.",
        "Where under 95 % of the device's work has a recorded launch, or graphs were captured, "
        "it is inconclusive.",
        "Where stacks were recorded, which causes such gaps, confidence is medium; also where the "
        "unrecorded steps were measured after a first recording, as CUPTI then stays loaded.",
    ),
    saving="At most all idle time in such gaps, which replaying a graph saves; at least half of "
    "it. The device's work stays the same.",
    fix=Fix(
        "Launch fewer, larger kernels.",
        'model = torch.compile(model, mode="reduce-overhead")',
        verify=VERIFY,
        caveats=("Changing shapes make torch.compile compile again.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority="launches",
    is_general=True,
    after=("gpu-idle-gap",),
    links=(
        "generated/torch.compile.html",
        "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
    ),
    origin="xprof kernel launch 3/15 %; TraceLens; HTA host wait",
    culprit="launching kernels one by one",
)
