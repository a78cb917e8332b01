"""The optimizer goes through the parameters one by one."""

from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import HALF_TO_ALL, UPDATE_KERNELS
from stepscope.base.formatting import share
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import (
    call_costs,
    optimizer_steps,
    phrases,
    recorded_facts,
    step_savings,
)
from stepscope.rules.shared.optimizer_steps import FUSED, LISTWISE, NO_LISTS, Updates

SUMMARY = "Let the optimizer take all parameters at once."
VERIFY = (
    "aten::_fused_* or aten::_foreach_* stand inside Optimizer.step, and an update makes a few "
    "launches instead of several for each parameter."
)


class Options(Thresholds):
    """Threshold of launches per update."""

    least_launch_count: int = option(
        100,
        "Launches of one update, from which on it goes through the parameters one by one.",
        origin="ours: `foreach` and `fused` make 1 to 31 in the traces seen, a loop 404 to 2,301",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each optimizer whose updates launch several kernels for each parameter."""
    for updates in optimizer_steps.updates(trace):
        is_loop = not (updates.is_listwise or updates.is_fused or updates.optimizer in NO_LISTS)
        if is_loop and updates.launches_per_update >= options.least_launch_count:
            yield _finding(trace, updates)


def _finding(trace: Trace, updates: Updates) -> Finding:
    cost = updates.cost
    claims = call_costs.claims(
        cost,
        HALF_TO_ALL,
        UPDATE_KERNELS,
        "At most the idle time during the updates, and what a fused update saves of reading and "
        "writing; at least half of the idle time.",
    )
    saves = step_savings.is_worth_reporting(trace, claims)
    return Finding(
        message=_message(trace, updates, saves=saves),
        evidence=optimizer_steps.evidence(trace, updates),
        tables=(optimizer_steps.operators(trace, updates),),
        events=call_costs.longest(trace, updates.rows),
        locations=call_costs.lines(trace, updates.rows),
        claims=claims if saves else (),
        fix=_fix(trace, updates.optimizer),
        effort="flag" if updates.optimizer in LISTWISE else "hour",
        subject=updates.optimizer,
    )


def _message(trace: Trace, updates: Updates, *, saves: bool) -> str:
    cost, device = updates.cost, trace.dialect.device
    host = share(phrases.fraction_of_window(trace, cost.host_ns))
    text = (
        f"{updates.optimizer} makes {round(updates.launches_per_update):,} launches an update, "
        "parameter by "
        f"parameter, which take the host {phrases.time(trace, cost.host_ns)} ({host})."
    )
    if saves:
        idle = f"is idle for {phrases.time(trace, cost.idle_ns)}"
        work = f"works on the updates for {phrases.time(trace, cost.work_ns)}"
        return f"{text} The {device} {idle} meanwhile, and {work}."
    return (
        f"{text} The {device} still has work queued meanwhile: by itself that costs little now, "
        "and more once the host is the limit."
    )


def _fix(trace: Trace, optimizer: str) -> Fix:
    recorded = recorded_facts.optimizer(trace, optimizer)
    if recorded is not None and recorded.foreach is False and not recorded.fused:
        return _switched_off(optimizer)
    if optimizer in FUSED:
        code = (
            f"optimizer = torch.optim.{optimizer}(params, fused=True)    # one kernel for all\n"
            f"# or torch.optim.{optimizer}(params, foreach=True): a few kernels, more memory"
        )
    elif optimizer in LISTWISE:
        code = f"optimizer = torch.optim.{optimizer}(params, foreach=True)   # a few kernels"
    else:
        code = (
            f"# {optimizer} is not one of torch.optim with foreach=: compile its update\n"
            "update = torch.compile(optimizer.step)\n"
            "update()    # instead of optimizer.step()"
        )
    return Fix(SUMMARY, code, verify=VERIFY, caveats=CAVEATS)


def _switched_off(optimizer: str) -> Fix:
    """Return the fix where `foreach=False` was recorded: that is why."""
    arguments = "fused=True" if optimizer in FUSED else "foreach=True"
    return Fix(
        f"Take foreach=False out: it was set ({RECORDED}).",
        f"optimizer = torch.optim.{optimizer}(params, {arguments})    # was foreach=False",
        verify=VERIFY,
        caveats=CAVEATS[1:],
    )


CAVEATS = (
    "Since torch 2.0 foreach is the default on devices: look for foreach=False, for parameters "
    "that are tensor subclasses or lie on several devices, or for another library's class of the "
    "same name.",
    "foreach keeps temporary copies: its peak of memory is higher by about the parameters' size.",
    "Results differ in the last digits.",
)

RULE = Rule(
    id="optimizer-single-tensor",
    title="The optimizer updates parameters one by one",
    passed="The optimizer updates parameters together, or in few launches",
    category="optimizer",
    why="Each parameter takes several small kernels, and each of these a launch of some 5 to 10 µs "
    "on the host. The same update of all parameters at once takes a few launches.",
    detects="Counts launches within Optimizer.step, not operators: a fused optimizer may call many "
    "operators and launch few kernels. It reports updates with `least_launch_count` launches or "
    "more and no aten::_foreach_* or aten::_fused_* operator.",
    silent=(
        "On a CPU, where going through the parameters one by one is torch's default.",
        "For LBFGS and SparseAdam, which have no other form.",
        "Forward and backward of a closure within Optimizer.step are not counted.",
    ),
    saving="The idle time of the device while the host is in the updates: half of it at least. Of "
    "the kernels that run alone, what a fused update saves of reading and writing memory, where "
    "the device is the limit. Where both are below 1 %, nothing is claimed.",
    fix=Fix(
        SUMMARY,
        "optimizer = torch.optim.AdamW(params, fused=True)    # or foreach=True",
        verify=VERIFY,
        caveats=CAVEATS,
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority="optimizer",
    culprit="the optimizer's loop over parameters",
    links=("optim.html#algorithms",),
    origin="torch.profiler's OptimizerSingleTensorPattern; MindStudio's optimizer advice",
)
