"""The backward pass computes gradients of parameters that no optimizer updates."""

from stepscope.analyses.core import frame_times
from stepscope.analyses.host.phase_names import BACKWARD
from stepscope.analyses.host.step_phases import step_phases
from stepscope.analyses.operators.noted_calls import noted_rows
from stepscope.analyses.settings.tensor_values import UnusedGradients
from stepscope.base.calibration import BACKWARD_LEFT_OUT, GRADIENTS_LEFT_OUT, part_of
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts
from stepscope.rules.shared.noted_values import claims, require_values


class Options(Thresholds):
    """Threshold of the gradients' time."""

    least_share: float = option(
        0.02, "Fraction of the operators' time in these gradients.", origin="ours: below, not seen"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report parameters that get a gradient and are in no optimizer."""
    values = require_values(trace)
    unused = values.unused
    if unused is None or unused.time_ns < options.least_share * values.operators_ns:
        return
    rows = noted_rows(trace, unused.calls)
    times = frame_times.times(trace.host_calls, rows)
    is_whole = unused.is_of_whole_models and unused.gradients_ns > 0
    yield Finding(
        confidence="high",
        message=f"{count(unused.count, 'parameter')} of {unused.of:,} with a gradient "
        f"{'is' if unused.count == 1 else 'are'} in no optimizer: their gradients took "
        f"{duration(unused.time_ns)} of an unrecorded step.",
        evidence=(
            facts.count("Parameters with a gradient that nothing reads", unused.count),
            facts.count("Parameters with a gradient", unused.of),
            facts.duration("Time in their products per unrecorded step", unused.time_ns),
            facts.duration("Recorded time in them in total", intervals.duration_ns(times)),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Operators of these gradients"),)
        if len(rows)
        else (),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=_whole_claims(trace, unused) if is_whole else _claims(times),
    )


def _claims(times: Intervals) -> tuple[Claim, ...]:
    method = (
        "The time of products whose result has the shape of such a gradient; six tenths at least."
    )
    return claims(times, GRADIENTS_LEFT_OUT, method)


def _whole_claims(trace: Trace, unused: UnusedGradients) -> tuple[Claim, ...]:
    """Claim the backward pass by the fraction of these gradients: all of it goes."""
    times = step_phases(trace).times(BACKWARD)
    fraction = min(1.0, unused.time_ns / unused.gradients_ns)
    method = (
        "The fraction of these gradients, by their products' time, of the backward pass, since no "
        "part of it leads to a parameter of use; seven tenths of it at least."
    )
    return claims(times, part_of(BACKWARD_LEFT_OUT, fraction), method)


RULE = Rule(
    id="gradients-not-used",
    title="Gradients are computed that no optimizer uses",
    passed="Each parameter with a gradient is in an optimizer",
    category="operators",
    why="The gradient of a weight costs as much as the layer's forward pass. When only adapters or "
    "a head are trained, those of all other weights can be left out, and take no memory.",
    detects="Parameters that had a gradient after a step and are in no optimizer, as stepscope's "
    "recorder saw them (`stepscope record`); reported where products of the backward pass with "
    "results of their shapes took `least_share` of the operators' time or more.",
    silent=(
        "Parameters of an optimizer that does not step in each step.",
        "Biases and other parameters of one dimension, whose gradients cost little.",
        "Gradients that the program removes before the step ends.",
    ),
    saving="The time of these products in the recorded steps; six tenths at least. Where they are "
    "all parameters of a model (a teacher, a reference), its part of the backward pass.",
    fix=Fix(
        "Switch the gradients of frozen parameters off.",
        "model.requires_grad_(False)\n"
        "for parameter in adapters:    # or the head: what the optimizer gets\n"
        "    parameter.requires_grad_(True)\n"
        "with torch.no_grad():    # around a teacher or a reference model\n"
        "    targets = teacher(inputs)",
        verify="Record again: all parameters with a gradient are in an optimizer.",
        caveats=("If the parameters should be trained, pass them to the optimizer instead.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("notes/autograd.html",),
    origin="ours: LoRA jobs whose base weights still required gradients",
    culprit="computing gradients that nothing uses",
)
