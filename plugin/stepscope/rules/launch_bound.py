"""The host cannot launch kernels fast enough."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.dispatch_gaps import DispatchGaps, dispatch_gaps
from stepscope.analyses.idle.idle_by_source import idle_by_source_line
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import FEWER_LAUNCHES
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import share
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
OUTSIDE = "outside any operator"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Shares are of the window or of the gaps, from 0 to 1."""

    warning_share: float = option(
        0.10,
        "Idle time in gaps of under 1 ms, of the window, from which it is a fault.",
        origin="ours: healthy real traces have 0 to 6 %; xprof warns of kernel launches from 3 %",
    )
    critical_share: float = option(
        0.30,
        "The same, from which it is critical.",
        origin="ours: xprof calls 15 % of a step in kernel launches severe, hidden ones included",
    )
    least_kernels: int = option(
        50, "Kernels a step.", origin="ours: with fewer there is next to nothing to fuse"
    )
    python_share: float = option(
        0.30,
        "Of the gaps, between operators, from which Python itself is named as a cause.",
        origin="ours: in eager PyTorch the operators' own part is 55 to 80 % (real traces)",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report gaps of under 1 ms in which the device waits for the host's next launch."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    requirements.linked_launches(trace)
    within = window(trace)
    cost = dispatch_gaps(trace, device)
    lost = cost.idle_ns / max(1, within.device_duration_ns)
    is_pattern = within.per_step(cost.kernel_count) >= options.least_kernels
    if lost < options.warning_share or not is_pattern:
        return
    is_distorted = _is_distorted(trace)
    table = _table(trace, device)
    lines = [str(row.cells[1] or "") for row in table.rows]
    yield Finding(
        severity="critical" if lost >= options.critical_share else "warning",
        confidence="medium" if is_distorted else "high",
        message=f"{trace.dialect.device} {device.device} waits {phrases.time(trace, cost.idle_ns)} "
        f"({share(lost)}) for the next of {within.per_step(cost.kernel_count):,} kernels, in gaps "
        f"of under 1 ms{_split(cost)}.",
        evidence=tuple(_evidence(trace, device, cost, lost)),
        tables=(table,) if table.rows else (),
        locations=event_references.source_lines(lines),
        claims=(
            Claim(
                cost.idle,
                FEWER_LAUNCHES,
                "All idle time in gaps of under 1 ms: graphs win nearly all, compile half.",
            ),
        ),
        fix=_fix(trace, cost, options, is_distorted=is_distorted),
    )


STACKS_PER_OPERATOR = 3
"""Python functions an operator from which recording them slows just this: PyTorch's own depth."""


def _is_distorted(trace: Trace) -> bool:
    operator_count = int(trace.host_calls["is_operator"].sum())
    python_count = len(trace.source.rows(Kind.PYTHON_CALL))
    return python_count >= STACKS_PER_OPERATOR * max(1, operator_count)


def _split(cost: DispatchGaps) -> str:
    if not cost.has_operators:
        return ""  # what the host did in between was not recorded
    return (
        f": {share(cost.inside_share)} of it inside operators, {share(cost.launch_share)} in the "
        f"launch calls, {share(cost.between_share)} between operators (Python)"
    )


def _table(trace: Trace, device: DeviceActivity) -> EvidenceTable:
    """Return the operators and lines in front of which the device waits longest."""
    idle = idle_by_source_line(trace)
    mine = idle[(idle["device"] == device.device) & (idle["cause"] == "dispatch")].head(MOST_ROWS)
    places = zip(
        mine["operator"], mine["source_line"], mine["gap_count"], mine["idle_ns"], strict=True
    )
    rows = tuple(
        facts.row(
            operator or OUTSIDE,
            line or None,
            int(gaps),
            int(idle_ns),
            link=Link(view="operators", search=operator) if operator else None,
        )
        for operator, line, gaps, idle_ns in places
    )
    return facts.table(
        "Where it waits for launches",
        {"Operator": "code", "Source line": "code", "Gaps": "count", "Idle": "ns"},
        rows,
    )


def _evidence(
    trace: Trace, device: DeviceActivity, cost: DispatchGaps, lost: float
) -> Iterator[Evidence]:
    within = window(trace)
    yield facts.fraction("Idle, dispatch", lost, "overview")
    yield facts.count(
        "Kernels a step" if within.has_steps else "Kernels",
        within.per_step(cost.kernel_count),
        "kernels",
    )
    yield facts.duration("Median kernel", cost.median_kernel_ns, "kernels")
    if cost.has_operators:
        yield facts.fraction("Of the gaps, inside operators", cost.inside_share)
        yield facts.fraction("Of the gaps, in launch calls", cost.launch_share)
        yield facts.fraction("Of the gaps, between operators", cost.between_share)
    busy = intervals.duration_ns(device.busy) / max(1, within.device_duration_ns)
    yield facts.fraction(f"{trace.dialect.device} busy", busy)


def _fix(trace: Trace, cost: DispatchGaps, options: Options, *, is_distorted: bool) -> Fix:
    graph = trace.dialect.terms.get("graph", "")
    caveats = list(RULE.fix.caveats)
    if is_distorted:
        caveats.append(
            "Stacks were recorded, which slows just this: record again with_stack=False."
        )
    if cost.between_share >= options.python_share and cost.has_operators:
        caveats.append(
            "Much of it is Python between operators: move it out of the loop; drop per-layer hooks."
        )
    if cost.has_graphs:
        summary = (
            f"{graph or 'Graph'}s are used already: put what is launched one by one into them."
        )
        code = ""
    elif recorded_facts.is_compiled(trace) and graph:
        return _of_compiled(trace, graph, tuple(caveats))
    elif graph:
        summary = f"Replay the step's launches as one {graph}, or fuse them."
        code = 'model = torch.compile(model, mode="reduce-overhead")'
    else:
        summary = "Fuse the step's kernels, so that there are fewer to launch."
        code = recorded_facts.compiling(trace)
    return Fix(summary, code, verify=VERIFY, caveats=tuple(caveats))


def _of_compiled(trace: Trace, graph: str, caveats: tuple[str, ...]) -> Fix:
    """Return what helps a program that torch.compile compiled, by the mode that was recorded."""
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
            f"It is compiled already ({RECORDED}), or a part of it: compile all that is launched "
            "in a step.",
            *caveats,
        ),
    )


