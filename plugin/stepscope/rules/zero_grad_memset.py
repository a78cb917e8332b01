"""Gradients are filled with zeros instead of let go."""

from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.call_cost import CallCost, ZeroedGradients, zeroed_gradients
from stepscope.base.calibration import (
    ADDING_TO_ZEROS_ON_CPU,
    ALL_OF_IT,
    HALF_TO_ALL,
    ZEROING_ON_CPU,
)
from stepscope.base.findings import Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, step_savings


class Options(Thresholds):
    """Threshold of fills with zeros."""

    least_a_step: int = option(
        4,
        "Fills in zero_grad, per step; in total where there are no steps.",
        origin="ours: a network of two layers has four gradients",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report gradients that are filled with zeros within the optimizer's `zero_grad`."""
    zeroed = zeroed_gradients(trace)
    is_many = len(zeroed.fills) >= options.least_a_step * max(1, window(trace).step_count)
    if is_many or zeroed.is_listwise:
        yield _finding(trace, zeroed)


def _finding(trace: Trace, zeroed: ZeroedGradients) -> Finding:
    cost = zeroed.cost
    claims = _claims(trace, zeroed)
    saves = step_savings.is_worth_reporting(trace, claims)
    return Finding(
        message=_message(trace, len(zeroed.fills), cost),
        evidence=(
            facts.count("Fills", len(zeroed.fills), Link(view="operators", search="aten::zero_")),
            *call_costs.evidence(trace, cost),
            facts.count("Additions to zeros in total", len(zeroed.additions)),
        ),
        events=call_costs.longest(trace, zeroed.zeroing),
        locations=call_costs.lines(trace, zeroed.zeroing),
        claims=claims if saves else (),
    )


def _claims(trace: Trace, zeroed: ZeroedGradients) -> tuple[Claim, ...]:
    if len(trace.device_events):
        method = "Idle time during zero_grad, half of it at least, and the time of the fills."
        return call_costs.claims(zeroed.cost, HALF_TO_ALL, ALL_OF_IT, method)
    span = window(trace)
    additions = times(trace.host_calls, zeroed.additions)
    return (
        Claim(
            zeroed.cost.idle,
            ZEROING_ON_CPU,
            "The host's time in the fills; freeing takes some of it, or most.",
        ),
        Claim(
            intervals.clip(additions, span.start_ns, span.end_ns),
            ADDING_TO_ZEROS_ON_CPU,
            "The first backward pass then stores gradients instead of adding them to zeros.",
        ),
    )


def _message(trace: Trace, fill_count: int, cost: CallCost) -> str:
    number = fill_count / max(1, window(trace).step_count)
    noun = "operator" if number == 1 else "operators"
    host = share(phrases.fraction_of_window(trace, cost.host_ns))
    text = (
        f"Gradients are filled with zeros, {number:.3g} {noun} {phrases.per_step(trace)}: the host "
        f"is at it for {phrases.time(trace, cost.host_ns)} ({host})"
    )
    if not len(trace.device_events):
        return f"{text}."
    idle = f"is idle for {phrases.time(trace, cost.idle_ns)} meanwhile"
    work = f"fills memory for {phrases.time(trace, cost.work_ns)}"
    return f"{text}, the {trace.dialect.device} {idle} and {work}."


RULE = Rule(
    id="zero-grad-memset",
    title="Gradients are filled with zeros instead of freed",
    passed="Gradients are freed instead of filled with zeros",
    category="optimizer",
    why="A fill is an operator and a launch for every gradient, and the backward pass then reads "
    "the zeros and adds to them. A gradient that is None is simply written.",
    detects="Looks for aten::zero_ and aten::_foreach_zero_ within Optimizer.zero_grad. It reports "
    "where there are `least_a_step` or more of them per step, or one that takes all gradients.",
    silent=(
        "Fills elsewhere are not counted: the backward pass makes some of its own.",
        "model.zero_grad() is not seen, as torch does not record it.",
    ),
    saving="The idle time of the device during zero_grad, half of it at least, and the time in "
    "which the device does nothing but the fills. On a CPU the time of the fills, less what "
    "freeing takes, and that of adding the first gradients to them. Where that is below 1 %, "
    "nothing is claimed.",
    fix=Fix(
        "Let the gradients go; the next backward pass makes new ones.",
        "optimizer.zero_grad(set_to_none=True)    # the default since torch 2.0",
        verify="No aten::zero_ and no aten::_foreach_zero_ stands inside Optimizer.zero_grad.",
        caveats=(
            "Code that reads p.grad must expect None.",
            (
                "Whole-step CUDA graphs and flat gradient buffers (not those of "
                "gradient_as_bucket_view) need gradients that stay in place: keep the zeros there."
            ),
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks", "steps"}),
    priority="optimizer",
    after=("optimizer-single-tensor",),
    culprit="filling gradients with zeros",
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html",
        "generated/torch.optim.Optimizer.zero_grad.html",
    ),
    origin="torch.profiler's GradNotSetToNonePattern; PyTorch's tuning guide",
)
