"""Several backward passes of a step go through the same part of its graph."""

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.analyses.host.parameter_walks import ACCUMULATES
from stepscope.base.calibration import ONE_BACKWARD
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

KEYS = ["name", "sequence_number", "forward_thread_id", "step", "update"]
"""Of a node of the graph, with the step in which it ran, and the updates before."""
MOST_APART_NS = 100_000
"""Between nodes of one pass is less time; the engine takes it."""


class Options(Thresholds):
    """Thresholds of nodes and of their time."""

    least_count: int = option(
        3,
        "Nodes that ran again, in a step on average.",
        origin="ours: one layer and its loss have three",
    )
    least_share: float = option(
        0.02, "Time in them, of the window.", origin="ours: steps of a loop differ by as much"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report nodes of a step's graph that ran more than once in it."""
    requirements.applies_if(is_training(trace), "no backward pass was recorded")
    span = window(trace)
    rows, busy = _repeated(trace)
    busy = intervals.clip(busy, span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(busy)
    per_step = span.per_step(len(rows))
    is_reported = phrases.fraction_of_window(trace, time_ns) >= options.least_share
    if per_step < options.least_count or not is_reported:
        return
    yield Finding(
        confidence="medium",
        message=f"Backward passes of one step go through the same graph: {count(per_step, 'node')} "
        f"{phrases.per_step(trace)} ran once more than needed for a sum of the losses, for "
        f"{phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(
            facts.count(
                "Calls of nodes that had run in the step, in total",
                len(rows),
                Link(view="operators", search="autograd::engine::evaluate_function"),
            ),
            facts.duration("Time in them in total", time_ns),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Nodes that ran again"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=(
            Claim(
                busy,
                ONE_BACKWARD,
                "The time of nodes that had run in the same step, with the gradients that they "
                "add to parameters; seven tenths at least.",
            ),
        ),
    )


def _repeated(trace: Trace) -> tuple[Ints, Intervals]:
    """Return the engine's calls (rows of `host_calls`) of nodes that had run in the same step.

    The times are theirs, and from one of them to the next of the pass. What follows such a node and
    adds its gradient to a parameter has no number, and counts with it. Steps with a pass through a
    graph that a backward pass made (`create_graph=True`) are left out: it goes through the first
    graph again. So are runs before and after an optimizer's update.
    """
    calls, links = trace.host_calls, forward_backward(trace)
    starts, numbers = calls["start_ns"].to_numpy(), calls["sequence_number"].to_numpy()
    nodes = np.flatnonzero((links.wrapper != NONE) & (numbers >= 0))
    nodes = nodes[np.argsort(starts[nodes], kind="stable")]
    step = np.searchsorted(trace.steps["start_ns"].to_numpy(), starts[nodes], side="right")
    update = np.searchsorted(_updates_ns(trace), starts[nodes])
    maker = links.forward[nodes]
    is_made_by_node = (maker != NONE) & (links.node[maker] != NONE)
    is_again = calls.iloc[nodes].assign(step=step, update=update).duplicated(KEYS).to_numpy()
    is_again = is_again & ~np.isin(step, step[is_made_by_node])
    adds = np.flatnonzero(name_mask(calls["name"], f"{WRAPPER}{ACCUMULATES}".__eq__))
    rows = np.concatenate((links.wrapper[nodes], adds))
    is_node = np.arange(len(rows)) < len(nodes)
    again = np.append(is_again, np.zeros(len(adds), dtype=bool))
    order = np.lexsort((starts[rows], calls["thread"].cat.codes.to_numpy()[rows]))
    last_node = np.maximum.accumulate(np.where(is_node[order], np.arange(len(order)), 0))
    called, selected = rows[order], again[order][last_node]
    thread, ends = calls["thread"].cat.codes.to_numpy()[called], calls["end_ns"].to_numpy()[called]
    goes_on = selected[:-1] & selected[1:] & (thread[:-1] == thread[1:])
    goes_on = goes_on & (starts[called][1:] - ends[:-1] < MOST_APART_NS)
    until = np.where(np.append(goes_on, False)[: len(ends)], np.append(starts[called][1:], 0), ends)
    busy = intervals.union(starts[called][selected], until[selected])
    return np.sort(called[selected]), busy


def _updates_ns(trace: Trace) -> Ints:
    """Return when optimizers' updates began, in order."""
    try:
        return np.sort(optimizer_updates(trace).begin_ns)
    except NotApplicableError:
        return np.empty(0, dtype=np.int64)


RULE = Rule(
    id="repeated-backward",
    title="Several backward passes go through the same graph in a step",
    passed="Each step goes backward through its graph once",
    category="operators",
    why="A backward pass for each loss (`loss.backward(retain_graph=True)`) goes through all "
    "layers that the losses have in common. One pass of their sum adds the same gradients, and "
    "keeps the activations in memory for less time.",
    detects="Nodes of the backward pass with the same name, sequence number and thread that run "
    "more than once in a step, `least_count` or more in a step; it reports them from `least_share` "
    "of the window on.",
    silent=(
        "A second graph, as of a generator's and a discriminator's loss, or of accumulated "
        "batches.",
        "Steps with derivatives of gradients (`create_graph=True`, gradient penalties): a pass "
        "through the first graph is needed for each.",
        "Nodes of earlier steps: graph-kept-alive reports them.",
        "Recomputed activations, which are other nodes. Steps with reentrant checkpointing.",
        "Passes before and after an optimizer's update.",
    ),
    saving="The time of the nodes that ran again; seven tenths at least, as the losses' gradients "
    "still have to be added.",
    fix=Fix(
        "Add the losses and go backward once.",
        "loss = heatmap_loss + 0.01 * point_loss + 0.01 * bone_loss\n"
        "loss.backward()    # once, without retain_graph=True",
        verify="In the next trace each step calls fewer autograd::engine::evaluate_function.",
        caveats=(
            "Not where gradients are zeroed between the passes, or each loss updates other "
            "parameters: cut the graph there, with detach() or torch.no_grad().",
            "If the gradients of each loss are used on their own (PCGrad, GradNorm), compute them "
            "of the last common activation alone: torch.autograd.grad(loss, features).",
            "For a Jacobian, torch.autograd.grad(..., is_grads_batched=True) computes all rows in "
            "one pass.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.Tensor.backward.html", "notes/autograd.html"),
    origin="ours: a loss by loss backward pass in multi-task training",
    culprit="going backward several times",
)
