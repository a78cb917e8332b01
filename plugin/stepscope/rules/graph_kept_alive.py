"""Each backward pass goes through the graphs of more and more earlier steps."""

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.older_graphs import OlderGraphs, older_graphs
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.findings import Link
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

FEWEST_STEPS = 3


class Options(Thresholds):
    """Threshold of nodes."""

    least_count: int = option(
        3,
        "Nodes of earlier steps in the last step's backward pass.",
        origin="ours: one layer and its loss have three",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report backward nodes of earlier steps, if their number grows from step to step."""
    requirements.applies_if(is_training(trace), "no backward pass was recorded")
    graphs = older_graphs(trace)
    older = graphs.older_per_step
    if not len(older) or older[-1] < options.least_count:
        return
    requirements.conclusive_if(
        len(older) >= FEWEST_STEPS,
        f"a backward pass goes through {older[-1]:,} nodes of earlier steps; whether they grow in "
        f"number needs {FEWEST_STEPS} steps",
        requirements.RECORD_STEPS,
    )
    if (np.diff(older) > 0).all():
        yield _finding(trace, graphs)


def _finding(trace: Trace, graphs: OlderGraphs) -> Finding:
    span, older = window(trace), graphs.older_per_step
    busy = intervals.clip(times(trace.host_calls, graphs.rows), span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(busy)
    return Finding(
        severity="warning",
        message=f"The backward pass goes through nodes of earlier steps, {older[0]:,} in the first "
        f"recorded step and {older[-1]:,} in the last: "
        f"{phrases.time_and_fraction(trace, time_ns)}, and more with each step.",
        evidence=(
            facts.count("Nodes of earlier steps, in the first step", int(older[0])),
            facts.count("Nodes of earlier steps, in the last step", int(older[-1])),
            facts.count(
                "All nodes, in the last step",
                int(graphs.nodes_per_step[-1]),
                Link(view="operators", search="autograd::engine::evaluate_function"),
            ),
            facts.duration("Time in nodes of earlier steps in total", time_ns),
        ),
        tables=(call_costs.by_name(trace.host_calls, graphs.rows, "Nodes of earlier steps"),),
        events=call_costs.longest(trace, graphs.rows),
        claims=(Claim(busy, ALL_OF_IT, "The time of the backward nodes that earlier steps made."),),
    )


RULE = Rule(
    id="graph-kept-alive",
    title="Backward passes go through the graphs of earlier steps",
    passed="Backward passes go through the graph of their step only",
    category="memory",
    why="A loss that is summed over steps, or a state that is not detached, keeps the graph of all "
    "steps. Each backward pass then takes longer than the one before, and memory grows.",
    detects="Nodes of the backward pass whose forward operator ran in an earlier step, or before "
    "the trace, by their sequence numbers. It reports them if their number grows in every step, to "
    "`least_count` or more.",
    silent=(
        "A constant number of such nodes, as where the backward pass belongs to the step before.",
        "Losses that are only stored: no backward pass goes through them. memory-growth sees "
        "their memory.",
        "Two backward passes through the graph of the same step (retain_graph=True).",
    ),
    saving="The time of these nodes in the recorded steps. It grows with each further step.",
    fix=Fix(
        "Detach what goes from step to step.",
        "hidden = hidden.detach()           # before the next step; of an LSTM both states\n"
        "total_loss += loss.detach()        # for logging; call backward() on loss alone\n"
        "loss.backward()                    # without retain_graph=True",
        verify="In the next trace each step calls as many autograd::engine::evaluate_function.",
        caveats=(
            "Gradients then end at the border of a step: truncated backpropagation through time.",
        ),
    ),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.Tensor.detach.html", "notes/faq.html"),
    origin="PyTorch's FAQ: do not accumulate history across your training loop",
    culprit="graphs of earlier steps",
)