REPLAYING = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that replay graphs."""
VERIFY = "In the next trace `DispatchGaps` in Overview is below 10 %."
RULE = Rule(
    id="launch-bound",
    title="The CPU cannot launch kernels fast enough",
    category="kernel launch",
    why="Each kernel costs the host some 5 to 20 µs of Python, dispatch and launch. Where kernels "
    "are shorter than that, the device waits for the host.",
    detects="Gaps of under 1 ms on the busiest device that end with work which was launched, or "
    "still being launched, after the gap began. It speaks where there are `least_kernels` kernels "
    "a step and such gaps are `warning_share` of the window; from `critical_share` on it is "
    "critical. From `python_share` of the gaps between operators on, Python is named.",
    silent=(
        "Gaps of 1 ms and more are no dispatch: the host did something else.",
        "Gaps behind a wait, in the allocator or while data was loaded belong to other rules.",
        "Where under 95 % of the device's work has a recorded launch, or graphs were captured, it "
        "cannot be told.",
        "Where stacks were recorded, which slows just this, confidence is medium.",
    ),
    saving="At most all idle time in such gaps, as replaying a graph would win it; at least half "
    "of it. More than the host's part of a step cannot be won: the device's work stays.",
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
    priority=450,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://pytorch.org/blog/accelerating-pytorch-with-cuda-graphs/",
    ),
    origin="xprof kernel launch 3/15 %; TraceLens; HTA host wait",
    culprit="launching kernels one by one",
)
