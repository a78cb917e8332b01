"""Gradients are clipped one by one."""

import numpy as np

from stepscope.analyses.host.optimizer_updates import (
    GradientNorms,
    gradient_norms,
    launched_work,
    optimizer_updates,
)
from stepscope.analyses.idle.call_cost import CallCost, call_cost
from stepscope.base.calibration import CLIPPING_ON_CPU, HALF_TO_ALL
from stepscope.base.findings import Evidence, Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, step_savings

READ = frozenset({"aten::item"})


class Options(Thresholds):
    """Threshold of norms of single tensors."""

    least_an_update: int = option(
        20,
        "Norms of single tensors between the backward pass and the optimizer's step.",
        origin="ours: ten layers with bias; loops in the traces seen have 24 to 272",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report norms of single gradients between the backward pass and the optimizer's step."""
    norms = gradient_norms(trace)
    update_count = len(optimizer_updates(trace).rows)
    if len(norms.rows) < options.least_an_update * update_count:
        return
    cost = call_cost(trace, norms.times, launched_work(trace, norms.rows).events)
    claims = (_claim(trace, cost),)
    saves = step_savings.is_worth_reporting(trace, claims)
    yield Finding(
        message=_message(trace, cost, len(norms.rows) / update_count),
        evidence=_evidence(trace, norms, cost),
        events=call_costs.longest(trace, norms.rows),
        locations=call_costs.lines(trace, norms.rows),
        claims=claims if saves else (),
        fix=_fix(trace, norms),
    )


def _claim(trace: Trace, cost: CallCost) -> Claim:
    if len(trace.device_events):
        return Claim(
            cost.idle, HALF_TO_ALL, "Idle time while gradients are clipped; half of it at least."
        )
    return Claim(
        cost.host,
        CLIPPING_ON_CPU,
        "The host's time for clipping; on a CPU each gradient is still computed by itself.",
    )


def _message(trace: Trace, cost: CallCost, norms: float) -> str:
    host = share(phrases.fraction_of_window(trace, cost.host_ns))
    text = (
        f"Gradients are clipped one by one, {norms:.3g} norms an update: that takes the host "
        f"{phrases.time(trace, cost.host_ns)} ({host})"
    )
    if not len(trace.device_events):
        return f"{text}."
    if not cost.idle_ns:
        return f"{text}; the {trace.dialect.device} is not kept waiting by their launches."
    idle = phrases.time(trace, cost.idle_ns)
    return f"{text}, and the {trace.dialect.device} is idle for {idle} meanwhile."


def _evidence(trace: Trace, norms: GradientNorms, cost: CallCost) -> tuple[Evidence, ...]:
    return (
        facts.count(
            "Norms of single gradients", len(norms.rows), Link(view="operators", search="norm")
        ),
        facts.count("Values read meanwhile", _reads(trace, norms)),
        *call_costs.evidence(trace, cost),
    )


def _reads(trace: Trace, norms: GradientNorms) -> int:
    """Return how many values were read while gradients were clipped."""
    start = trace.host_calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(trace.host_calls["name"], READ.__contains__))
    inside = intervals.covered_ns(norms.times, start[rows], start[rows] + 1)
    return int(inside.sum())


def _fix(trace: Trace, norms: GradientNorms) -> Fix:
    if _reads(trace, norms) < len(norms.rows) / 2:
        return FIX
    self_written = (
        "Each norm is read back (.item()), which waits for the device each time: "
        "clip_grad_norm_ reads nothing."
    )
    return Fix(FIX.summary, FIX.code, verify=FIX.verify, caveats=(self_written, *FIX.caveats))


FIX = Fix(
    "Clip all gradients at once.",
    "torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm, foreach=True)\n"
    "# in place of a loop over p.grad, and of foreach=False",
    verify="aten::_foreach_norm and aten::_foreach_mul_ stand between the backward pass and the "
    "optimizer's step, and no norms of single tensors.",
    caveats=(
        "error_if_nonfinite=True and reading the norm that it returns wait for the device.",
        "Sharded gradients (FSDP) are clipped by the wrapper's own clip_grad_norm_.",
    ),
)

RULE = Rule(
    id="unfused-grad-clip",
    title="Gradients are clipped one by one",
    passed="Gradient clipping runs on all gradients together",
    category="optimizer",
    why="A norm and a multiplication for each parameter are two small kernels and two launches. "
    "For all gradients at once they are a few.",
    detects="Counts aten::linalg_vector_norm and aten::norm between the end of the backward pass "
    "and Optimizer.step, those within an aten::_foreach_* operator apart. It reports where there "
    "are `least_an_update` or more for each update.",
    silent=(
        "Norms of the model itself lie before the end of the backward pass.",
        "An optimizer's own norms (LARS, LAMB) lie within its step.",
    ),
    saving="The idle time of the device while the host clips: half of it at least. On a CPU a part "
    "of the host's time, as measured. Where that is below 1 %, nothing is claimed.",
    fix=FIX,
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority="optimizer",
    after=("zero-grad-memset",),
    culprit="clipping gradients one by one",
    links=("generated/torch.nn.utils.clip_grad_norm_.html",),
    origin="torch.nn.utils.clip_grad_norm_: foreach is its default on devices since torch 2.0",
)
