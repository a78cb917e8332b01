"""Statistics of all parameters or gradients are computed one by one in each step."""

from collections.abc import Set

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import gradient_norms, optimizer_updates
from stepscope.analyses.host.parameter_walks import (
    ParameterWalks,
    parameter_walks,
    walk_times,
)
from stepscope.analyses.operators.python_operators import backward_times, python_operators
from stepscope.base.calibration import IN_FEW_STEPS, PENALTY_BY_THE_OPTIMIZER
from stepscope.base.findings import Evidence, Link
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
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
    "aten::median",
    "aten::min",
    "aten::quantile",
    "aten::pow",
    "aten::sort",
    "aten::square",
    "aten::std",
    "aten::sum",
    "aten::var",
}
READS = frozenset({"aten::item", "aten::is_nonzero", "aten::resolve_neg"})
"""The last one is called by `tolist` and `numpy`."""
PENALTIES = NORMS | {"aten::abs", "aten::pow", "aten::square", "aten::sum"}
"""Operators of a penalty on the weights, which ends in a sum or a norm."""
SUMS = NORMS | {"aten::sum"}


class Options(Thresholds):
    """Threshold of parameters."""

    least_count: int = option(
        8, "Parameters that get gradients.", origin="ours: four layers with a bias"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report reductions of each parameter in each step: statistics, and penalties in the loss."""
    requirements.applies_if(len(optimizer_updates(trace).rows), "no optimizer's step was recorded")
    requirements.shapes(trace)
    for walks in parameter_walks(trace):
        names = STATISTICS & walks.rows_of.keys()
        if walks.parameter_count < options.least_count or not names:
            continue
        times = _clipped(trace, walk_times(trace, walks, names))
        is_clipping = names <= NORMS and len(gradient_norms(trace).rows)
        reads = _reads(trace, times)
        if reads >= walks.parameter_count * window(trace).step_count / 2:
            if not is_clipping:
                yield _statistics(trace, walks, names, times, reads)
            return
        if names <= PENALTIES and names & SUMS:
            backward = _clipped(trace, backward_times(trace, _rows(walks, names)))
            if len(backward):
                yield _penalty(trace, walks, names, intervals.merged(times, backward))
                return


def _rows(walks: ParameterWalks, names: Set[str]) -> Ints:
    return np.unique(np.concatenate([walks.rows_of[name] for name in sorted(names)]))


def _clipped(trace: Trace, times: Intervals) -> Intervals:
    span = window(trace)
    return intervals.clip(times, span.start_ns, span.end_ns)


def _statistics(
    trace: Trace, walks: ParameterWalks, names: Set[str], times: Intervals, reads: int
) -> Finding:
    rows = _rows(walks, names)
    return Finding(
        message=f"{_called(names)} on each of "
        f"{walks.parameter_count} parameters in each step, "
        f"and {window(trace).per_step(reads):,} results are read: "
        f"{phrases.time_and_fraction(trace, intervals.duration_ns(times))}.",
        evidence=(
            *_evidence(trace, walks, names, rows),
            facts.count(f"Values read {phrases.per_step(trace)}", window(trace).per_step(reads)),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Statistics"),),
        locations=call_costs.lines(trace, rows),
        claims=(Claim(times, IN_FEW_STEPS, "One of ten steps or fewer still computes them."),),
    )


def _penalty(trace: Trace, walks: ParameterWalks, names: Set[str], times: Intervals) -> Finding:
    rows = _rows(walks, names)
    return Finding(
        message=f"{_called(names)} on each of {walks.parameter_count} parameters in each step, "
        "for a penalty in the loss: with its backward pass it takes "
        f"{phrases.time_and_fraction(trace, intervals.duration_ns(times))}.",
        evidence=_evidence(trace, walks, names, rows),
        tables=(call_costs.by_name(trace.host_calls, rows, "Operators of the penalty"),),
        locations=call_costs.lines(trace, rows),
        claims=(
            Claim(
                times,
                PENALTY_BY_THE_OPTIMIZER,
                "The penalty and its backward pass; the optimizer decays weights in its update.",
            ),
        ),
        fix=DECAY,
        subject="penalty",
    )


def _called(names: Set[str]) -> str:
    return f"{phrases.joined(sorted(names))} {'is' if len(names) == 1 else 'are'} called"


def _evidence(
    trace: Trace, walks: ParameterWalks, names: Set[str], rows: Ints
) -> tuple[Evidence, ...]:
    return (
        facts.count("Parameters", walks.parameter_count),
        facts.count(
            f"Operators on them {phrases.per_step(trace)}",
            window(trace).per_step(len(rows)),
            Link(view="operators", search=min(names)),
        ),
    )


def _reads(trace: Trace, times: Intervals) -> int:
    """Return the number of values that Python reads in some times."""
    rows = python_operators(trace).rows
    reads = rows[name_mask(trace.host_calls["name"], READS.__contains__)[rows]]
    start_ns = trace.host_calls["start_ns"].to_numpy()[reads]
    return int(np.count_nonzero(intervals.covered_ns(times, start_ns, start_ns + 1)))


DECAY = Fix(
    "Leave an L2 penalty to the optimizer: its update decays the weights at no extra cost.",
    "optimizer = torch.optim.SGD(model.parameters(), lr=lr, weight_decay=1e-4)\n"
    "# an L1 penalty, after loss.backward():\n"
    "# torch._foreach_add_(gradients, torch._foreach_sign(parameters), alpha=l1)",
    verify="In the next trace the reductions are not called on each parameter.",
    caveats=(
        "A penalty of c * p.pow(2).sum() is weight_decay=2 * c.",
        "AdamW's weight_decay is no penalty in the loss, but that of Adam and SGD is.",
    ),
)
RULE = Rule(
    id="parameter-statistics-in-step",
    title="Statistics of all parameters are computed one by one in each step",
    passed="No statistics of all parameters are computed one by one in each step",
    category="optimizer",
    why="Means, norms and checks for NaN of each parameter or gradient take several operators and "
    "a read for each, and go through all values. On a device each read also waits.",
    detects="Reductions (mean, norm, std, isfinite and the like) that Python calls on at least 90 "
    "% of the parameters or their gradients in each step, outside of the optimizer, where it reads "
    "a result for at least half of them, or where they have a backward pass and are sums (a "
    "penalty in the loss). Parameters are the tensors that a backward pass gives a gradient, "
    "`least_count` or more, or those of them with two dimensions and more.",
    silent=(
        "Norms between the backward pass and the optimizer's step: unfused-grad-clip reports "
        "those.",
        "Statistics in some steps only.",
        "Operators on lists (torch._foreach_norm).",
    ),
    saving="The time from the first parameter to the last, 90 % of it at least: one of ten steps "
    "or fewer still computes them. Of a penalty at least three quarters, with its backward pass.",
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
