"""The optimizer takes lists of tensors, but no fused kernel, and that takes time."""

from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import FUSED_UPDATE
from stepscope.base.formatting import share
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, optimizer_steps, phrases, recorded_facts
from stepscope.rules.shared.optimizer_steps import FUSED, Updates

VERIFY = "aten::_fused_* stands inside Optimizer.step, and the step's share of the time falls."


class Options(Thresholds):
    """Threshold of the time of updates."""

    least_share: float = option(
        0.05,
        "Idle time during the updates and device time of their kernels, of the window.",
        origin="torch-tb-profiler's 5 %, from which it mentions a part of the step",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each optimizer that uses `foreach`, where its updates are a large part of the time."""
    for updates in optimizer_steps.updates(trace):
        exposed_ns = updates.cost.idle_ns + updates.cost.work_ns
        exposed = phrases.fraction_of_window(trace, exposed_ns)
        if updates.is_listwise and not updates.is_fused and exposed >= options.least_share:
            yield _finding(trace, updates, exposed_ns)


def _finding(trace: Trace, updates: Updates, exposed_ns: int) -> Finding:
    has_fused = updates.optimizer in FUSED
    exposed = share(phrases.fraction_of_window(trace, exposed_ns))
    text = (
        f"{updates.optimizer}'s updates cost {phrases.time(trace, exposed_ns)} ({exposed}), with "
        f"{updates.launches_per_update:.3g} launches each: they take lists of tensors, but no "
        "fused kernel."
    )
    if not has_fused:
        text += f" torch has no fused {updates.optimizer}."
    method = "At most half of the idle time during the updates and of their kernels' time."
    return Finding(
        severity="info",
        confidence="medium",
        message=text,
        evidence=optimizer_steps.evidence(trace, updates),
        tables=(optimizer_steps.operators(trace, updates),),
        events=call_costs.longest(trace, updates.rows),
        locations=call_costs.lines(trace, updates.rows),
        claims=call_costs.claims(updates.cost, FUSED_UPDATE, FUSED_UPDATE, method)
        if has_fused
        else (),
        fix=_fix(trace, updates.optimizer),
        effort="flag" if has_fused else "day",
        subject=updates.optimizer,
    )


def _fix(trace: Trace, optimizer: str) -> Fix:
    recorded = recorded_facts.optimizer(trace, optimizer)
    if recorded is not None and recorded.fused:
        return _not_torchs(optimizer)
    if optimizer in FUSED:
        return Fix(
            "Use the fused update: one kernel, which reads and writes everything once.",
            f"optimizer = torch.optim.{optimizer}(params, fused=True)",
            verify=VERIFY,
            caveats=(
                "Results differ in the last digits.",
                "fused=True wants float parameters on the device, and no sparse gradients.",
            ),
        )
    return Fix(
        "Compile the update, or do its costly part in fewer steps.",
        "update = torch.compile(optimizer.step)\n"
        f"update()    # instead of optimizer.step() of {optimizer}",
        verify="Optimizer.step takes a smaller share of the step, with fewer launches.",
        caveats=("What an optimizer does on the host, or reads back, does not compile.",),
    )


def _not_torchs(optimizer: str) -> Fix:
    """Return what to look at where `fused=True` was recorded, and no fused kernel ran."""
    return Fix(
        f"fused=True is set ({RECORDED}), and no fused kernel ran: see why.",
        f"assert type(optimizer) is torch.optim.{optimizer}  # not a library's own class\n"
        "torch.compile(optimizer.step)  # or let the compiler write the update",
        verify=VERIFY,
        caveats=("An optimizer of another library may take the argument and not use it.",),
    )


RULE = Rule(
    id="optimizer-not-fused",
    title="The optimizer does not use its fused kernel",
    passed="The optimizer's update is fused or short",
    category="optimizer",
    why="With foreach each arithmetic step of the update is a kernel over all parameters, which "
    "reads and writes them again, and which the host prepares. A fused update is one kernel.",
    detects="Updates that call aten::_foreach_* and no aten::_fused_* operator. It reports "
    "where the device's idle time during the updates and the time of their kernels are "
    "`least_share` of the window or more.",
    silent=(
        "On a CPU.",
        "Where the update is short: little could be saved.",
        "Forward and backward of a closure within Optimizer.step are not counted.",
    ),
    saving="At most half of the idle time and of the kernels' time of the updates, an estimate; "
    "nothing for an optimizer of which torch has no fused version.",
    fix=Fix(
        "Use the fused update.", "optimizer = torch.optim.AdamW(params, fused=True)", verify=VERIFY
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority="optimizer",
    after=("unfused-grad-clip",),
    culprit="the optimizer's update",
    links=("optim.html#algorithms",),
    origin="torch.optim's documentation: fused is faster than foreach, foreach than the loop",
)
