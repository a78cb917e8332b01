"""Copies of tensors to the host make it wait."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope import intervals
from stepscope.analyses import references, requirements
from stepscope.analyses.sync_cost import SyncCost, longest, place, sites, sync_cost
from stepscope.analyses.synchronizations import synchronizations
from stepscope.analyses.training import is_training
from stepscope.analyses.window import window
from stepscope.quantities import count, duration, share
from stepscope.report import EventReference, Evidence, Fix, Link, Severity
from stepscope.rules import Claim, Finding, Rule, severity_of
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """When waits are worth a word."""

    least_idle_share: float = 0.01
    """Idle time caused, of the window: blocked host time alone is no loss."""
    least_a_step: float = 1.0
    """From so many a step on they are mentioned, even where they cost nothing yet."""
    shown_count: int = 10


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report `.cpu()`, `.numpy()` and prints of device tensors by the idle time they cause."""
    requirements.main(trace)
    requirements.reliable_timeline(trace)
    cost = sync_cost(trace, "d2h")
    within = window(trace)
    idle_ns = intervals.duration_ns(cost.idle)
    lost = idle_ns / within.reference_ns
    a_step = cost.count / max(1, within.step_count)
    if not cost.count or (lost < options.least_idle_share and a_step < options.least_a_step):
        return
    costs = lost >= options.least_idle_share
    yield Finding(
        severity=_severity(trace, cost) if costs else "info",
        message=_message(trace, cost, costs=costs),
        evidence=(
            Evidence(label="Waits for a copy", value=cost.count, unit="count", link=_link()),
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
    return Link(view="operators", search="aten::copy_")


def _severity(trace: Trace, cost: SyncCost) -> Severity:
    found = severity_of(intervals.duration_ns(cost.refill) / window(trace).reference_ns)
    return "critical" if found == "critical" else "warning"


def _message(trace: Trace, cost: SyncCost, *, costs: bool) -> str:
    within = window(trace)
    each = "a step" if within.has_steps else "in all"
    idle_ns = intervals.duration_ns(cost.idle)
    text = (
        f"The host waits {count(cost.count, 'time')} for a tensor to be copied to it "
        f"({cost.count / max(1, within.step_count):.3g} {each}); "
    )
    if not idle_ns:
        text += "the device does not stand still for it."
    else:
        text += (
            "behind that the device stands still for "
            f"{duration(within.per_step(idle_ns))} {each} "
            f"({share(idle_ns / within.reference_ns)})."
        )
    if not costs and cost.working_share > 0.5:
        text += (
            f" The host is blocked for {duration(within.per_step(cost.blocked_ns))} {each}, but "
            "the "
            "device works meanwhile: "
        )
        text += (
            "copying less would save little now."
            if is_training(trace)
            else "this is the result's readback."
        )
    return text


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
    id="blocking-d2h-copy",
    title="Copying tensors to the CPU (.cpu(), .numpy()) drains the GPU",
    category="synchronization",
    why=(
        "A copy to pageable memory makes the host wait until the device has finished everything "
        "before it; by then nothing is queued, and the device stands still."
    ),
    fix=Fix(
        summary="Copy without blocking into pinned memory, and look at it later; or keep it there.",
        code=(
            "result = torch.empty(shape, pin_memory=True)\n"
            "result.copy_(output, non_blocking=True)\n"
            "done = torch.cuda.Event(); done.record()\n"
            "...                      # launch the next step first\n"
            "done.synchronize()       # then wait, and read result"
        ),
        verify="The idle cause `After a sync` in Overview falls.",
        caveats=("Reading the result of an inference step is inherent; batch the readbacks.",),
    ),
    options=Options(),
    check=check,
    priority=15,
    links=("https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",),
    origin="TraceLens D2H; Nsight Systems cuda_api_sync, charged by idle time instead",
)
