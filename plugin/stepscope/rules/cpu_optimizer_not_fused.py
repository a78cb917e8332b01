"""On a machine without a device the optimizer's update is not the fused one."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import OptimizerUpdates, optimizer_updates
from stepscope.base.calibration import (
    FUSED_ADAGRAD_ON_CPU,
    FUSED_BRIEF_MOMENTUM_ON_CPU,
    FUSED_MOMENTS_ON_CPU,
    FUSED_MOMENTUM_ON_CPU,
    FUSED_SHORT_MOMENTUM_ON_CPU,
    Factor,
)
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, product_evidence

FACTORS = {
    "Adagrad": FUSED_ADAGRAD_ON_CPU,
    "Adam": FUSED_MOMENTS_ON_CPU,
    "AdamW": FUSED_MOMENTS_ON_CPU,
    "SGD": FUSED_MOMENTUM_ON_CPU,
}
"""torch.optim: these accept `fused=True` on CPUs."""
SHORT_OPERATOR_NS = 10_000
"""Mean operator of an update with momentum that reads caches; from memory it takes longer. Of 16 k
numbers an operator takes 5 µs, of 64 k 20 µs (measured as the factors)."""
FEW_OPERATORS = 30
"""Operators of an update with momentum, three per parameter, below which its call takes longest."""
PLAIN, MOMENTUM = "SGD", frozenset({"aten::mul_", "aten::_foreach_mul_"})
"""SGD without momentum is one addition per parameter: there is nothing to fuse."""


class Options(Thresholds):
    """Thresholds from which updates take long."""

    least_share: float = option(
        0.02,
        "Fraction of the window that the host spends in the updates.",
        origin="ours: of less than 2 %, the certain saving is not even 1 % of the step",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each optimizer whose updates take long and could be fused."""
    requirements.no_device(trace)
    updates, span = optimizer_updates(trace), window(trace)
    for name in dict.fromkeys(updates.optimizer.tolist()):
        index = updates.of(name)
        times = intervals.union(updates.begin_ns[index], updates.end_ns[index])
        times = intervals.clip(times, span.start_ns, span.end_ns)
        lost = phrases.fraction_of_window(trace, intervals.duration_ns(times))
        if lost >= options.least_share and _can_be_fused(trace, updates, index):
            yield _finding(trace, name, updates.rows[index], times)


def _can_be_fused(trace: Trace, updates: OptimizerUpdates, index: NDArray[np.int64]) -> bool:
    name = updates.optimizer[index[0]]
    if name not in FACTORS or (updates.is_fused | updates.is_compiled)[index].any():
        return False
    if name != PLAIN:
        return True
    operators = _operators(trace, updates.rows[index])
    return bool(name_mask(trace.host_calls["name"], MOMENTUM.__contains__)[operators].any())


def _finding(trace: Trace, name: str, rows: NDArray[np.int64], times: Intervals) -> Finding:
    operators = _operators(trace, rows)
    factor = _factor(trace, name, operators, len(rows))
    number = round(len(operators) / len(rows))
    lost_ns = intervals.duration_ns(times)
    return Finding(
        message=f"{name}'s updates take {phrases.time_and_fraction(trace, lost_ns)}, in "
        f"{count(number, 'operator')} each; a fused update is one operator.",
        evidence=(
            facts.fraction(
                "Host time in them",
                phrases.fraction_of_window(trace, lost_ns),
                Link(view="operators", search=f"Optimizer.step#{name}"),
            ),
            facts.count("Updates in total", len(rows)),
            facts.count("Operators per update", number),
        ),
        tables=(call_costs.by_name(trace.host_calls, operators, "Operators of the updates"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=(
            Claim(
                times,
                factor,
                f"The updates, which are {product_evidence.times(factor)} times as fast in one "
                "operator.",
            ),
        ),
        fix=_fix(name),
        subject=name,
    )


def _factor(trace: Trace, name: str, operators: NDArray[np.int64], update_count: int) -> Factor:
    """Return the factor of an optimizer's updates, whose direct operators are given."""
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[operators]
    if name != PLAIN or duration_ns.mean() >= SHORT_OPERATOR_NS:
        return FACTORS[name]
    is_brief = len(operators) < FEW_OPERATORS * update_count
    return FUSED_BRIEF_MOMENTUM_ON_CPU if is_brief else FUSED_SHORT_MOMENTUM_ON_CPU


def _operators(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the operators that the updates called directly."""
    calls = trace.host_calls
    is_child = np.isin(calls["parent"].to_numpy(), rows)
    return np.flatnonzero(is_child & calls["is_operator"].to_numpy())


def _fix(optimizer: str) -> Fix:
    return Fix(
        "Use the fused update: one operator, which goes through memory once.",
        f"optimizer = torch.optim.{optimizer}(params, fused=True)",
        verify="aten::_fused_* runs inside Optimizer.step, and the fraction of the step falls.",
        caveats=(
            "On a CPU torch 2.4 or newer has it, and uses the loop unless you request it.",
            "Results differ in the last digits.",
        ),
    )


RULE = Rule(
    id="cpu-optimizer-not-fused",
    title="The optimizer's update is not fused on the CPU",
    passed="The optimizer's update on the CPU is fused or short",
    category="optimizer",
    why="Each parameter takes up to a dozen small operators, each of which costs some microseconds "
    "before it begins, and reads and writes the parameter again. A fused update is one operator "
    "for all parameters. By default torch updates them one by one on a CPU.",
    detects="On a machine without a device, the updates of Adam, AdamW, SGD and Adagrad that call "
    "no aten::_fused_* operator. It reports where they are `least_share` of the window or more.",
    silent=(
        "Optimizers without a fused update for CPUs in torch.",
        "SGD without momentum, which is one addition per parameter.",
        "Updates that torch.compile compiled: compiled code goes through memory once, too.",
        "Forward and backward passes of a closure inside Optimizer.step are not counted.",
    ),
    saving="The part of the updates' time that a fused one saves, as measured: more where there "
    "are many small parameters, less where a few large ones fill the memory's bandwidth.",
    fix=_fix("AdamW"),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="optimizer",
    after=("optimizer-not-fused",),
    links=("optim.html#algorithms",),
    origin="ours: the traces in sample_logs/optimizer, and each form measured with 2 to 400 "
    "parameters",
    culprit="the optimizer's update",
)
