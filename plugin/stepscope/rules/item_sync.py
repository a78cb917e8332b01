"""Reading a value of the device drains it."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.sync_cost import SyncCost, longest, place, sites, sync_cost
from stepscope.analyses.synchronizations import synchronizations
from stepscope.analyses.window import window
from stepscope.quantities import count, duration, share
from stepscope.report import EventReference, Evidence, Fix, Link, Severity
from stepscope.rules import Claim, Finding, Rule, severity_of
from stepscope.trace import Trace

SCALER = "aten::_amp_foreach_non_finite_check_and_unscale_"
SCALER_READS = 1
"""GradScaler looks once a step whether a gradient overflowed: it cannot without waiting."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When waits are worth a word."""

    least_idle_share: float = 0.01
    """Idle time caused, of the window: blocked host time alone is no loss."""
    least_a_step: float = 1.0
    """From so many a step on they are mentioned, even where they cost nothing yet."""
    shown_count: int = 10


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report `.item()`, `if tensor:` and the like by the idle time that they cause."""
    requirements.main(trace)
    requirements.reliable_timeline(trace)
    cost = sync_cost(trace, "item")
    within = window(trace)
    idle_ns = intervals.duration_ns(cost.idle)
    lost = idle_ns / within.reference_ns
    a_step = cost.count / max(1, within.step_count)
    if not cost.count or (lost < options.least_idle_share and a_step < options.least_a_step):
        return
    by_design = _has_scaler(trace) and a_step <= SCALER_READS
    costs = lost >= options.least_idle_share and not by_design
    yield Finding(
        severity=_severity(trace, cost) if costs else "info",
        message=_message(trace, cost, costs=costs),
        evidence=(
            Evidence(label="Values read", value=cost.count, unit="count", link=_link()),
            Evidence(
                label="Idle time behind them", value=lost, unit="share", link=Link(view="overview")
            ),
            Evidence(label="Host blocked (no loss by itself)", value=cost.blocked_ns, unit="ns"),
            Evidence(label="Device at work meanwhile", value=cost.working_share, unit="share"),
            *(
                Evidence(label=f"At {where}", value=number, unit="count", link=_link())
                for where, number in sites(trace, cost)[:5]
            ),
        ),
        events=tuple(_references(trace, cost, options.shown_count)),
        claim=_claim(cost) if costs else None,
    )


def _link() -> Link:
    return Link(view="operators", search="aten::item")


def _severity(trace: Trace, cost: SyncCost) -> Severity:
    found = severity_of(intervals.duration_ns(cost.refill) / window(trace).reference_ns)
    return "critical" if found == "critical" else "warning"


def _message(trace: Trace, cost: SyncCost, *, costs: bool) -> str:
    within = window(trace)
    each = "a step" if within.has_steps else "in all"
    idle_ns = intervals.duration_ns(cost.idle)
    text = (
        f"{count(cost.count, 'value is', 'values are')} read from the device "
        f"({cost.count / max(1, within.step_count):.3g} {each}); "
    )
    if not idle_ns:
        text += "the device does not stand still for it."
    else:
        text += (
            f"behind that it stands still for {duration(within.per_step(idle_ns))} {each} "
            f"({share(idle_ns / within.reference_ns)})."
        )
    if not costs and cost.working_share > 0.5:
        text += (
            f" The host is blocked for {duration(within.per_step(cost.blocked_ns))} {each}, but "
            "the "
            "device works meanwhile: reading less would save little now."
        )
    if _has_scaler(trace):
        text += " GradScaler reads one value a step by design."
    return text


def _has_scaler(trace: Trace) -> bool:
    return any(str(name) == SCALER for name in trace.host_calls["name"].cat.categories)


def _claim(cost: SyncCost) -> Claim:
    return Claim(
        intervals=cost.refill,
        low=1.0,
        low_intervals=cost.idle,
        method=(
            "At least the idle time right behind the waits; at most all of it until two operations "
            "are queued again."
        ),
    )


def _references(trace: Trace, cost: SyncCost, shown: int) -> Iterator[EventReference]:
    syncs = synchronizations(trace)
    for row in longest(trace, cost, shown):
        yield references.runtime_call(
            trace, int(syncs.calls[row]), detail=place(trace, int(syncs.owner[row]))
        )


RULE = Rule(
    id="item-sync",
    title="Reading a value (.item(), if tensor:) drains the GPU",
    category="synchronization",
    why=(
        "The host waits until the device has computed the value; by then nothing is queued, the "
        "device stands still until the host has launched again."
    ),
    fix=Fix(
        summary="Keep values on the device and read them every N steps.",
        code=(
            "running += loss.detach()          # instead of running += loss.item()\n"
            "if step % 100 == 0:\n"
            "    print(running.item() / 100)   # one wait in a hundred steps\n"
            "    running.zero_()\n"
            "# and torch.where(condition, a, b) instead of `if condition:` on a tensor"
        ),
        verify='torch.cuda.set_sync_debug_mode("warn") names every line that still waits.',
        caveats=("A wait at the step's end may be needed by what follows.",),
    ),
    options=Options(),
    check=check,
    priority=14,
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
        "#avoid-unnecessary-cpu-gpu-synchronization",
    ),
    origin="PyTorch tuning guide; Nsight Systems cuda_api_sync, charged by idle time instead",
)
