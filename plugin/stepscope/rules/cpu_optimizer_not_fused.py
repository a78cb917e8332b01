"""On a machine without a device the optimizer's update is not the fused one."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import OptimizerUpdates, optimizer_updates
from stepscope.base.calibration import FUSED_MOMENTS_ON_CPU, FUSED_MOMENTUM_ON_CPU, Factor
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.rules.shared import call_costs, facts, phrases, product_evidence

FACTORS = {
    "Adagrad": FUSED_MOMENTS_ON_CPU,
    "Adam": FUSED_MOMENTS_ON_CPU,
    "AdamW": FUSED_MOMENTS_ON_CPU,
    "SGD": FUSED_MOMENTUM_ON_CPU,
}
"""torch.optim: these take `fused=True` on CPUs."""
PLAIN, MOMENTUM = "SGD", frozenset({"aten::mul_", "aten::_foreach_mul_"})
"""SGD without momentum is one addition a parameter: there is nothing to fuse."""
VERIFY = "aten::_fused_* stands inside Optimizer.step, and the step's share of the time falls."


@dataclass(frozen=True, kw_only=True)
class Options:
    """When updates take long."""

    least_share: float = option(
        0.02,
        "The host's time in the updates, of the window.",
        origin="ours: of less than 2 % not 1 % of the step can be won for sure",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report each optimizer whose updates take long and could be fused."""
    _insist_on_no_device(trace)
    found = optimizer_updates(trace)
    for name in dict.fromkeys(found.optimizer.tolist()):
        at = found.of(name)
        times = _times(trace, found, at)
        lost = phrases.fraction_of_window(trace, intervals.duration_ns(times))
        if lost >= options.least_share and _can_be_fused(trace, found, at):
            yield _finding(trace, found, at, times)


def _can_be_fused(trace: Trace, found: OptimizerUpdates, at: NDArray[np.int64]) -> bool:
    name = found.optimizer[at[0]]
    if name not in FACTORS or (found.is_fused | found.is_compiled)[at].any():
        return False
    if name != PLAIN:
        return True
    inside = _operators(trace, found.rows[at])
    return bool(name_mask(trace.host_calls["name"], MOMENTUM.__contains__)[inside].any())


def _insist_on_no_device(trace: Trace) -> None:
    try:
        requirements.main_device(trace)
    except NotApplicableError:
        return
    msg = "the program ran on a machine with a device"
    raise NotApplicableError(msg)


def _times(trace: Trace, found: OptimizerUpdates, at: NDArray[np.int64]) -> Intervals:
    within = window(trace)
    ran = intervals.union(found.begin_ns[at], found.end_ns[at])
    return intervals.clip(ran, within.start_ns, within.end_ns)


def _finding(
    trace: Trace, found: OptimizerUpdates, at: NDArray[np.int64], times: Intervals
) -> Finding:
    name, rows = str(found.optimizer[at[0]]), found.rows[at]
    inside = _operators(trace, rows)
    each = round(len(inside) / len(at))
    lost_ns = intervals.duration_ns(times)
    lost = phrases.fraction_of_window(trace, lost_ns)
    return Finding(
        message=f"{name}'s updates take {phrases.time(trace, lost_ns)} ({share(lost)}), in "
        f"{count(each, 'operator')} each; fused, each is one.",
        evidence=(
            facts.fraction(
                "Host time in them", lost, Link(view="operators", search=f"Optimizer.step#{name}")
            ),
            facts.count("Updates", len(at)),
            facts.count("Operators an update", each),
        ),
        tables=(call_costs.by_name(trace.host_calls, inside, "Operators of the updates"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=(_claim(times, FACTORS[name]),),
        fix=_fix(name),
        subject=name,
    )


def _operators(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the operators that the updates called themselves."""
    calls = trace.host_calls
    is_theirs = np.isin(calls["parent"].to_numpy(), rows)
    return np.flatnonzero(is_theirs & calls["is_operator"].to_numpy())


def _claim(times: Intervals, factor: Factor) -> Claim:
    return Claim(
        times,
        factor,
        f"The updates, which are {product_evidence.times(factor)} times as fast in one operator.",
    )


def _fix(optimizer: str) -> Fix:
    return Fix(
        "Use the fused update: one operator, which goes through memory once.",
        f"optimizer = torch.optim.{optimizer}(params, fused=True)",
        verify=VERIFY,
        caveats=(
            "On a CPU torch 2.4 or newer has it, and chooses the loop unless it is told.",
            "Results differ in the last digits.",
        ),
    )


RULE = Rule(
    id="cpu-optimizer-not-fused",
    title="The optimizer's update is not fused on the CPU",
    category="optimizer",
    why="Each parameter takes up to a dozen small operators, each of which costs some microseconds "
    "before it begins, and reads and writes the parameter again. A fused update is one operator "
    "for all parameters. On a CPU torch goes through them one by one unless it is told otherwise.",
    detects="On a machine without a device, the updates of Adam, AdamW, SGD and Adagrad that call "
    "no aten::_fused_* operator. It speaks where they are `least_share` of the window or more.",
    silent=(
        "Optimizers of which torch has no fused update for CPUs.",
        "SGD without momentum, which is one addition a parameter.",
        "Updates that torch.compile compiled: what it writes goes through memory once, too.",
        "Forward and backward of a closure within Optimizer.step are not counted.",
    ),
    saving="The part of the updates' time that a fused one saves, as measured: more where there "
    "are many small parameters, less where a few large ones fill the memory's bandwidth.",
    fix=_fix("AdamW"),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority=275,
    links=("https://docs.pytorch.org/docs/stable/optim.html#algorithms",),
    origin="ours: the recordings in sample_logs/optimizer, and each form measured with 2 to 400 "
    "parameters",
    culprit="the optimizer's update",
)
