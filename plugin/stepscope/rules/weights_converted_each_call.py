"""Inference converts the type of its weights again in each call."""

import numpy as np

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.weight_casts import WeightCasts, input_type, weight_casts
from stepscope.base.calibration import CONVERTED_ONCE
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases


class Options(Thresholds):
    """Thresholds of the conversions."""

    least_share: float = option(
        0.02, "Fraction of the window in such conversions.", origin="ours: below it, memory counts"
    )
    least_calls: int = option(
        8, "Conversions in the window.", origin="ours: a first call may convert weights for good"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report conversions of weights right before the products that use them, in inference."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.applies_if(not is_training(trace), "training changes weights in each step")
    requirements.shapes(trace)
    casts = weight_casts(trace)
    rows = np.concatenate((casts.rows, casts.scaled))
    times = frame_times.times(trace.host_calls, rows)
    time_ns = intervals.duration_ns(times)
    is_small = not time_ns or phrases.fraction_of_window(trace, time_ns) < options.least_share
    if len(casts) < options.least_calls or is_small:
        return
    yield Finding(
        confidence="medium",
        message=f"{count(len(casts), 'conversion')} of weights{_from(trace, casts)}, each right "
        f"before the product that uses it, take {phrases.time_and_fraction(trace, time_ns)}. "
        "Nothing trains, so the weights stay the same.",
        evidence=(
            facts.count("Conversions in total", len(casts)),
            facts.count("Operators that scale their results in total", len(casts.scaled)),
            facts.duration("Time in them in total", time_ns),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Conversions of weights"),),
        events=call_costs.longest(trace, casts.rows),
        locations=call_costs.lines(trace, casts.rows),
        claims=(
            Claim(
                times,
                CONVERTED_ONCE,
                "All time of the conversions, and of operators that scale their results; eight "
                "tenths at least, since products then read weights of the larger type from memory.",
            ),
        ),
    )


def _from(trace: Trace, casts: WeightCasts) -> str:
    text = input_type(trace, int(casts.rows[0]))
    return f" of type {text}" if text else ""


RULE = Rule(
    id="weights-converted-each-call",
    title="Inference converts its weights again in each call",
    passed="Inference does not convert its weights in each call",
    category="inference",
    why="Weights do not change in inference: a conversion from another type, with its scales, "
    "gives the same numbers in every call. It reads and writes all weights of the layer.",
    detects="Calls of aten::to that convert a tensor of the shape of a weight, at most four "
    "operators before the product that uses it (aten::linear, aten::addmm, aten::mm, aten::matmul, "
    "convolutions, aten::embedding), in a trace without a backward pass. It reports "
    "`least_calls` of them that take `least_share` of the window or more.",
    silent=(
        "Training, where weights change in each step.",
        "Operands that could be the input of the product as well as its weight.",
    ),
    saving="All time of the conversions, and of operators that scale their results; eight tenths "
    "at least.",
    fix=Fix(
        "Convert the weights once, when the model is loaded.",
        "model = model.to(torch.bfloat16)    # the type in which it computes\n"
        "self.weight = nn.Parameter(packed.float() * scale, requires_grad=False)    # in __init__",
        verify="In the next trace no aten::to precedes the products.",
        caveats=(
            "Weights of a larger type take more memory. If it does not fit, use kernels that "
            "multiply packed weights (torchao).",
            "Under autocast, conversions of weights are made again in each autocast region.",
        ),
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting"}),
    priority="runtime",
    links=("amp.html",),
    origin="ours: a server that unpacked its weights for each request",
    culprit="converting weights in each call",
)
