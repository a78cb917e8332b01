"""Statistics of all parameters or gradients are computed one by one in each step."""

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import gradient_norms, optimizer_updates
from stepscope.analyses.operators.parameter_walks import parameter_walks, walk_times
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.base.calibration import IN_FEW_STEPS
from stepscope.base.findings import Link
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

NORMS = frozenset({"aten::norm", "aten::linalg_vector_norm"})
STATISTICS = NORMS | {
    "aten::abs",
    "aten::amax",
    "aten::count_nonzero",
    "aten::histc",
    "aten::isfinite",
    "aten::isinf",
    "aten::isnan",
    "aten::max",
    "aten::mean",
    "aten::min",
    "aten::pow",
    "aten::square",
    "aten::std",
    "aten::sum",
    "aten::var",
}
READS = frozenset({"aten::item", "aten::is_nonzero"})


class Options(Thresholds):
    """Threshold of parameters."""

    least_count: int = option(
        8, "Parameters that get gradients.", origin="ours: four layers with a bias"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report reductions of each parameter whose results Python reads in each step."""
    requirements.applies_if(len(optimizer_updates(trace).rows), "no optimizer's step was recorded")
    requirements.shapes(trace)
    walks, span = parameter_walks(trace), window(trace)
    names = STATISTICS & walks.rows_of.keys()
    is_clipping = names <= NORMS and len(gradient_norms(trace).rows)
    if walks.parameter_count < options.least_count or not names or is_clipping:
        return
    times = intervals.clip(walk_times(trace, walks, names), span.start_ns, span.end_ns)
    reads = _reads(trace, times)
    if reads < walks.parameter_count * span.step_count / 2:
        return
    rows = np.concatenate([walks.rows_of[name] for name in sorted(names)])
    listed = phrases.joined(sorted(names))
    yield Finding(
        message=f"{listed} {'is' if len(names) == 1 else 'are'} called on each of "
        f"{walks.parameter_count} parameters in each step, "
        f"and {span.per_step(reads):,} results are read: "
        f"{phrases.time_and_fraction(trace, intervals.duration_ns(times))}.",
        evidence=(
            facts.count("Parameters", walks.parameter_count),
            facts.count(
                f"Operators on them {phrases.per_step(trace)}",
                span.per_step(len(rows)),
                Link(view="operators", search=min(names)),
            ),
            facts.count(f"Values read {phrases.per_step(trace)}", span.per_step(reads)),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Statistics"),),
        locations=call_costs.lines(trace, rows),
        claims=(Claim(times, IN_FEW_STEPS, "One of ten steps or fewer still computes them."),),
    )


def _reads(trace: Trace, times: intervals.Intervals) -> int:
    """Return the number of values that Python reads in some times."""
    rows = python_operators(trace).rows
    reads = rows[name_mask(trace.host_calls["name"], READS.__contains__)[rows]]
    start_ns = trace.host_calls["start_ns"].to_numpy()[reads]
    return int(np.count_nonzero(intervals.covered_ns(times, start_ns, start_ns + 1)))


RULE = Rule(
    id="parameter-statistics-in-step",
    title="Statistics of all parameters are computed one by one in each step",
    passed="No statistics of all parameters are computed one by one in each step",
    category="optimizer",
    why="Means, norms and checks for NaN of each parameter or gradient take several operators and "
    "a read for each, and go through all values. On a device each read also waits.",
    detects="Reductions (mean, norm, std, isfinite and the like) that Python calls on at least 90 "
    "% of the parameters or their gradients in each step, outside of the optimizer, where it reads "
    "a result for at least half of them. Parameters are the tensors that get a gradient, "
    "`least_count` or more.",
    silent=(
        "Norms between the backward pass and the optimizer's step: unfused-grad-clip reports "
        "those.",
        "Statistics in some steps only.",
        "Operators on lists (torch._foreach_norm).",
    ),
    saving="The time from the first parameter to the last, 90 % of it at least: one of ten steps "
    "or fewer still computes them.",
    fix=Fix(
        "Compute statistics in few steps, and read them all at once.",
        "if step % 100 == 0:\n"
        "    norms = torch.stack(torch._foreach_norm(gradients))\n"
        "    values = norms.tolist()    # one read, instead of .item() for each\n"
        "total = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)    # gives the norm, too",
        verify="In the next trace the reductions are called a few times per step.",
        caveats=("A rare peak may lie between two logged steps: log the loss in each step.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="optimizer",
    after=("unfused-grad-clip",),
    links=("generated/torch.nn.utils.clip_grad_norm_.html",),
    origin="ours: gradient logging in training loops",
    culprit="statistics of parameters",
)
