"""The host cannot launch kernels fast enough."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope import intervals
from stepscope.analyses import requirements
from stepscope.analyses.devices.activity import DeviceActivity
from stepscope.analyses.idle.dispatch import Dispatch, dispatch
from stepscope.analyses.steps.window import window
from stepscope.calibration import HALF_TO_ALL
from stepscope.dialects import Kind
from stepscope.quantities import duration, share
from stepscope.report import Evidence, Fix, Link
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Shares of the window, 0 to 1, and how many kernels make a pattern."""

    warn_at: float = option(0.10, "Above the noise of healthy traces, 0 to 6 %.", origin="")
    critical_at: float = option(
        0.30, "xprof: 3 and 15 % of the step in kernel launches.", origin=""
    )
    least_kernels: int = option(50, "A step: with fewer there is nothing to fuse.", origin="")
    python_share: float = option(
        0.30, "Of the gaps, between operators: then it is Python, not the dispatcher.", origin=""
    )
    stacks_per_operator: float = option(
        3.0, "Python events an operator from which recording stacks distorts just this.", origin=""
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report gaps of under 1 ms in which the device waits for the host's next launch."""
    device = requirements.main(trace)
    requirements.reliable_timeline(trace)
    requirements.linked_launches(trace)
    within = window(trace)
    cost = dispatch(trace, device)
    lost = cost.idle_ns / max(1, within.device_duration_ns)
    is_pattern = within.per_step(cost.kernel_count) >= options.least_kernels
    if lost < options.warn_at or not is_pattern:
        return
    is_distorted = _is_distorted(trace, options)
    yield Finding(
        severity="critical" if lost >= options.critical_at else "warning",
        confidence="medium" if is_distorted else "high",
        message=(
            f"{trace.dialect.device} {device.device} waits "
            f"{duration(within.per_step(cost.idle_ns))}"
            f"{' a step' if within.has_steps else ''} ({share(lost)}) for the next of "
            f"{within.per_step(cost.kernel_count):,} kernels, in gaps of under 1 ms"
            f"{_split(cost)}."
        ),
        evidence=tuple(_evidence(trace, device, cost, lost)),
        claims=(
            Claim(
                intervals=cost.idle,
                factor=HALF_TO_ALL,
                method="All idle time in gaps of under 1 ms; graphs remove nearly all, compile half.",
            ),
        ),
        fix=_fix(cost, options, is_distorted=is_distorted),
    )


def _split(cost: Dispatch) -> str:
    if not cost.has_operators:
        return ""  # what the host did in between was not recorded
    return (
        f": {share(cost.inside_share)} of it inside operators, {share(cost.launch_share)} in the "
        f"launch calls, {share(cost.between_share)} between operators (Python)"
    )


def _is_distorted(trace: Trace, options: Options) -> bool:
    operator_count = int(trace.host_calls["is_operator"].sum())
    python_count = len(trace.source.rows(Kind.PYTHON_CALL))
    return python_count >= options.stacks_per_operator * max(1, operator_count)


def _evidence(
    trace: Trace, device: DeviceActivity, cost: Dispatch, lost: float
) -> Iterator[Evidence]:
    within = window(trace)
    yield Evidence(label="Idle, dispatch", value=lost, unit="share", link=Link(view="overview"))
    yield Evidence(
        label="Kernels a step" if within.has_steps else "Kernels",
        value=within.per_step(cost.kernel_count),
        unit="count",
        link=Link(view="kernels"),
    )
    yield Evidence(
        label="Median kernel", value=cost.median_kernel_ns, unit="ns", link=Link(view="kernels")
    )
    if cost.has_operators:
        yield Evidence(label="Of the gaps, inside operators", value=cost.inside_share, unit="share")
        yield Evidence(label="Of the gaps, in launch calls", value=cost.launch_share, unit="share")
        yield Evidence(
            label="Of the gaps, between operators", value=cost.between_share, unit="share"
        )
    busy = intervals.duration_ns(device.busy) / max(1, within.device_duration_ns)
    yield Evidence(label=f"{trace.dialect.device} busy", value=busy, unit="share")


def _fix(cost: Dispatch, options: Options, *, is_distorted: bool) -> Fix:
    caveats = ["Changing shapes make torch.compile compile again."]
    if is_distorted:
        caveats.append(
            "Stacks were recorded, which slows just this: record again with_stack=False."
        )
    if cost.has_graphs:
        summary = "Graphs are used already: put what is still launched one by one into them too."
        code = ""
    else:
        summary = "Replay the step's launches as one CUDA graph, or fuse them."
        code = 'model = torch.compile(model, mode="reduce-overhead")'
    if cost.between_share >= options.python_share and cost.has_operators:
        caveats.append(
            "Much of it is Python between operators: move it out of the loop; drop per-layer hooks."
        )
    return Fix(
        summary=summary,
        code=code,
        verify="Idle, dispatch in Overview falls below 10 %.",
        caveats=tuple(caveats),
    )


RULE = Rule(
    id="launch-bound",
    title="The CPU cannot launch kernels fast enough",
    category="kernel launch",
    why=(
        "Each kernel costs the host some 5 to 20 µs of Python, dispatch and launch. Where kernels "
        "are shorter than that, the device waits for the host."
    ),
    fix=Fix(summary="Launch fewer, larger kernels."),
    detects="",
    saving="",
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
)
