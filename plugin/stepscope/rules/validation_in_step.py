"""The model is validated in each training step."""

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.host.optimizer_updates import launched_work
from stepscope.analyses.host.phase_costs import phase_costs
from stepscope.analyses.host.phase_names import FORWARD_ONLY
from stepscope.analyses.host.phase_operators import CODES, operator_phases
from stepscope.analyses.host.step_phases import step_phases
from stepscope.analyses.idle.call_cost import CallCost, call_cost
from stepscope.base.calibration import DONE_LESS_OFTEN
from stepscope.base.formatting import share
from stepscope.model.arrays import Ints
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases
from stepscope.rules.shared.step_phases import (
    is_validation,
    line_table,
    phase_table,
    require_host_phases,
)


class Options(Thresholds):
    """Fractions of the window, from 0 to 1."""

    least_share: float = option(
        0.02,
        "Time lost to the validation from which it is reported.",
        origin="ours: steps of a loop differ by as much",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report forward passes without a backward pass that validate the model in most steps."""
    require_host_phases(trace)
    requirements.applies_if(is_training(trace), "nothing trains here")
    if not is_validation(trace):
        return
    phases = operator_phases(trace)
    rows = phases.rows[phases.phase == CODES[FORWARD_ONLY]]
    if not len(rows):
        return
    times = step_phases(trace).times(FORWARD_ONLY)
    cost = call_cost(trace, times, launched_work(trace, rows).events)
    lost_ns = cost.idle_ns + cost.work_ns
    if phrases.fraction_of_window(trace, lost_ns) >= options.least_share:
        yield _finding(trace, rows, cost)


def _finding(trace: Trace, rows: Ints, cost: CallCost) -> Finding:
    phases, lost_ns = step_phases(trace), cost.idle_ns + cost.work_ns
    location = phases.locations(FORWARD_ONLY)[0]
    part = phases.steps_with(FORWARD_ONLY)
    where = f" in {location.line}" if location.line else ""
    which = "Each step validates" if part == 1 else f"{share(part)} of the steps validate"
    costs = [cost for cost in phase_costs(trace) if cost.phase == FORWARD_ONLY]
    return Finding(
        message=f"{which} the model{where}: a forward pass without a backward pass takes "
        f"{phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=(
            facts.fraction("Of the steps with validation", part),
            *call_costs.evidence(trace, cost),
        ),
        tables=(
            call_costs.by_name(trace.host_calls, rows, "Operators of the validation"),
            line_table(trace, costs),
            phase_table(trace),
        ),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines([location.line]),
        claims=call_costs.claims(
            cost,
            DONE_LESS_OFTEN,
            DONE_LESS_OFTEN,
            "All of it where few steps validate, nine tenths where every tenth does.",
        ),
    )


RULE = Rule(
    id="validation-in-step",
    title="The model is validated in each training step",
    passed="Training steps do not validate the model",
    category="host",
    why="A validation says how good the model is. It changes no parameter, and one step changes "
    "the model too little for another answer.",
    detects="In most steps, forward passes whose operators have no sequence number of autograd "
    "(`torch.no_grad`, `torch.inference_mode`), or whose nodes no backward pass runs, and that end "
    "in a loss, switch to the evaluation mode, or are in a function or label that says so (`eval`, "
    "`validate`). It reports where they cost `least_share` of the window or more.",
    silent=(
        "A teacher, a frozen part of the model, a rollout or an averaged model ends in no loss of "
        "its own, and may be needed in each step: hot-path names it.",
        "A validation in fewer than half of the steps is no habit of the loop.",
        "Inference has no backward pass at all.",
    ),
    saving="The time of the validation: at most all of it, at least nine tenths, as if every tenth "
    "step validated.",
    fix=Fix(
        "Validate every few hundred steps, or after each epoch.",
        "if step % 500 == 0:\n"
        "    model.eval()\n"
        "    with torch.inference_mode():\n"
        "        loss = sum(criterion(model(x), y) for x, y in validation_loader)\n"
        "    model.train()",
        verify="The next trace has no forward pass without a backward pass in most steps.",
        caveats=("Early stopping and schedulers that read the loss then react later.",),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="runtime",
    links=(
        "generated/torch.inference_mode.html",
        "https://lightning.ai/docs/pytorch/stable/common/trainer.html#val-check-interval",
    ),
    origin="ours: sequence numbers of autograd tell which forward passes have a backward pass",
    culprit="validation in the step",
)
