"""All parameters are copied or averaged one by one in each step."""

from collections.abc import Iterator, Set

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.analyses.host.parameter_walks import (
    ParameterWalks,
    averages,
    parameter_walks,
    walk_times,
)
from stepscope.base.calibration import (
    AVERAGED_LONG_PARAMETERS_ON_CPU,
    AVERAGED_SHORT_PARAMETERS_ON_CPU,
    COPIED_AND_AVERAGED_ON_CPU,
    HALF_TO_ALL,
    IN_FEW_STEPS,
    Factor,
)
from stepscope.base.findings import Evidence, Link
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

COPIES = frozenset({"aten::clone", "aten::new_empty", "aten::copy_"})
"""`deepcopy` makes an empty tensor for each parameter; `load_state_dict` calls `copy_`."""
NEW_COPIES = COPIES - {"aten::copy_"}
LONG = 4_096
"""Values of a parameter, on average, up to which the calls are the limit."""


class Options(Thresholds):
    """Threshold of parameters."""

    least_count: int = option(
        4, "Parameters that get gradients.", origin="ours: two layers with a bias"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies and averages of all parameters in each step."""
    requirements.applies_if(len(optimizer_updates(trace).rows), "no optimizer's step was recorded")
    requirements.shapes(trace)
    for walks in parameter_walks(trace):
        if walks.is_whole and walks.parameter_count >= options.least_count:
            findings = tuple(_findings(trace, walks))
            yield from findings
            if findings:
                return


def _findings(trace: Trace, walks: ParameterWalks) -> Iterator[Finding]:
    """Yield the findings about one set of parameters."""
    averaging = averages(walks)
    copying = COPIES & walks.rows_of.keys()
    if averaging:
        changes_inputs = any(name.endswith("_") for name in averaging)
        averaged = {"aten::copy_"} & copying if changes_inputs else copying
        yield _average_finding(trace, walks, averaging | averaged)
        copying -= averaged | {"aten::copy_"}
    if copying:
        yield _copy_finding(trace, walks, copying)


def _copy_finding(trace: Trace, walks: ParameterWalks, names: Set[str]) -> Finding:
    claim = _claim(
        trace, walks, names, IN_FEW_STEPS, "A copy in one of ten steps or fewer remains."
    )
    return Finding(
        message=f"All {walks.parameter_count} parameters are copied in each step, which takes "
        f"{phrases.time_and_fraction(trace, intervals.duration_ns(claim.intervals))}.",
        evidence=tuple(_evidence(trace, walks, names)),
        tables=(call_costs.by_name(trace.host_calls, _rows(walks, names), "Copies"),),
        locations=call_costs.lines(trace, _rows(walks, names)),
        claims=(claim,),
        fix=COPY_RARELY,
        subject="copies",
    )


def _average_finding(trace: Trace, walks: ParameterWalks, names: Set[str]) -> Finding:
    if len(trace.device_events):
        factor, size = HALF_TO_ALL, "half of the host's time at least"
    elif names & NEW_COPIES:
        factor, size = COPIED_AND_AVERAGED_ON_CPU, "60 to 95 %, of averages of copies"
    elif walks.mean_size <= LONG:
        factor, size = AVERAGED_SHORT_PARAMETERS_ON_CPU, "30 to 95 %, of short parameters"
    else:
        factor, size = AVERAGED_LONG_PARAMETERS_ON_CPU, "up to 70 %, of long parameters"
    claim = _claim(trace, walks, names, factor, f"One operator for all parameters saves {size}.")
    return Finding(
        message=f"A moving average takes all {walks.parameter_count} parameters one by one in each "
        "step, for "
        f"{phrases.time_and_fraction(trace, intervals.duration_ns(claim.intervals))}.",
        evidence=tuple(_evidence(trace, walks, names)),
        tables=(call_costs.by_name(trace.host_calls, _rows(walks, names), "Averages"),),
        locations=call_costs.lines(trace, _rows(walks, names)),
        claims=(claim,),
        fix=AVERAGE_AT_ONCE,
        subject="averages",
    )


def _claim(
    trace: Trace, walks: ParameterWalks, names: Set[str], factor: Factor, method: str
) -> Claim:
    span = window(trace)
    times = intervals.clip(walk_times(trace, walks, names), span.start_ns, span.end_ns)
    return Claim(times, factor, method)


def _rows(walks: ParameterWalks, names: Set[str]) -> Ints:
    return np.concatenate([walks.rows_of[name] for name in sorted(names)])


def _evidence(trace: Trace, walks: ParameterWalks, names: Set[str]) -> Iterator[Evidence]:
    rows = _rows(walks, names)
    yield facts.count("Parameters", walks.parameter_count)
    yield facts.count(
        f"Operators on them {phrases.per_step(trace)}",
        window(trace).per_step(len(rows)),
        Link(view="operators", search=min(names)),
    )
    yield facts.count("Values of a parameter, on average", round(walks.mean_size))


COPY_RARELY = Fix(
    "Copy the state in few steps: at the end of an epoch, or where it is the best one yet.",
    "if step % 500 == 0:    # or: if loss < best_loss\n"
    "    best = {name: value.detach().clone() for name, value in model.state_dict().items()}\n"
    "target.load_state_dict(model.state_dict())    # of a target network: every few hundred steps",
    verify="In the next trace aten::clone, aten::new_empty or aten::copy_ is not called for each "
    "parameter in each step.",
    caveats=(
        "If every step needs its copy, take torch._foreach_copy_(copies, parameters): one call.",
        "After a failure, up to as many steps are lost as lie between two copies.",
    ),
)
AVERAGE_AT_ONCE = Fix(
    "Average all parameters with one operator.",
    "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn\n"
    "average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))\n"
    "average.update_parameters(model)    # after optimizer.step()\n"
    "# or: torch._foreach_lerp_(averages, list(model.parameters()), 1 - decay)",
    verify="In the next trace aten::_foreach_lerp_ is called once per step.",
    caveats=(
        "On a CPU parameters of 100,000 values and more gain little from it, unless the average "
        "was written with temporary results (a * x + b * y).",
        "AveragedModel copies the parameters at its first call; buffers only with "
        "use_buffers=True.",
    ),
)

RULE = Rule(
    id="state-copied-each-step",
    title="All parameters are copied or averaged one by one in each step",
    passed="Parameters are neither copied nor averaged one by one in each step",
    category="optimizer",
    why="A copy of all parameters (`deepcopy(model.state_dict())`, clones) reads and writes the "
    "whole model. An average that Python takes parameter by parameter costs several operators for "
    "each.",
    detects="Operators that Python calls on at least 80 % of the parameters in each step, outside "
    "of the optimizer: aten::clone, aten::new_empty (deepcopy) and aten::copy_ copy; aten::lerp, "
    "or aten::mul with aten::add, average. Parameters are the tensors that a backward pass "
    "gives a gradient, `least_count` or more.",
    silent=(
        "Copies and averages in some steps only.",
        "Optimizers that are written by hand.",
        "torch._foreach_lerp_ and other operators on lists.",
        "Copies of a model that does not train in this step.",
    ),
    saving="Of copies 90 % at least: one of ten steps or fewer still copies. Of averages what one "
    "operator saves as measured, by the mean size of the parameters.",
    fix=COPY_RARELY,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="optimizer",
    links=("optim.html#weight-averaging-swa-and-ema",),
    origin="ours: PyTorch's documentation of torch.optim.swa_utils",
    culprit="copying the model's state in each step",
)
