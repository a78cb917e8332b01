"""The state of the model is saved or copied in each training step."""

import re

import numpy as np

from stepscope.analyses.core import event_references
from stepscope.analyses.host.parameter_walks import averages, parameter_walks
from stepscope.analyses.host.phase_costs import PhaseCost, phase_costs
from stepscope.analyses.host.phase_names import CHECKPOINT
from stepscope.analyses.host.phase_operators import CODES
from stepscope.analyses.host.step_phases import step_phases
from stepscope.base.calibration import DONE_LESS_OFTEN
from stepscope.base.findings import Link
from stepscope.base.formatting import share
from stepscope.rules import (
    Claim,
    Finding,
    Fix,
    Results,
    Rule,
    RuledOut,
    Thresholds,
    Trace,
    option,
)
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.step_phases import (
    is_in_most_steps,
    line_table,
    phase_table,
    require_host_phases,
)

SAVES = re.compile(r"serialization\.py|distributed/checkpoint|safetensors|pickle|save|checkpoint")
"""In functions and labels: it is written, not only copied."""


class Options(Thresholds):
    """Fractions of the window, from 0 to 1."""

    least_share: float = option(
        0.02,
        "Time in checkpoints, while no device works, from which they are reported.",
        origin="ours: steps of a loop differ by as much",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report checkpoints in most steps by the time in which no device works."""
    require_host_phases(trace)
    if not is_in_most_steps(trace, CHECKPOINT):
        return
    is_average = not _saves(trace) and any(
        walks.is_whole and averages(walks) for walks in parameter_walks(trace)
    )
    if is_average:
        yield RuledOut(
            message="The state of the model is copied in most steps, but for a moving average of "
            "the parameters: state-copied-each-step reports it."
        )
        return
    for cost in phase_costs(trace):
        if cost.phase == CHECKPOINT and cost.share >= options.least_share:
            yield _finding(trace, cost)


def _finding(trace: Trace, cost: PhaseCost) -> Finding:
    part, location = step_phases(trace).steps_with(CHECKPOINT), cost.location
    saves = _saves(trace)
    does = "saves" if saves else "copies" if len(trace.python_calls) else "saves or copies"
    which = "Each step" if part == 1 else f"The loop, in {share(part)} of its steps,"
    where = f" in {location.line}" if location.line else ""
    return Finding(
        confidence="high" if saves else "medium",
        message=f"{which} {does} the state of the model{where}, for "
        f"{phrases.time_and_fraction(trace, cost.time_ns)}.",
        evidence=(
            facts.fraction("Of the steps with a checkpoint", part),
            facts.duration(
                "Time in them in total", cost.time_ns, Link(view="operators", search="aten::detach")
            ),
        ),
        tables=(line_table(trace, [cost]), phase_table(trace)),
        locations=event_references.source_lines([location.line, location.activity]),
        claims=(
            Claim(
                cost.times,
                DONE_LESS_OFTEN,
                "All of it where they are made in few steps, nine tenths where in every tenth.",
                is_unslowed=True,
            ),
        ),
        fix=RULE.fix if saves or not len(trace.python_calls) else COPY,
    )


def _saves(trace: Trace) -> bool:
    """Return whether a function or label says that the state is written."""
    cut = step_phases(trace).stretches
    rows = np.unique(cut.activity[cut.phase == CODES[CHECKPOINT]]).tolist()
    return any(SAVES.search(cut.activities[row]) for row in rows)


VERIFY = "The next trace has no checkpoint in most steps."
COPY = Fix(
    "Copy the state only when it is better than the last copy, into tensors that exist already.",
    "if loss < best_loss:\n"
    "    for copy, value in zip(best.values(), model.state_dict().values()):\n"
    "        copy.copy_(value)",
    verify=VERIFY,
    caveats=("For an averaged model, use torch.optim.swa_utils.AveragedModel.",),
)
RULE = Rule(
    id="checkpoint-in-step",
    title="The state of the model is saved in each training step",
    passed="Training steps do not save the state of the model",
    category="host",
    why="A checkpoint copies all parameters, and the optimizer's state twice as much, to the CPU "
    "and to a file, while the loop waits.",
    detects="In most steps, time of the main thread in `torch.save`, `pickle`, "
    "`torch.distributed.checkpoint`, `state_dict` or `copy.deepcopy`, where stacks were recorded, "
    "or under a label that says so. Otherwise four `aten::detach` or more in a row, as "
    "`state_dict` makes them, with the copies and the Python behind them. It reports from "
    "`least_share` of the window on, without the times in which a device works.",
    silent=(
        "A checkpoint in fewer than half of the steps is made every so many steps already.",
        "A checkpoint that another thread writes costs the loop nothing.",
        "Copies for a moving average of the parameters are ruled out: state-copied-each-step "
        "reports them.",
    ),
    saving="The time in checkpoints while no device works: at most all of it, at least nine "
    "tenths, as if every tenth step made one.",
    fix=Fix(
        "Save every thousand steps, or in another thread.",
        "import torch.distributed.checkpoint as dcp\n"
        "if step % 1000 == 0:\n"
        "    state = {'model': model.state_dict(), 'optimizer': optimizer.state_dict()}\n"
        "    saving = dcp.async_save(state, checkpoint_id=f'checkpoints/{step}')",
        verify=VERIFY,
        caveats=(
            "After a failure the program repeats the steps since the last checkpoint.",
            "Without a process group, torch.save of a copy in a thread does the same.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="runtime",
    links=("distributed.checkpoint.html", "generated/torch.save.html"),
    origin="ours: torch.save and copy.deepcopy in the step; PyTorch's asynchronous checkpoints",
    culprit="saving the model's state",
)
